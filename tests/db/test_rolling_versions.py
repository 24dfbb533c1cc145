"""Old and new nodes on one database: for one minor version, and no longer."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import harness
import made_migrations
import pytest
from databases import Superuser
from harness import Client

from api import given
from horai import __version__
from horai.core.settings import EngineSettings
from horai.db import nodes
from horai.db.migrate import MigrationError, migrate, migrations, newest_known, pending_migrations
from horai.db.releases import FIRST_MIGRATIONS, MinorVersion, may_work_on, minor_of, minor_version, own_minor
from horai.process import prepare

NEWER = "insert into horai.migration (number, name, checksum, release) values ($1, 'newer', 'x', $2)"


def ahead(minors: int) -> str:
    return str(MinorVersion(own_minor().major, own_minor().minor + minors))


@pytest.mark.parametrize(
    ("node", "schema", "works"),
    [
        ("0.1.0", "0.1.9", True),
        ("0.1.0", "0.2.0", True),
        ("0.1.9", "0.3.0", False),
        ("0.3.0", "0.1.0", True),
        ("0.9.0", "1.0.0", False),
        ("1.4.2", "1.5.0", True),
        ("1.4.2", "2.0.0", False),
    ],
)
def test_a_node_works_on_the_schema_of_its_own_minor_version_and_of_the_next(
    node: str, schema: str, works: bool
) -> None:
    versions = [minor_version(text) for text in (node, schema)]
    assert None not in versions
    assert may_work_on(*[version for version in versions if version]) == works


def test_the_first_migration_of_this_minor_version_is_listed() -> None:
    """A release of a new minor version adds its line: without it, old nodes could not tell how far they are behind."""
    assert str(minor_version(__version__)) in FIRST_MIGRATIONS
    assert list(FIRST_MIGRATIONS.values()) == sorted(set(FIRST_MIGRATIONS.values()))
    assert minor_of(1) == "0.1"
    assert minor_version("a build of mine") is None


async def test_the_ledger_says_which_minor_version_a_migration_belongs_to(connection: Superuser) -> None:
    rows = await connection.fetch("select number, release from horai.migration")

    assert {row["number"]: row["release"] for row in rows} == {
        each.number: minor_of(each.number) for each in migrations()
    }


async def test_a_ledger_from_before_the_column_gets_it_with_the_next_migration(
    connection: Superuser, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    await connection.execute("alter table horai.migration drop column release")
    assert await migrate(connection) == [], "and without one to apply, it stays as it is"
    made_migrations.use(monkeypatch, tmp_path, "create table horai.fresh ()")

    assert len(await migrate(connection)) == 1

    assert await connection.fetch("select from horai.migration where release = '0.1'")


async def _health(api: Client, status: str) -> Any:
    health = (await api("GET", "/api/v1/scheduler/health")).json
    return health if health["status"] == status else None


@pytest.mark.parametrize("minors", [0, 1])
async def test_a_node_starts_and_works_on_a_schema_that_is_up_to_one_minor_version_newer(
    url: str, connection: Superuser, minors: int
) -> None:
    await connection.execute(NEWER, newest_known() + 1, ahead(minors))

    async with harness.node(url) as api:
        (reason,) = (await given.until(lambda: _health(api, "DEGRADED")))["reasons"]
        assert reason["textSaid"]["code"] == "SCHEMA_NEWER"
        assert (await api("GET", "/readyz")).status == 200
        target = {"type": "http", "url": f"{api.base}/healthz", "method": "GET"}
        await api("POST", "/api/v1/jobs", {"name": "old", "target": target})
        begun = await api("POST", "/api/v1/jobs/old/trigger", {}, Idempotency_Key="one")
        await api.until_state(begun.json["instance"]["id"], "SUCCESS")
    assert await pending_migrations(connection) == [], "a worker starts as well"


async def test_a_node_refuses_a_schema_that_is_more_than_one_minor_version_newer(
    url: str, connection: Superuser
) -> None:
    await connection.execute(NEWER, newest_known() + 1, ahead(2))

    with pytest.raises(MigrationError, match=f"newer of Horai {ahead(2)}, and this is {__version__}") as refused:
        await prepare(url, EngineSettings())
    with pytest.raises(MigrationError, match="its own minor version and of the next one"):
        await pending_migrations(connection)

    assert "newer Horai" in str(refused.value.hint)


async def test_a_migration_waits_until_no_node_is_too_old_for_it(
    connection: Superuser, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made_migrations.use(monkeypatch, tmp_path, "create table horai.fresh ()")
    major, minor = own_minor()
    monkeypatch.setattr("horai.db.migrate.own_minor", lambda: MinorVersion(major, minor + 2))
    old, _ = await nodes.register_node(connection, "old-one", "test", 1, __version__, timedelta(hours=1))
    await nodes.register_node(connection, "built-here", "test", 1, "a build of mine", timedelta(hours=1))

    with pytest.raises(MigrationError, match=f"Node old-one runs Horai {__version__}") as refused:
        await migrate(connection)
    assert "one minor version at a time" in str(refused.value.hint)
    await nodes.stop_node(connection, old)

    assert len(await migrate(connection)) == 1
