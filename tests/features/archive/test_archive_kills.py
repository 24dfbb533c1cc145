"""A process that archives is killed at each step: no row is lost, and the next run completes the day."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import archive_yard as yard
import make
import pytest
from databases import Superuser, as_node, superuser

from horai.db import archives
from horai.db.archives import PartitionDay
from horai.features.archive.archiving import archive_partition

ARCHIVES = """
import asyncio, sys
from datetime import date, timedelta
from pathlib import Path
from horai.db.archives import PartitionDay, is_archived
from horai.db.cluster import cluster_id
from horai.db.pool import connect
from horai.features.archive.archiving import archive_partition
from horai.operations.archive_directory import ArchiveDirectory

async def main(url, root, day, drops):
    connection = await connect(url, "horai victim", lock_timeout=timedelta(minutes=1))
    place, part = ArchiveDirectory(Path(root), await cluster_id(connection)), PartitionDay("instance_history", date.fromisoformat(day))
    await archive_partition(connection, place, part)
    if drops:
        async with connection.transaction():
            assert await is_archived(connection, part.table, part.day)
            await connection.execute(f"drop table horai.instance_history_{part.day:%Y%m%d}")

asyncio.run(main(*sys.argv[1:4], sys.argv[4] == "drops"))
"""
ROWS = 300
STEPS = {
    "before the export": "lock table horai.instance_history in access exclusive mode",
    "a verified file without its name": "select from horai.tenant where id = 1 for update",
    "a named file without its record": "lock table horai.archive_file in exclusive mode",
    "a recorded file in a day that is not complete": "lock table horai.archive_partition in exclusive mode",
}
"""The lock that the process waits for, so that it is killed just there."""


@asynccontextmanager
async def waiting_victim(
    url: str, connection: Superuser, root: Path, part: PartitionDay, lock: str, *, drops: bool = False
) -> AsyncGenerator[subprocess.Popen[bytes]]:
    """A process that archives the day and waits for a lock of this test. It is killed and the lock released."""
    holder = await superuser(url, "horai holder")
    transaction = holder.transaction()
    await transaction.start()
    await holder.execute(lock)
    login = url if drops else as_node(url)
    arguments = [login, str(root), f"{part.day:%Y-%m-%d}", "drops" if drops else "keeps"]
    victim = subprocess.Popen([sys.executable, "-c", ARCHIVES, *arguments])
    try:
        async with asyncio.timeout(60):
            while not await connection.fetchval(
                "select exists (select from pg_stat_activity where application_name = 'horai victim' and wait_event_type = 'Lock')"
            ):
                assert victim.poll() is None, "it has ended before it was killed"
                await asyncio.sleep(0.02)
        yield victim
        os.kill(victim.pid, signal.SIGKILL)
        assert victim.wait(30) == -signal.SIGKILL
        await transaction.rollback()
    finally:
        victim.kill()
        victim.wait()
        holder.terminate()


async def keys_of(connection: Superuser) -> set[str]:
    return {row["key"] for row in await connection.fetch("select key from horai.instance_history")}


@pytest.mark.parametrize("step", STEPS)
async def test_a_kill_at_any_step_loses_nothing_and_the_next_run_completes_the_day(
    url: str, connection: Superuser, tmp_path: Path, step: str
) -> None:
    async with make.scope(url) as scope:
        part = await yard.history(connection, await make.job(scope), yard.ago(20), ROWS)
    before = await keys_of(connection)
    place = await yard.place(connection, tmp_path)

    async with waiting_victim(url, connection, tmp_path, part, STEPS[step]):
        named = len(yard.parquet(tmp_path))
        work = [file.name for file in yard.files(tmp_path) if ".work" in file.parts]
    records = await archives.files_of_day(connection, part)

    states = {
        "before the export": (0, 0),
        "a verified file without its name": (0, 0),
        "a named file without its record": (1, 0),
        "a recorded file in a day that is not complete": (1, 1),
    }
    assert (named, len(records)) == states[step]
    assert ("tenant-1.parquet" in work) == (step == "a verified file without its name")
    assert await keys_of(connection) == before
    assert not await archives.is_archived(connection, part.table, part.day), "nothing may be dropped"

    done = await archive_partition(connection, place, part)

    assert (done.written, done.kept) == (([], [1]) if records else ([1], []))
    [file] = yard.files(tmp_path)
    assert {key for (key,) in yard.read(file, "key")} == before
    assert await archives.is_archived(connection, part.table, part.day)


async def test_a_kill_before_the_drop_is_committed_keeps_the_rows_and_the_files(
    url: str, connection: Superuser, tmp_path: Path
) -> None:
    async with make.scope(url) as scope:
        part = await yard.history(connection, await make.job(scope), yard.ago(20), ROWS)
    before = await keys_of(connection)
    name = f"horai.instance_history_{part.day:%Y%m%d}"

    async with waiting_victim(url, connection, tmp_path, part, f"lock table {name} in access share mode", drops=True):
        assert len(yard.parquet(tmp_path)) == 1
    assert await archives.is_archived(connection, part.table, part.day)
    assert await keys_of(connection) == before

    async with asyncio.timeout(30):
        while await connection.fetchval(
            "select exists (select from pg_stat_activity where application_name = 'horai victim')"
        ):
            await asyncio.sleep(0.02)
    await connection.execute(f"drop table {name}")
    [file] = yard.files(tmp_path)
    assert {key for (key,) in yard.read(file, "key")} == before
