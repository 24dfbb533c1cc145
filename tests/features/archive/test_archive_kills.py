"""A process that archives is killed at each step: no row is lost, and the next run completes the day."""

import asyncio
from pathlib import Path

import archive_yard as yard
import make
import pytest
from archive_victims import Victim, waiting_for_lock
from databases import Superuser

from horai.db import archives
from horai.features.archive.archiving import archive_partition

ROWS = 300
STEPS = {
    "before the export": "lock table horai.instance_history in access exclusive mode",
    "a verified file without its name": "select from horai.tenant where id = 1 for update",
    "a named file without its record": "lock table horai.archive_file in exclusive mode",
    "a recorded file in a day that is not complete": "lock table horai.archive_partition in exclusive mode",
}
"""The lock that the process waits for, so that it is killed just there."""


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

    async with waiting_for_lock(Victim(url, str(tmp_path), tmp_path), connection, part, STEPS[step]):
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

    victim, lock = Victim(url, str(tmp_path), tmp_path), f"lock table {name} in access share mode"
    async with waiting_for_lock(victim, connection, part, lock, drops=True):
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
