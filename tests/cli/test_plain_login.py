"""A database of the operator's own: its nodes have a plain login that owns nothing, as the guide sets it up."""

import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import harness
import pytest
from databases import admin_of, url_for
from dumps import PROGRAMS
from receiver import Receiver
from terminal import Terminal

from horai.core.settings import EngineSettings
from horai.db.migrate import NOT_OWNER, Migration, MigrationError, migrations
from horai.embedded import EmbeddedPostgres
from horai.process import prepare

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "securing.md"
SETUP = re.compile(r"^\$ (horai migrate .*)\n\$ (psql .*)\n\$ (horai node .*)\n", re.MULTILINE)
OWNED = "select count(*) from pg_class where relowner = 'horai_node'::regrole"
USERS = (
    "select distinct usename::text from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
)

Urls = Callable[[str], str]
"""The URL of the database as another role."""


@pytest.fixture
def own(postgres: EmbeddedPostgres) -> Iterator[Urls]:
    """An empty database of the role `horai_owner`, which cannot create roles. The role `postgres` is a superuser."""
    admin = admin_of(postgres)
    admin.execute("create role postgres login superuser; create role horai_owner login")
    admin.execute("create database own owner horai_owner")
    yield lambda role: url_for(postgres, "own").replace("//horai@", f"//{role}@")
    admin.execute("drop database own with (force)")
    admin.execute("drop role if exists horai_node; drop role horai_owner, postgres")


def set_up(own: Urls) -> str:
    """Run the commands of the guide, and return the URL that it gives to the node."""
    found = SETUP.search(GUIDE.read_text())
    assert found is not None
    migrated, granted, node = (
        [re.sub(r"^postgresql://(\w+).*@db/horai$", lambda named: own(named[1]), word) for word in shlex.split(line)]
        for line in found.groups()
    )
    ended = Terminal()(*migrated[1:])
    assert ended.code == 0, ended.err
    subprocess.run([PROGRAMS / "psql", "--no-psqlrc", "--quiet", *granted[1:]], check=True)
    return node[node.index("--database-url") + 1]


async def test_C2a_the_three_commands_of_the_guide_set_up_a_node_whose_login_owns_nothing(own: Urls) -> None:
    url = set_up(own)
    async with Receiver() as receiver, harness.node(url) as api:
        target = {"type": "http", "url": receiver.url("/hook")}
        made = await api("POST", "/api/v1/jobs", {"name": "publish", "every": "1s", "target": target})
        assert made.status == 201
        await receiver.wait_for(2)
        connection = await asyncpg.connect(own("postgres"))
        users, owned = await connection.fetch(USERS), await connection.fetchval(OWNED)
        await connection.close()
    verified = Terminal()("db", "verify", "--database-url", url)

    assert [row["usename"] for row in users] == ["horai_node"]
    assert owned == 0
    assert verified.code == 0, verified.out


async def test_a_login_that_owns_nothing_is_told_who_migrates(own: Urls, monkeypatch: pytest.MonkeyPatch) -> None:
    url = set_up(own)
    known = [*migrations(), Migration(len(migrations()) + 1, "later", "create table horai.later ()")]
    monkeypatch.setattr("horai.db.migrate.migrations", lambda: known)

    with pytest.raises(MigrationError) as refused:
        await prepare(url, EngineSettings())

    assert refused.value.hint == NOT_OWNER
    await prepare(own("horai_owner"), EngineSettings())
    await prepare(url, EngineSettings())
