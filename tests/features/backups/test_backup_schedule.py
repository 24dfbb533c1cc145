"""Scheduled backups: when they are due, what they leave, and how a failure is told."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg
import pytest
from embedded_servers import copied, run, running, short_lived_place
from terminal import Terminal

from horai.core.settings import BackupSchedule, EngineSettings
from horai.db.backups import BackupStatus, backup_status
from horai.db.pool import Platform, opened
from horai.db.stage_connection import StageConnection
from horai.embedded.admin import admin_url
from horai.embedded.backup_manifest import list_backups
from horai.features.backups.rules import RETRY_AFTER, first_at, next_at
from horai.features.backups.stage import BackupStage
from horai.process import prepare

NOW = datetime(2026, 11, 17, 9, tzinfo=UTC)
DAY = timedelta(days=1)


def test_the_first_backup_is_due_at_once_unless_the_last_one_is_recent() -> None:
    assert first_at(None, DAY, NOW) == NOW
    assert first_at(NOW - timedelta(hours=20), DAY, NOW) == NOW + timedelta(hours=4)
    assert first_at(NOW - 9 * DAY, DAY, NOW) == NOW


def test_a_failed_backup_is_tried_again_soon_and_a_good_one_after_its_interval() -> None:
    assert next_at(NOW, DAY, has_failed=False) == NOW + DAY
    assert next_at(NOW, DAY, has_failed=True) == NOW + RETRY_AFTER
    assert next_at(NOW, timedelta(minutes=5), has_failed=True) == NOW + timedelta(minutes=5)


@pytest.fixture(scope="module")
def migrated() -> Iterator[Path]:
    async def story() -> None:
        async with running(made / "data") as postgres:
            await prepare(postgres.url, EngineSettings())

    with short_lived_place() as made:
        run(story())
        yield made / "data"


@pytest.fixture
def place(migrated: Path) -> Iterator[Path]:
    with short_lived_place() as made:
        copied(migrated, made / "data")
        yield made


@asynccontextmanager
async def scheduled(place: Path, keep: int = 2) -> AsyncGenerator[tuple[BackupStage, Platform]]:
    """A stage on a running database, with backups once a day into `backups`."""
    async with running(place / "data") as postgres, opened(admin_url(postgres.url), "tester") as connection:
        stage = BackupStage(
            StageConnection(postgres.url, "horai backups"), BackupSchedule(place / "data", place / "backups", DAY, keep)
        )
        try:
            yield stage, connection
        finally:
            await stage.close()
            await stage.line.close()


async def made_once(stage: BackupStage, now: datetime) -> datetime:
    """Let the stage make the backup that is due, and return when it wants to be called again."""
    stage.signal.clear()
    await stage.step(now)
    await stage.signal.wait()
    return await stage.step(now)


async def status_of(connection: Platform) -> BackupStatus:
    found = await backup_status(connection)
    assert found is not None
    return found


async def verbs(connection: Platform) -> list[str]:
    return [row["verb"] for row in await connection.fetch("select verb from horai.audit order by id")]


def test_backups_are_made_when_they_are_due_and_old_ones_are_removed(place: Path) -> None:
    async def story() -> None:
        async with scheduled(place) as (stage, connection):
            now = datetime.now(UTC)
            assert await backup_status(connection) is None
            for ago in (3, 2, 1):
                assert await made_once(stage, now - ago * DAY) > now - ago * DAY
                assert stage._due_at == now - (ago - 1) * DAY
            found = list_backups(place / "backups")
            assert len(found) == 2
            status = await status_of(connection)
            assert (status.path, status.size) == (str(found[-1].path), found[-1].manifest.size)
            assert status.age is not None
            assert 86_000 < status.age < 90_000
            assert (status.failed_at, status.error, status.is_overdue) == (None, None, False)
            assert await verbs(connection) == ["backup.create"] * 3
            removed = await connection.fetchval("select after -> 'removed' from horai.audit order by id desc limit 1")
            assert "horai-" in removed

            stage.signal.clear()
            await stage.step(now - timedelta(hours=1))
            assert stage._task is None, "no backup is due"

    run(story())


def test_a_restart_does_not_repeat_a_recent_backup(place: Path) -> None:
    async def story() -> None:
        async with scheduled(place) as (stage, _):
            await made_once(stage, datetime.now(UTC))
        async with scheduled(place) as (stage, _):
            await stage.step(datetime.now(UTC) + timedelta(hours=23))
            assert stage._task is None
            await stage.step(datetime.now(UTC) + timedelta(hours=25))
            assert stage._task is not None

    run(story())


def test_a_failure_is_recorded_audited_and_told_until_a_backup_succeeds(place: Path) -> None:
    (place / "backups").write_text("a file is in the way")

    async def story() -> None:
        async with scheduled(place) as (stage, connection):
            now = datetime.now(UTC)
            again = await made_once(stage, now)
            status = await status_of(connection)
            assert status.error is not None
            assert "is not a directory" in status.error
            assert (status.success_at, status.age, status.is_overdue) == (None, None, True)
            assert await verbs(connection) == ["backup.fail"]
            assert again <= now + RETRY_AFTER

            (place / "backups").unlink()
            await made_once(stage, now + 2 * RETRY_AFTER)
            status = await status_of(connection)
            assert (status.failed_at, status.error, status.is_overdue) == (None, None, False)
            await connection.execute("update horai.backup_run set started_at = started_at - interval '49 hours'")
            assert (await status_of(connection)).is_overdue

    run(story())


def test_a_stop_ends_a_backup_and_leaves_nothing(place: Path) -> None:
    async def story() -> None:
        async with scheduled(place) as (stage, connection):
            await stage.step(datetime.now(UTC))
            async with asyncio.timeout(30):
                while not list((place / "backups").glob(".incomplete-*/pgdata/*")):
                    await asyncio.sleep(0.005)
            await stage.close()
            assert list((place / "backups").iterdir()) == []
            assert await backup_status(connection) is None

    run(story())


async def test_the_rows_of_the_last_hundred_backups_are_kept(connection: asyncpg.Connection) -> None:
    from horai.db import backups  # noqa: PLC0415
    from horai.db.backups import BackupRun  # noqa: PLC0415

    for number in range(103):
        run_ = BackupRun(NOW + timedelta(minutes=number), "/b", f"/b/{number}", 1, "0/1", 0, None, None)
        await backups.record_backup(connection, run_)  # type: ignore[arg-type]

    assert await connection.fetchval("select count(*) from horai.backup_run") in {100, 101}


def test_a_schedule_needs_the_embedded_database_and_a_directory() -> None:
    horai = Terminal()
    url = "postgresql://horai_node@db.invalid/horai"

    given = horai("up", "--backup-dir", "/tmp/b", "--database-url", url)
    missing = horai("up", "--backup-every", "1h")
    often = horai("up", "--backup-dir", "/tmp/b", "--backup-every", "10s")
    by_hand = horai("backup", "/tmp/b", HORAI_DATABASE_URL=url)

    assert (given.code, by_hand.code, missing.code, often.code) == (2, 2, 2, 2)
    assert "pgBackRest or WAL-G" in given.err
    assert "pgBackRest or WAL-G" in by_hand.err
    assert "--backup-dir" in missing.err
    assert "must be 1m or longer" in often.err
