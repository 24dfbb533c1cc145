"""The database sessions of a running `horai up`: none but that of a migration belongs to a superuser."""

import asyncio
import re
from pathlib import Path

import asyncpg
from harness import HoraiProcess
from terminal import Terminal
from workers import Shop, elsewhere

from horai.db.pool import Dedicated
from horai.embedded import url_of
from horai.embedded.admin import admin_url
from horai.embedded.sockets import NODE_LOGIN, SUPERUSER

CONNECTED = re.compile(r"connection authorized: user=(\S+) database=\S+ application_name=(.+)$", re.MULTILINE)
SESSIONS = """
select application_name as name, rolsuper from pg_stat_activity join pg_roles on pg_roles.oid = usesysid
where backend_type = 'client backend' and pid <> pg_backend_pid()
"""
ADMINISTRATION = {"horai-supervisor", "horai migrate"}
RAN = "select exists (select from horai.job_instance join horai.job_definition using (job_id) where name = 'ping' and state = 'SUCCESS')"
TEST = "test of sessions"


async def as_superuser(up: HoraiProcess) -> Dedicated:
    return await asyncpg.connect(admin_url(url_of(up.data_dir)), server_settings={"application_name": TEST})


async def test_C2a_no_session_but_that_of_a_migration_belongs_to_a_superuser(short_place: Path, tmp_path: Path) -> None:
    up = HoraiProcess(short_place / "sessions").start()
    admin = await as_superuser(up)
    await admin.execute("alter system set log_connections = on")
    await admin.close()
    assert up.stop() == 0
    up.start()
    admin, url = await as_superuser(up), url_of(up.data_dir)
    horai = Terminal(HORAI_SERVER=up.base, HORAI_DATA_DIR=str(up.data_dir))
    try:
        for command in (
            ("jobs", "create", "ping", "--every", "1s", "--url", f"{up.base}/healthz", "--method", "GET"),
            ("db", "verify"),
            ("keyring", "status"),
            ("migrate",),
        ):
            ended = horai(*command)
            assert ended.code == 0, ended
        with Shop(tmp_path / "shop").worker("", HORAI_DATA_DIR=str(up.data_dir)) as worker:
            worker.started()
            async with elsewhere(url) as job:
                assert await (await job("greet").enqueue("Ada")).result(timeout=30) == "hello Ada"
                async with asyncio.timeout(30):
                    while not await admin.fetchval(RAN):
                        await asyncio.sleep(0.02)
                assert horai("keys", "create", "--in-database", "--role", "platform-admin").code == 0
                sessions = await admin.fetch(SESSIONS)
    finally:
        await admin.close()
        assert up.stop() == 0

    assert [row["name"] for row in sessions if row["rolsuper"]] == []
    assert {"horai api", "horai dispatcher", "horai worker", "horai client"} <= {row["name"] for row in sessions}
    connected = CONNECTED.findall((up.data_dir / "server.log").read_text())
    assert {name for user, name in connected if user == SUPERUSER} == {*ADMINISTRATION, TEST}
    assert {user for user, _ in connected} == {SUPERUSER, NODE_LOGIN}
