"""A deleted tenant leaves no file in the archive."""

from pathlib import Path

import archive_yard as yard
import make
from databases import Superuser
from stages import workbench

from horai.db.archives import PartitionDay
from horai.features.archive.archiving import archive_partition
from horai.features.tenants.eraser import IDLE, PAUSE, Eraser
from horai.operations.archive_directory import DirectoryStore


async def leaving_tenant(url: str, connection: Superuser, root: Path) -> tuple[int, PartitionDay]:
    """A tenant with an archived day that is being deleted, beside one that stays."""
    north = await yard.second_tenant(connection)
    async with make.scope(url) as scope:
        job = await make.job(scope)
        await yard.history(connection, job, yard.ago(20), 3)
        part = await yard.history(connection, job, yard.ago(20), 4, tenant_id=north)
    await archive_partition(connection, await yard.place(connection, root), part)
    assert len(yard.parquet(root)) == 2
    await connection.execute("update horai.tenant set paused_at = now(), deleting_at = now() where id = $1", north)
    return north, part


async def erase(eraser: Eraser, connection: Superuser, tenant_id: int) -> None:
    now = await connection.fetchval("select now()")
    for _ in range(50):
        await eraser.step(now)
        if not await connection.fetchval("select count(*) from horai.tenant where id = $1", tenant_id):
            return
    raise AssertionError("the tenant is still there")


async def test_erasing_a_tenant_deletes_its_files_its_restored_rows_and_no_others(
    url: str, connection: Superuser, tmp_path: Path
) -> None:
    north, part = await leaving_tenant(url, connection, tmp_path)
    restored = (
        "insert into horai.restored_instance (tenant_id, archived_day, id, job_id, job, final_state, fire_time, execute_time, created_at,"
        " finished_at, attempt, retry_count, fence, encrypted) values ($1, $2, 1, 1, 'a', 'DEAD', now(), now(), now(), now(), 1, 0, 1, false)"
    )
    await connection.execute(restored, north, part.day)
    async with workbench(url) as bench:
        eraser = Eraser(bench.line("eraser"), bench.lease, bench.scope.wakeups, archive=DirectoryStore(tmp_path))
        await erase(eraser, connection, north)

    [left] = yard.parquet(tmp_path)
    assert "tenant-1" in left.parts
    assert [row["tenant_id"] for row in await connection.fetch("select tenant_id from horai.archive_file")] == [1]
    assert await connection.fetchval("select count(*) from horai.restored_instance") == 0


async def test_a_tenant_whose_files_are_out_of_reach_is_kept(url: str, connection: Superuser, tmp_path: Path) -> None:
    north, _ = await leaving_tenant(url, connection, tmp_path)
    async with workbench(url) as bench:
        blind = Eraser(bench.line("eraser"), bench.lease, bench.scope.wakeups)
        now = bench.clock.now()
        assert await blind.step(now) == now + IDLE
        assert await connection.fetchval("select count(*) from horai.instance_history where tenant_id = $1", north) == 4
        assert len(yard.parquet(tmp_path)) == 2
        seeing = Eraser(bench.line("eraser 2"), bench.lease, bench.scope.wakeups, archive=DirectoryStore(tmp_path))
        assert await seeing.step(now) == now + PAUSE
        await erase(seeing, connection, north)

    assert len(yard.parquet(tmp_path)) == 1


async def test_a_tenant_that_is_being_deleted_gets_no_new_file(url: str, connection: Superuser, tmp_path: Path) -> None:
    north, part = await leaving_tenant(url, connection, tmp_path)
    place = await yard.place(connection, tmp_path)
    await place.store.forget(place.directory_of(north))
    await connection.execute("delete from horai.archive_file where tenant_id = $1", north)

    done = await archive_partition(connection, place, part)

    assert (done.written, done.kept) == ([], [1])
    assert len(yard.files(tmp_path)) == 1
