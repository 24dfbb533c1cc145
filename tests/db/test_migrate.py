"""Migrations: each once, never guessed; and the partitions they leave behind."""

import asyncio
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest
import rows
from databases import fresh_database

from horai.core.states import State
from horai.db import nodes
from horai.db.migrate import Migration, MigrationError, _check_server, migrate, migrations, pending_migrations
from horai.db.pool import Platform, connect
from horai.embedded import EmbeddedPostgres


@pytest.fixture
def empty_url(postgres: EmbeddedPostgres) -> Iterator[str]:
    """A database that has never seen Horai."""
    with fresh_database(postgres, template="template0") as made:
        yield made


async def test_an_empty_database_gets_every_migration_once(empty_url: str):
    connection = await connect(empty_url, "horai test")
    known = migrations()

    assert await pending_migrations(connection) == known
    assert await migrate(connection, dry_run=True) == known
    assert await connection.fetchval("select to_regnamespace('horai')") is None
    assert await migrate(connection) == known
    assert await migrate(connection) == []
    written = await connection.fetch("select number, name, checksum from horai.migration order by number")
    assert [tuple(row) for row in written] == [(m.number, m.name, m.checksum) for m in known]
    connection.terminate()


async def test_migrations_are_numbered_without_a_gap():
    assert [migration.number for migration in migrations()] == list(range(1, len(migrations()) + 1))


async def test_two_that_migrate_at_once_do_it_once(empty_url: str):
    one, other = [await connect(empty_url, "horai test") for _ in range(2)]

    done = await asyncio.gather(migrate(one), migrate(other))

    assert sorted(len(each) for each in done) == [0, len(migrations())]
    one.terminate()
    other.terminate()


async def test_a_changed_migration_is_refused(connection: Platform):
    await connection.execute("update horai.migration set checksum = 'other' where number = 1")

    with pytest.raises(MigrationError, match="content other than this version's"):
        await migrate(connection)


async def test_a_newer_database_is_refused(connection: Platform):
    await connection.execute("insert into horai.migration (number, name, checksum) values (9001, 'future', 'x')")

    with pytest.raises(MigrationError, match="9001_future") as refused:
        await migrate(connection)

    assert refused.value.hint is not None
    assert "newer Horai" in refused.value.hint


async def test_a_failing_migration_leaves_nothing_behind(connection: Platform, monkeypatch: pytest.MonkeyPatch):
    broken = Migration(len(migrations()) + 1, "broken", "create table horai.half (); select 1 / 0;")
    known = [*migrations(), broken]
    monkeypatch.setattr("horai.db.migrate.migrations", lambda: known)

    with pytest.raises(MigrationError, match="broken failed"):
        await migrate(connection)

    assert await connection.fetchval("select to_regclass('horai.half')") is None
    monkeypatch.undo()
    assert await migrate(connection) == [], "the lock was given back"


async def test_a_migration_outside_a_transaction_may_build_an_index_concurrently(
    connection: Platform, monkeypatch: pytest.MonkeyPatch
):
    text = "-- no-transaction\ncreate index concurrently later on horai.tenant (created_at)"
    known = [*migrations(), Migration(len(migrations()) + 1, "later", text)]
    monkeypatch.setattr("horai.db.migrate.migrations", lambda: known)

    assert [m.name for m in await migrate(connection)] == ["later"]


class _Server:
    """Answers `show` as another server would: our own never runs with fsync=off."""

    def __init__(self, **shown: str) -> None:
        self.shown = {"server_version_num": "140000", "fsync": "on", "synchronous_commit": "on", **shown}

    async def fetchval(self, statement: str) -> str:
        return self.shown[statement.removeprefix("show ")]


@pytest.mark.parametrize(
    ("shown", "message"),
    [({"fsync": "off"}, "fsync=off"), ({"server_version_num": "130014"}, "PostgreSQL 13 is too old")],
)
async def test_a_server_that_would_lose_acknowledged_work_is_refused(shown: dict[str, str], message: str):
    server: Any = _Server(**shown)

    with pytest.raises(MigrationError, match=message):
        await _check_server(server)

    usable: Any = _Server()
    await _check_server(usable)


async def test_a_database_that_answers_before_it_has_written_is_refused(empty_url: str):
    connection = await connect(empty_url, "horai test")
    await connection.execute("set synchronous_commit = off")

    with pytest.raises(MigrationError, match="synchronous_commit=off"):
        await migrate(connection)

    assert await connection.fetchval("select to_regnamespace('horai')") is None
    connection.terminate()


# Partitions


async def partitions(connection: Platform, parent: str) -> set[str]:
    found = await connection.fetch(
        "select c.relname from pg_inherits join pg_class c on c.oid = inhrelid where inhparent = $1::text::regclass",
        f"horai.{parent}",
    )
    return {row["relname"].removeprefix(f"{parent}_") for row in found}


async def test_partitions_are_made_ahead_and_only_once(connection: Platform):
    have = len(await partitions(connection, "event")) - 1

    assert await nodes.make_partitions(connection, have + 8) == 4 * 8
    assert await nodes.make_partitions(connection, have + 8) == 0

    for parent in ("instance_history", "attempt", "event", "note"):
        days = await partitions(connection, parent)
        assert len(days) == have + 8 + 1
        today = await connection.fetchval("select to_char(now() at time zone 'UTC', 'YYYYMMDD')")
        assert {"default", today} <= days


async def test_an_instance_that_ends_today_is_stored_in_the_partition_of_today(connection: Platform):
    await rows.instance(connection, State.SUCCESS)

    today = await connection.fetchval("select to_char(now() at time zone 'UTC', 'YYYYMMDD')")
    where = await connection.fetchval(
        "select relname from horai.instance_history h join pg_class c on c.oid = h.tableoid"
    )
    assert where == f"instance_history_{today}"
    assert await nodes.strays(connection) == 0


async def stray(connection: Platform) -> date:
    """A finished row on a day that has no partition."""
    await rows.instance(connection, State.SUCCESS)
    return await connection.fetchval(
        "update horai.instance_history set finished_at = finished_at + interval '5 days'"
        " returning (finished_at at time zone 'UTC')::date"
    )


async def test_a_row_that_no_day_expected_is_kept_and_counted(connection: Platform):
    await stray(connection)

    assert await nodes.strays(connection) == 1


async def test_a_day_with_strays_does_not_stop_the_days_after_it(connection: Platform):
    """Else each following day would find no partition either, and its rows would stray in turn."""
    day = await stray(connection)

    await nodes.make_partitions(connection, 8)

    days = await partitions(connection, "instance_history")
    assert f"{day:%Y%m%d}" not in days
    assert len(days) == 8
    assert f"{day:%Y%m%d}" in await partitions(connection, "event")
