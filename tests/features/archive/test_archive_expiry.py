"""Archived days expire after `--keep-archive`: files and records go together, and a wrong clock erases nothing."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import cast

import archive_yard as yard
import harness
import make
import pytest
from databases import Superuser
from s3_server import S3Server
from stages import Workbench, workbench

from horai.features import archive
from horai.features.archive.archiving import archive_partition
from horai.features.archive.stage import RETRY, SWEEP, ArchiveStage
from horai.operations import archive_removal, s3_client
from horai.operations.archive_directory import DirectoryStore
from horai.operations.archive_place import ArchivePlace
from horai.operations.archive_removal import DEAD_AFTER

KEEP = timedelta(days=90)


def archiver(bench: Workbench) -> ArchiveStage:
    return cast("ArchiveStage", bench.feature_stage(archive.FEATURE))


async def run(stage: ArchiveStage, bench: Workbench) -> timedelta:
    now = bench.clock.now()
    await stage.step(now)
    await stage.finished()
    return await stage.step(now) - now


async def archived(bench: Workbench, connection: Superuser, place: ArchivePlace, *ages: int, keeps: int = 0) -> None:
    """Days that are archived, and that the history has dropped, except for the one of age `keeps`."""
    job = await make.job(bench.scope, f"of-{ages[0]}")
    for days in ages:
        part = await yard.history(connection, job, yard.ago(days), 3, prefix=f"{days}-")
        await archive_partition(connection, place, part)
        for table in ("instance_history", "attempt", "event", "note"):
            if days != keeps:
                await connection.execute(f"drop table horai.{table}_{yard.ago(days):%Y%m%d}")


async def days_of(connection: Superuser, table: str = "archive_file") -> list[date]:
    rows = await connection.fetch(
        f"select distinct day from horai.{table} where day < $1 order by day desc", yard.ago(14)
    )
    return [row["day"] for row in rows]


async def test_days_beyond_the_time_disappear_from_the_list_and_from_the_disk(
    url: str, connection: Superuser, tmp_path: Path
) -> None:
    async with workbench(url, archive_dir=str(tmp_path), archive_keep=KEEP) as bench:
        await archived(bench, connection, await yard.place(connection, tmp_path), 15, 89, 90, 91, 400)

        assert await run(archiver(bench), bench) == SWEEP

        kept = [yard.ago(days) for days in (15, 89, 90)]
        assert await days_of(connection) == kept
        assert await days_of(connection, "archive_partition") == kept
        assert sorted(file.name[:10] for file in yard.parquet(tmp_path)) == sorted(map(str, kept))
        assert await yard.strays(connection) == {}
    async with harness.node(url, archive_dir=str(tmp_path)) as api:
        listed = (await api("GET", "/api/v1/archive")).json["items"]
        assert [item["day"] for item in listed] == [str(day) for day in kept]
        gone = f"/api/v1/instances?archived=true&from={yard.ago(91)}T00:00:00Z&to={yard.ago(90)}T00:00:00Z"
        assert (await api("GET", gone)).json["items"] == []


async def test_nothing_expires_without_the_setting(url: str, connection: Superuser, tmp_path: Path) -> None:
    async with workbench(url, archive_dir=str(tmp_path)) as bench:
        await archived(bench, connection, await yard.place(connection, tmp_path), 15, 4000)
        await run(archiver(bench), bench)
        assert await days_of(connection) == [yard.ago(15), yard.ago(4000)]


async def test_a_day_that_the_history_still_has_does_not_expire(
    url: str, connection: Superuser, tmp_path: Path
) -> None:
    async with workbench(url, archive_dir=str(tmp_path), archive_keep=KEEP) as bench:
        await archived(bench, connection, await yard.place(connection, tmp_path), 15, 100, 101, keeps=101)
        await run(archiver(bench), bench)
        assert await days_of(connection) == [yard.ago(15), yard.ago(101)]


async def test_a_day_younger_than_the_history_does_not_expire(url: str, connection: Superuser, tmp_path: Path) -> None:
    long = timedelta(days=200)
    async with workbench(url, archive_dir=str(tmp_path), archive_keep=KEEP, history_keep=long) as bench:
        await archived(bench, connection, await yard.place(connection, tmp_path), 15, 100, 201)
        await run(archiver(bench), bench)
        assert await days_of(connection) == [yard.ago(15), yard.ago(100)]


@pytest.mark.parametrize("wrong", [timedelta(hours=2), timedelta(hours=-2), timedelta(days=400)])
async def test_nothing_expires_while_the_clocks_of_node_and_database_differ(
    url: str, connection: Superuser, tmp_path: Path, wrong: timedelta
) -> None:
    async with workbench(url, archive_dir=str(tmp_path), archive_keep=KEEP) as bench:
        await archived(bench, connection, await yard.place(connection, tmp_path), 15, 100)
        store, now = DirectoryStore(tmp_path), datetime.now(UTC)
        stage = ArchiveStage(bench.line("archive"), bench.lease, store, bench.settings, clock=lambda: now + wrong)
        await run(stage, bench)
        assert await days_of(connection) == [yard.ago(15), yard.ago(100)]


async def test_nothing_expires_while_the_newest_archived_day_is_older_than_it_can_be(
    url: str, connection: Superuser, tmp_path: Path
) -> None:
    async with workbench(url, archive_dir=str(tmp_path), archive_keep=KEEP) as bench:
        place = await yard.place(connection, tmp_path)
        await archived(bench, connection, place, 60, 100, 150)  # as if all clocks were 40 days ahead
        stage = archiver(bench)
        await run(stage, bench)
        assert await days_of(connection) == [yard.ago(60), yard.ago(100), yard.ago(150)]
        await archived(bench, connection, place, 16)
        await run(stage, bench)
        assert await days_of(connection) == [yard.ago(16), yard.ago(60)]


async def test_a_bucket_that_refuses_keeps_the_names_until_it_deletes(
    url: str, connection: Superuser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_client, "PAUSES", (0.0, 0.0))
    monkeypatch.setattr(archive_removal, "AT_ONCE", 2)
    with S3Server() as storage:
        async with workbench(url, **yard.in_bucket(storage, tmp_path, archive_keep=KEEP)) as bench:
            place = await yard.bucket_place(connection, storage, tmp_path)
            await archived(bench, connection, place, 15, 100, 101, 102, 103, 104)
            stage = archiver(bench)
            storage.refuse(403, "AccessDenied")

            assert await run(stage, bench) == RETRY

            assert await days_of(connection) == [yard.ago(15)], "the list shows no file that is being deleted"
            assert len(await yard.strays(connection)) == 5
            assert len(storage.objects) == 6
            storage.recover()
            assert await run(stage, bench) == SWEEP
            assert len(storage.objects) == 1
            assert await yard.strays(connection) == {}
            await stage.close()
            await place.store.close()


async def test_a_name_without_a_record_is_forgotten_if_the_file_has_one(
    url: str, connection: Superuser, tmp_path: Path
) -> None:
    async with workbench(url, archive_dir=str(tmp_path)) as bench:
        await archived(bench, connection, await yard.place(connection, tmp_path), 15)
        [path] = await yard.recorded(connection)
        await connection.execute(
            "insert into horai.archive_stray (path, tenant_id, since) values ($1, 1, clock_timestamp() - $2::interval)",
            *(path, DEAD_AFTER),
        )
        await run(archiver(bench), bench)
        assert await yard.strays(connection) == {}
        assert await yard.recorded(connection) == {path}
        assert [str(file.relative_to(tmp_path)) for file in yard.parquet(tmp_path)] == [path]
