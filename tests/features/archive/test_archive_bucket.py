"""The archive in a bucket: written, read back, read through a cache, replaced, and deleted with its tenant."""

import asyncio
import resource
from collections.abc import Generator
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
from s3_server import KEY_ID, SECRET, S3Server
from stages import Workbench, workbench

from api import expect, given
from horai.db import archive_strays, archives
from horai.features import archive
from horai.features.archive.archiving import archive_partition
from horai.features.archive.stage import LOOK_AGAIN, RETRY, SWEEP, ArchiveStage
from horai.features.tenants.eraser import Eraser
from horai.operations import archive_bucket, s3_client
from horai.operations.archive_place import ArchiveBusy
from horai.operations.archive_removal import DEAD_AFTER
from horai.operations.s3_client import BucketFailed

DAY = yard.ago(20)
SPAN = f"from={DAY}T00:00:00Z&to={DAY + timedelta(days=1)}T00:00:00Z"


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Generator[S3Server]:
    monkeypatch.setattr(s3_client, "PAUSES", (0.0, 0.0))
    with S3Server() as server:
        yield server


def objects(storage: S3Server) -> set[str]:
    """The paths of all objects, below the prefix."""
    return {key.removeprefix(f"{yard.PREFIX}/") for key in storage.objects}


async def run(stage: ArchiveStage, bench: Workbench) -> timedelta:
    """Let the stage do all that is due; return the time until its next step."""
    now = bench.clock.now()
    assert await stage.step(now) == now + LOOK_AGAIN
    await stage.finished()
    return await stage.step(now) - now


def archiver(bench: Workbench) -> ArchiveStage:
    return cast("ArchiveStage", bench.feature_stage(archive.FEATURE))


async def test_a_day_in_a_bucket_reads_as_it_did_in_the_history(
    url: str, connection: Superuser, tmp_path: Path, storage: S3Server
) -> None:
    async with workbench(url, **yard.in_bucket(storage, tmp_path / "own")) as bench:
        for days in (20, 90):
            await yard.history(connection, await make.job(bench.scope, f"of-{days}"), yard.ago(days), 25)
        async with harness.node(url, **yard.in_bucket(storage, tmp_path / "cache", archive_keep=None)) as api:
            pages = [
                f"/api/v1/instances?from={yard.ago(days)}T00:00:00Z&to={yard.ago(days - 1)}T00:00:00Z"
                for days in (20, 90)
            ]
            before = [(await api("GET", page)).json for page in pages]
            stage = archiver(bench)
            assert await run(stage, bench) == SWEEP
            await stage.close()
            for days in (20, 90):
                assert await archives.is_archived(connection, "instance_history", yard.ago(days))
                await connection.execute(f"drop table horai.instance_history_{yard.ago(days):%Y%m%d}")

            after = [(await api("GET", f"{page}&archived=true")).json for page in pages]
            fetched = len([seen for seen in storage.seen if seen.method == "GET"])
            again = [(await api("GET", f"{page}&archived=true")).json for page in pages]
            restored = (await api("POST", f"/api/v1/archive/restored/{DAY}")).json
            listed = (await api("GET", "/api/v1/archive")).json["items"]
            async with api.session.get(f"{api.base}/metrics") as response:
                figures = (await response.text()).splitlines()

    assert [len(page["items"]) for page in before] == [25, 25]
    assert after == again == before
    assert len([seen for seen in storage.seen if seen.method == "GET"]) == fetched, "the cache has the files"
    assert (restored["restored"], restored["complete"]) == (25, True)
    assert {item["path"] for item in listed} == objects(storage) == await yard.recorded(connection)
    size = sum(map(len, storage.objects.values()))
    assert {f"horai_archive_bytes {float(size)}", "horai_archive_failed_dates 0.0"} <= set(figures)
    assert "horai_archive_dates 2.0" in figures
    assert await yard.strays(connection) == {}
    assert yard.files(tmp_path / "own") == [], "nothing is left of the upload"
    cached = yard.files(tmp_path / "cache")
    assert {place.stat().st_mode & 0o777 for place in cached} == {0o600}
    assert sorted(place.read_bytes() for place in cached) == sorted(storage.objects.values())


async def test_an_object_that_reads_back_otherwise_is_not_recorded(
    url: str, connection: Superuser, tmp_path: Path, storage: S3Server
) -> None:
    async with make.scope(url) as scope:
        part = await yard.history(connection, await make.job(scope), DAY, 5)
    place = await yard.bucket_place(connection, storage, tmp_path)
    storage.flips_bytes = True
    with pytest.raises(BucketFailed, match="the object read back has the SHA-256"):
        await archive_partition(connection, place, part)
    assert not await archives.is_archived(connection, part.table, part.day)
    assert await yard.recorded(connection) == set()
    assert set(await yard.strays(connection)) == objects(storage), "the database names the object"
    storage.recover()

    assert (await archive_partition(connection, place, part)).written == [1]

    assert await archives.is_archived(connection, part.table, part.day)
    assert await yard.recorded(connection) == objects(storage)
    assert await yard.strays(connection) == {}
    await place.store.close()


async def test_an_intact_object_is_kept_a_missing_one_is_put_again_and_an_outdated_one_is_deleted(
    url: str, connection: Superuser, tmp_path: Path, storage: S3Server
) -> None:
    async with workbench(url, **yard.in_bucket(storage, tmp_path)) as bench:
        job = await make.job(bench.scope)
        part = await yard.history(connection, job, DAY, 5)
        place = await yard.bucket_place(connection, storage, tmp_path)
        await archive_partition(connection, place, part)
        assert (await archive_partition(connection, place, part)).kept == [1]
        storage.objects.clear()
        assert (await archive_partition(connection, place, part)).written == [1]
        first = objects(storage)
        await yard.history(connection, job, DAY, 3, prefix="late-")

        assert (await archive_partition(connection, place, part)).written == [1]

        second = await yard.recorded(connection)
        assert first.isdisjoint(second)
        assert objects(storage) == first | second
        assert await yard.strays(connection) == dict.fromkeys(first, True)
        stage = archiver(bench)
        await run(stage, bench)
        await stage.close()
        assert first.isdisjoint(objects(storage))
        assert second <= objects(storage)
        assert await yard.strays(connection) == {}
        await place.store.close()


async def test_a_process_that_was_taken_for_dead_records_nothing(
    url: str, connection: Superuser, tmp_path: Path, storage: S3Server
) -> None:
    async with workbench(url, **yard.in_bucket(storage, tmp_path)) as bench:
        part = await yard.history(connection, await make.job(bench.scope), DAY, 5)
        place = await yard.bucket_place(connection, storage, tmp_path)
        stage = archiver(bench)
        with storage.holding("PUT", after=True) as hold:
            upload = asyncio.create_task(archive_partition(bench.connection, place, part))
            assert await asyncio.to_thread(hold.reached.wait, 30)
            [path] = objects(storage)
            assert await yard.strays(connection) == {path: False}
            await connection.execute("update horai.archive_stray set since = since - interval '59 min'")
            assert await archive_strays.doomed_files(connection, DEAD_AFTER, 10) == [], "it may still be at work"
            await connection.execute("update horai.archive_stray set since = since - interval '2 min'")
            assert await archive_strays.doomed_files(connection, DEAD_AFTER, 10) == [(path, 1)]
        with pytest.raises(ArchiveBusy):
            await upload
        assert await yard.recorded(connection) == set()
        assert not await archives.is_archived(connection, part.table, part.day)
        with pytest.raises(ArchiveBusy):  # the file is about to be deleted
            await archive_partition(connection, place, part)

        assert await run(stage, bench) == SWEEP

        assert (objects(storage), await yard.strays(connection)) == (await yard.recorded(connection), {})
        assert await archives.is_archived(connection, part.table, part.day)
        await stage.close()
        await place.store.close()


@pytest.mark.parametrize("fault", ["unreachable", "refused", "slow"])
async def test_while_a_bucket_fails_instances_run_no_day_is_dropped_and_an_alert_fires_until_it_recovers(
    url: str, connection: Superuser, tmp_path: Path, storage: S3Server, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    for name in ("RETRY", "LOOK_AGAIN"):
        monkeypatch.setattr(f"horai.features.archive.stage.{name}", timedelta(milliseconds=200))
    monkeypatch.setattr(s3_client, "SILENCE", 0.3)
    async with make.scope(url) as scope:
        await yard.history(connection, await make.job(scope), DAY, 5)
    table = f"horai.instance_history_{DAY:%Y%m%d}"
    told_error = {
        "unreachable": "put: cannot connect",
        "refused": "put: HTTP 403 AccessDenied",
        "slow": "put: no answer in time",
    }

    if fault == "unreachable":
        storage.stop()
    if fault == "refused":
        storage.refuse(403, "AccessDenied")
    with storage.holding("PUT" if fault == "slow" else "NONE") as hold:
        async with (
            Receiver() as receiver,
            harness.node(url, **yard.in_bucket(storage, tmp_path), **QUICK) as api,
        ):
            await alert_yard.watching(api, receiver, "ARCHIVE_FAILED")
            [fired] = await told(receiver, 1)
            job = await given.scripted(api, receiver, Answer(200))
            made = await api("POST", f"/api/v1/jobs/{job['name']}/trigger", Idempotency_Key="one")
            await api.until_state(made.json["instance"]["id"], "SUCCESS")
            error = await connection.fetchval("select error from horai.archive_partition where failed_at is not null")
            assert await connection.fetchval(f"select count(*) from {table}") == 5, "retention has not dropped it"
            assert await yard.recorded(connection) == set()
            hold.method = "NONE"
            if fault == "unreachable":
                storage.start()
            storage.recover()
            messages = await told(receiver, 2)
            while kinds(messages)[-1] != "resolved":
                messages = await told(receiver, len(messages) + 1)
            async with asyncio.timeout(30):
                while not await archives.is_archived(connection, "instance_history", DAY):
                    await asyncio.sleep(0.02)

    assert error.startswith(f"BucketFailed: {told_error[fault]}")
    assert fired["alerts"][0]["data"]["error"] == error
    assert await yard.recorded(connection) <= objects(storage)
    for secret in (SECRET, KEY_ID):
        assert secret not in str(messages)
        assert secret not in error


async def test_a_full_local_disk_is_recorded_and_nothing_is_uploaded(
    url: str, connection: Superuser, tmp_path: Path, storage: S3Server
) -> None:
    async with workbench(url, **yard.in_bucket(storage, tmp_path)) as bench:
        part = await yard.history(connection, await make.job(bench.scope), DAY, 5)
        await connection.execute(
            "update horai.instance_history set payload = to_json((select string_agg(md5(n::text), '') from generate_series(1, 20000) n))"
        )
        stage, limits = archiver(bench), resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))  # a write beyond it fails as on a full disk
        try:
            assert await run(stage, bench) == RETRY
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        failed = await connection.fetchval(
            "select error from horai.archive_partition where table_name = $1", part.table
        )
        assert failed.startswith("OSError: ")
        assert (objects(storage), yard.files(tmp_path)) == (set(), [])
        await connection.execute("update horai.archive_partition set failed_at = failed_at - interval '1 h'")
        assert await run(stage, bench) == SWEEP
        assert await archives.is_archived(connection, part.table, part.day)
        await stage.close()


async def test_reads_of_a_bucket_that_fails_are_told_apart(
    url: str, connection: Superuser, tmp_path: Path, storage: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with make.scope(url) as scope:
        part = await yard.history(connection, await make.job(scope), DAY, 5)
    place = await yard.bucket_place(connection, storage, tmp_path / "own")
    await archive_partition(connection, place, part)
    await place.store.close()
    page = f"/api/v1/instances?archived=true&{SPAN}"
    async with harness.node(url, **yard.in_bucket(storage, tmp_path / "cache")) as api:
        storage.refuse(403, "AccessDenied")
        refused = expect.problem(await api("GET", page), 503, "SCH_503_ARCHIVE_UNAVAILABLE")
        storage.recover()
        storage.flips_bytes = True
        damaged = expect.problem(await api("GET", page), 503, "SCH_503_ARCHIVE_UNAVAILABLE")
        storage.recover()
        with storage.holding("GET"), monkeypatch.context() as impatient:
            impatient.setattr(archive_bucket, "PATIENCE", 0.2)
            late = expect.problem(await api("GET", page), 503, "SCH_503_ARCHIVE_UNAVAILABLE")
        async with asyncio.timeout(30):
            while (found := await api("GET", page)).status != 200:
                await asyncio.sleep(0.02)
    small = yard.in_bucket(storage, tmp_path / "small", archive_cache_bytes=100)
    async with harness.node(url, name="small", **small) as api:
        full = expect.problem(await api("GET", page), 503, "SCH_503_ARCHIVE_UNAVAILABLE")

    assert "does not give a file" in refused["detail"]
    assert "does not give a file" in damaged["detail"]
    assert "still being fetched" in late["detail"]
    assert len(found.json["items"]) == 5
    assert "--archive-cache-size" in full["hint"]
    for secret in (SECRET, KEY_ID):
        assert secret not in str(refused)


async def test_erasing_a_tenant_deletes_its_objects_and_no_others(
    url: str, connection: Superuser, tmp_path: Path, storage: S3Server
) -> None:
    north = await yard.second_tenant(connection)
    async with make.scope(url) as scope:
        job = await make.job(scope)
        await yard.history(connection, job, DAY, 3)
        part = await yard.history(connection, job, DAY, 4, tenant_id=north)
    place = await yard.bucket_place(connection, storage, tmp_path)
    await archive_partition(connection, place, part)
    assert len(storage.objects) == 2
    await connection.execute("update horai.tenant set paused_at = now(), deleting_at = now() where id = $1", north)
    async with workbench(url) as bench:
        eraser = Eraser(bench.line("eraser"), bench.lease, bench.scope.wakeups, archive=place.store)
        storage.stop()
        await eraser.step(bench.clock.now())
        assert await connection.fetchval("select count(*) from horai.tenant where id = $1", north) == 1
        storage.start()
        for _ in range(50):
            await eraser.step(bench.clock.now())
        await eraser.close()

    assert await connection.fetchval("select count(*) from horai.tenant where id = $1", north) == 0
    [left] = objects(storage)
    assert "/tenant-1/" in left
    assert await yard.strays(connection) == {}


async def test_a_tenant_that_is_deleted_during_an_upload_keeps_no_object(
    url: str, connection: Superuser, tmp_path: Path, storage: S3Server
) -> None:
    north = await yard.second_tenant(connection)
    async with workbench(url, **yard.in_bucket(storage, tmp_path)) as bench:
        part = await yard.history(connection, await make.job(bench.scope), DAY, 4, tenant_id=north)
        place = await yard.bucket_place(connection, storage, tmp_path)
        eraser = Eraser(bench.line("eraser"), bench.lease, bench.scope.wakeups, archive=place.store)
        with storage.holding("PUT", after=True) as hold:
            upload = asyncio.create_task(archive_partition(bench.connection, place, part))
            assert await asyncio.to_thread(hold.reached.wait, 30)
            await connection.execute(
                "update horai.tenant set paused_at = now(), deleting_at = now() where id = $1", north
            )
            await eraser.step(bench.clock.now())
            assert await connection.fetchval("select count(*) from horai.tenant where id = $1", north) == 1, "it waits"
        assert (await upload).written == []
        for _ in range(50):
            await eraser.step(bench.clock.now())
        await eraser.close()

    assert storage.objects == {}
    assert await connection.fetchval("select count(*) from horai.tenant where id = $1", north) == 0
