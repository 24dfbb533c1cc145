"""A process that archives to a bucket is killed at each step: no row is lost, no record is wrong, no object is forgotten."""

from collections.abc import Generator
from pathlib import Path

import archive_yard as yard
import make
import pytest
from archive_victims import Victim, killed_at, waiting_for_lock
from databases import Superuser
from s3_server import S3Server

from horai.db import archives
from horai.db.archives import PartitionDay
from horai.features.archive.archiving import archive_partition
from horai.operations.archive_removal import DEAD_AFTER, delete_doomed

ROWS = 300
LOCKS = {
    "before the export": ("lock table horai.instance_history in access exclusive mode", (0, 0, 0)),
    "before the object is named": ("lock table horai.archive_stray in exclusive mode", (0, 0, 0)),
    "an object without its record": ("lock table horai.archive_file in exclusive mode", (1, 0, 1)),
    "a recorded object in a day that is not complete": (
        "lock table horai.archive_partition in exclusive mode",
        (1, 1, 0),
    ),
}
"""The lock at which the process is killed, and how many objects, records and names without a record there are then."""
HOLDS = {
    "while it is uploaded": ("PUT", False, (0, 0, 1)),
    "before the answer to the upload": ("PUT", True, (1, 0, 1)),
    "before it is read back": ("GET", False, (1, 0, 1)),
}
"""The request at which the process is killed."""


@pytest.fixture
def storage() -> Generator[S3Server]:
    with S3Server() as server:
        yield server


async def keys_of(connection: Superuser) -> set[str]:
    return {row["key"] for row in await connection.fetch("select key from horai.instance_history")}


async def day(url: str, connection: Superuser) -> PartitionDay:
    async with make.scope(url) as scope:
        return await yard.history(connection, await make.job(scope), yard.ago(20), ROWS)


async def counts(connection: Superuser, storage: S3Server) -> tuple[int, int, int]:
    return len(storage.objects), len(await yard.recorded(connection)), len(await yard.strays(connection))


async def completed(connection: Superuser, storage: S3Server, cache: Path, part: PartitionDay, is_kept: bool) -> None:
    """The next run completes the day, and every object has its record."""
    before = await keys_of(connection)
    assert len(before) == ROWS
    assert not await archives.is_archived(connection, part.table, part.day), "nothing may be dropped"
    place = await yard.bucket_place(connection, storage, cache)

    done = await archive_partition(connection, place, part)

    assert (done.written, done.kept) == (([], [1]) if is_kept else ([1], []))
    assert await archives.is_archived(connection, part.table, part.day)
    [content] = storage.objects.values()
    (cache / "read.parquet").write_bytes(content)
    assert {key for (key,) in yard.read(cache / "read.parquet", "key")} == before
    assert {f"{yard.PREFIX}/{path}" for path in await yard.recorded(connection)} == set(storage.objects)
    assert await yard.strays(connection) == {}
    await place.store.close()


@pytest.mark.parametrize("step", LOCKS)
async def test_a_kill_at_any_statement_loses_nothing_and_leaves_no_wrong_record(
    url: str, connection: Superuser, tmp_path: Path, storage: S3Server, step: str
) -> None:
    part = await day(url, connection)
    lock, wanted = LOCKS[step]
    victim = Victim(url, f"s3://archive/{yard.PREFIX}", tmp_path / "cache", storage.environment)

    async with waiting_for_lock(victim, connection, part, lock):
        pass

    assert await counts(connection, storage) == wanted
    await completed(connection, storage, tmp_path, part, is_kept=wanted[1] == 1)


@pytest.mark.parametrize("step", HOLDS)
async def test_a_kill_at_any_request_loses_nothing_and_leaves_no_wrong_record(
    url: str, connection: Superuser, tmp_path: Path, storage: S3Server, step: str
) -> None:
    part = await day(url, connection)
    method, after, wanted = HOLDS[step]
    victim = Victim(url, f"s3://archive/{yard.PREFIX}", tmp_path / "cache", storage.environment)

    with storage.holding(method, after=after) as hold:
        await killed_at(victim, part, hold)
        assert await counts(connection, storage) == wanted

    storage.stop()  # a request that waited ends with its connection
    storage.start()
    await completed(connection, storage, tmp_path, part, is_kept=False)


async def test_an_object_that_a_killed_process_left_is_deleted_if_no_later_run_takes_it(
    url: str, connection: Superuser, tmp_path: Path, storage: S3Server
) -> None:
    part = await day(url, connection)
    victim = Victim(url, f"s3://archive/{yard.PREFIX}", tmp_path / "cache", storage.environment)
    with storage.holding("GET") as hold:
        await killed_at(victim, part, hold)
    place = await yard.bucket_place(connection, storage, tmp_path)

    assert await delete_doomed(connection, place.store) == 0, "a process may be at work"
    await connection.execute("update horai.archive_stray set since = since - $1::interval", DEAD_AFTER)
    assert await delete_doomed(connection, place.store) == 1

    assert await counts(connection, storage) == (0, 0, 0)
    await place.store.close()
