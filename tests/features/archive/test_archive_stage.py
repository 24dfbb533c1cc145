"""The stage that archives: the hot window, an archive that cannot be written, and the alert about it."""

import asyncio
import resource
from datetime import timedelta
from pathlib import Path
from typing import cast

import alert_yard
import archive_yard as yard
import harness
import make
import pytest
from alert_yard import QUICK, kinds, told
from databases import Superuser
from receiver import Answer, Receiver
from stages import Workbench, workbench

from api import given
from horai.db import archives
from horai.db.instance_lists import InstanceFilter, PageStart, list_instances
from horai.features import archive
from horai.features.archive.stage import LOOK_AGAIN, RETRY, SWEEP, ArchiveStage

FOURTEEN_DAYS = timedelta(days=14)


def archiver(bench: Workbench) -> ArchiveStage:
    return cast("ArchiveStage", bench.feature_stage(archive.FEATURE))


async def run(stage: ArchiveStage, bench: Workbench) -> timedelta:
    """Let the stage archive all that is due; return the time until its next step."""
    now = bench.clock.now()
    assert await stage.step(now) == now + LOOK_AGAIN
    await stage.finished()
    assert stage.signal.is_set(), "its end wakes the runner"
    return await stage.step(now) - now


async def test_C44_history_is_hot_for_two_weeks_and_readable_in_the_archive_for_ninety_days(
    url: str, connection: Superuser, tmp_path: Path
) -> None:
    async with workbench(url, archive_dir=str(tmp_path)) as bench:
        assert bench.settings.archive_after == FOURTEEN_DAYS, "the default"
        job = await make.job(bench.scope)
        for days in (13, 15, 90):
            await yard.history(connection, job, yard.ago(days), 10, prefix=f"{days}-")

        assert await run(archiver(bench), bench) == SWEEP

        for table in archives.TABLES:
            assert not await archives.is_archived(connection, table, yard.ago(13)), "it is hot"
            for days in (15, 90):
                assert await archives.is_archived(connection, table, yard.ago(days))
                await connection.execute(f"drop table horai.{table}_{yard.ago(days):%Y%m%d}")
        hot = await list_instances(connection, 1, PageStart.of_all(upwards=False), 50, InstanceFilter())
        assert {row.key for row in hot.rows} == {f"13-{n}" for n in range(1, 11)}
        assert await run(archiver(bench), bench) == SWEEP, "a later run deletes no file"
    async with harness.node(url, archive_dir=str(tmp_path)) as api:
        for days in (15, 90):
            begin, end = yard.ago(days), yard.ago(days - 1)
            path = f"/api/v1/instances?archived=true&from={begin}T00:00:00Z&to={end}T00:00:00Z"
            found = (await api("GET", path)).json["items"]
            assert {item["key"] for item in found} == {f"{days}-{n}" for n in range(1, 11)}
        assert (await api("GET", "/api/v1/instances?limit=100")).json["items"][0]["key"].startswith("13-")


async def test_a_process_without_a_directory_has_no_such_stage(url: str) -> None:
    async with workbench(url) as bench:
        with pytest.raises(ValueError, match="not enough values"):
            archiver(bench)


async def test_only_the_leader_archives_and_an_idle_stage_sends_two_statements(url: str, tmp_path: Path) -> None:
    async with workbench(url, archive_dir=str(tmp_path)) as bench:
        stage = archiver(bench)
        tap = await bench.tap(stage.line)
        bench.lease.trusted = False
        now = bench.clock.now()
        assert await stage.step(now) == now + SWEEP
        assert await tap.names() == []
        bench.lease.trusted = True

        assert await run(stage, bench) == SWEEP

        assert await tap.names() == ["doomed_files", "partitions_to_archive"]


async def test_a_full_disk_is_recorded_and_tried_again_and_the_days_rows_stay(
    url: str, connection: Superuser, tmp_path: Path
) -> None:
    async with workbench(url, archive_dir=str(tmp_path)) as bench:
        job = await make.job(bench.scope)
        part = await yard.history(connection, job, yard.ago(20), 5)
        await connection.execute(
            "update horai.instance_history set payload = to_json((select string_agg(md5(n::text), '') from generate_series(1, 20000) n))"
        )
        stage, limits = archiver(bench), resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))  # a write beyond it fails as on a full disk
        try:
            assert await run(stage, bench) == RETRY
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        failed = await connection.fetchrow("select * from horai.archive_partition where table_name = $1", part.table)
        assert failed is not None
        assert failed["error"].startswith("OSError: ")
        assert (failed["archived_at"], failed["tries"]) == (None, 1)
        assert yard.files(tmp_path) == [], "the space is free again"
        assert await connection.fetchval("select count(*) from horai.instance_history") == 5
        assert not await archives.is_archived(connection, part.table, part.day)
        assert await archives.is_archived(connection, "event", part.day), "other tables of the day are archived"
        await connection.execute("update horai.archive_partition set failed_at = failed_at - interval '1 h'")

        assert await run(stage, bench) == SWEEP

        again = await connection.fetchrow("select * from horai.archive_partition where table_name = $1", part.table)
        assert again is not None
        assert (again["failing_since"], again["failed_at"], again["error"]) == (None, None, None)
        assert await archives.is_archived(connection, part.table, part.day)


async def test_while_the_archive_cannot_be_written_instances_run_and_an_alert_fires_until_it_can(
    url: str, connection: Superuser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RETRY", "LOOK_AGAIN"):
        monkeypatch.setattr(f"horai.features.archive.stage.{name}", timedelta(milliseconds=200))
    blocked = tmp_path / "archive"
    blocked.write_text("a file where the directory should be")
    async with make.scope(url) as scope:
        await yard.history(connection, await make.job(scope), yard.ago(20), 5)

    async with (
        Receiver() as receiver,
        harness.node(url, archive_dir=str(blocked), **QUICK) as api,
    ):
        await alert_yard.watching(api, receiver, "ARCHIVE_FAILED")
        [fired] = await told(receiver, 1)
        job = await given.scripted(api, receiver, Answer(200))
        made = await api("POST", f"/api/v1/jobs/{job['name']}/trigger", Idempotency_Key="one")
        await api.until_state(made.json["instance"]["id"], "SUCCESS")
        blocked.unlink()
        messages = await told(receiver, 2)
        while kinds(messages)[-1] != "resolved":
            messages = await told(receiver, len(messages) + 1)
        async with asyncio.timeout(30):
            while not await archives.is_archived(connection, "instance_history", yard.ago(20)):
                await asyncio.sleep(0.02)

    assert {alert["data"]["table"] for alert in fired["alerts"]} <= set(archives.TABLES)
    assert fired["alerts"][0]["data"]["error"].startswith("FileExistsError: ")
    assert "History is not archived" in fired["title"]


async def test_a_stop_ends_the_work_and_the_next_process_begins_again(
    url: str, connection: Superuser, tmp_path: Path
) -> None:
    async with workbench(url, archive_dir=str(tmp_path)) as bench:
        part = await yard.history(connection, await make.job(bench.scope), yard.ago(20), 5_000)
        place = await yard.place(connection, tmp_path)
        stage = archiver(bench)
        await stage.step(bench.clock.now())
        async with asyncio.timeout(30):
            while not place.work.exists():
                await asyncio.sleep(0)
        await stage.close()
        assert yard.files(tmp_path) == []
        stage.line.drop()

        assert await run(archiver(bench), bench) == SWEEP

        assert await archives.is_archived(connection, part.table, part.day)
