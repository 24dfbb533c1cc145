"""Backups of the embedded PostgreSQL, with real processes: complete or absent, checked, and restored as they were."""

import asyncio
import hashlib
import json
import os
import subprocess
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from embedded_servers import as_root, ask, copied, run, running, short_lived_place, until, wait_until
from forked import HORAI, ForkedPopen
from terminal import Terminal, clean_environment

from horai import __version__
from horai.core.settings import EngineSettings
from horai.db.migrate import newest_known
from horai.embedded import BackupFailed, BackupRefused, backup_files
from horai.embedded.backup import make_backup, prune
from horai.embedded.backup_manifest import (
    MANIFEST,
    BackupManifest,
    DatabaseContent,
    MadeBackup,
    list_backups,
    read_backup,
    surplus,
)
from horai.embedded.postmaster import is_postmaster_of, read_pid_file
from horai.embedded.restore import restore_backup
from horai.process import prepare


@pytest.fixture(scope="module")
def migrated() -> Iterator[Path]:
    """A data directory of Horai as a stopped server leaves it."""

    async def story() -> None:
        async with running(made / "data") as postgres:
            await prepare(postgres.url, EngineSettings())

    with short_lived_place() as made:
        run(story())
        yield made / "data"


@pytest.fixture
def data_dir(place: Path, migrated: Path) -> Path:
    return copied(migrated, place / "data")


@pytest.fixture(scope="module")
def made(migrated: Path) -> Iterator[MadeBackup]:
    """A backup that tests copy before they harm it."""

    async def story() -> MadeBackup:
        async with running(place / "data"):
            return await make_backup(place / "data", place / "backups", __version__)

    with short_lived_place() as place:
        copied(migrated, place / "data")
        yield asyncio.run(story())


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir()) if directory.exists() else []


# When all is well


def test_a_backup_of_a_running_server_has_a_manifest_and_is_restored_with_its_content(data_dir: Path) -> None:
    backups, restored = data_dir.parent / "backups", data_dir.parent / "restored"

    async def story() -> None:
        async with running(data_dir) as postgres:
            await ask(postgres.url, "insert into horai.tenant (name) values ('kept') returning id")
            before = datetime.now(UTC)
            found = await make_backup(data_dir, backups, __version__)
            await ask(postgres.url, "insert into horai.tenant (name) values ('later') returning id")

            manifest = found.manifest
            assert read_backup(found.path) == found
            assert [one.path for one in list_backups(backups)] == [found.path]
            assert names_in(backups) == [found.path.name]
            assert names_in(found.path) == [MANIFEST, "pgdata"]
            assert (manifest.horai, manifest.content.schema) == (__version__, newest_known())
            assert before <= manifest.started_at <= manifest.finished_at
            assert _lsn(manifest.start_lsn) < _lsn(manifest.end_lsn)
            assert manifest.content.counts["tenant"] == 2
            assert manifest.content.violations == {}
            on_disk = {str(path.relative_to(found.path)): path for path in found.path.rglob("*") if path.is_file()}
            assert manifest.files.keys() == on_disk.keys() - {MANIFEST}
            assert manifest.size == sum(path.stat().st_size for name, path in on_disk.items() if name != MANIFEST)
            digest = hashlib.sha256(on_disk["pgdata/PG_VERSION"].read_bytes()).hexdigest()
            assert manifest.files["pgdata/PG_VERSION"].sha256 == digest

            await restore_backup(found.path, restored)
            async with running(restored) as copy:
                names = await ask(copy.url, "select array_agg(name order by id) from horai.tenant")
                assert names == ["default", "kept"]

    run(story())


def _lsn(text: str) -> int:
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)


def test_the_newest_backup_of_a_directory_is_restored(data_dir: Path) -> None:
    backups = data_dir.parent / "backups"

    async def story() -> None:
        async with running(data_dir) as postgres:
            await make_backup(data_dir, backups, __version__)
            await ask(postgres.url, "insert into horai.tenant (name) values ('newer') returning id")
            newest = await make_backup(data_dir, backups, __version__)
        assert len(list_backups(backups)) == 2
        assert (await restore_backup(backups, data_dir.parent / "restored")).path == newest.path

    run(story())


def test_key_files_are_in_a_backup_only_if_they_are_asked_for(data_dir: Path) -> None:
    horai, place = Terminal(), data_dir.parent
    (data_dir / "encryption.key").write_text("secret-canary\n")

    plain = horai("backup", str(place / "plain"), "--data-dir", str(data_dir))
    asked = horai("backup", str(place / "asked"), "--data-dir", str(data_dir), "--include-keys", "--json")

    assert plain.code == 0, plain.err
    assert f"{data_dir / 'encryption.key'} is not in the backup" in plain.err
    assert not any(
        b"secret-canary" in path.read_bytes() for path in Path(plain.out.strip()).rglob("*") if path.is_file()
    )
    assert (asked.json["keys"], asked.json["keysLeftOut"]) == (["encryption.key"], [])
    restored = horai("restore", asked.json["path"], "--data-dir", str(place / "restored"))
    assert restored.code == 0, restored.err
    key = place / "restored" / "encryption.key"
    assert (key.read_text(), key.stat().st_mode & 0o777) == ("secret-canary\n", 0o600)
    without = horai("restore", plain.out.strip(), "--data-dir", str(place / "without"))
    assert "The backup has no keys" in without.err
    assert not (place / "without" / "encryption.key").exists()


# Refusals and failures


def test_a_restore_replaces_nothing(made: MadeBackup, place: Path) -> None:
    (place / "full").mkdir()
    (place / "full" / "notes.txt").write_text("mine")
    (place / "file").write_text("mine")

    for target, why in (("full", "is not empty"), ("file", "is not a directory")):
        with pytest.raises(BackupRefused, match=why):
            asyncio.run(restore_backup(made.path, place / target))

    assert (place / "full" / "notes.txt").read_text() == "mine"
    assert names_in(place) == ["file", "full"]


def test_a_directory_without_a_manifest_is_no_backup(made: MadeBackup, place: Path) -> None:
    half = copied(made.path, place / "horai-half")
    (half / MANIFEST).unlink()

    with pytest.raises(BackupRefused, match="not a complete backup"):
        asyncio.run(restore_backup(half, place / "restored"))

    assert list_backups(place) == []
    assert not (place / "restored").exists()


@pytest.mark.parametrize("harm", ["changed", "missing"])
def test_a_damaged_backup_is_not_restored_and_leaves_nothing(made: MadeBackup, place: Path, harm: str) -> None:
    damaged = copied(made.path, place / "damaged")
    name = max(made.manifest.files, key=lambda name: made.manifest.files[name].size)
    if harm == "missing":
        (damaged / name).unlink()
    else:
        with (damaged / name).open("r+b") as file:
            file.seek(made.manifest.files[name].size // 2)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 1]))

    with pytest.raises(BackupFailed, match="damaged"):
        asyncio.run(restore_backup(damaged, place / "restored"))

    assert names_in(place) == ["damaged"]


def test_a_database_with_another_content_than_the_manifest_is_not_restored(made: MadeBackup, place: Path) -> None:
    other = copied(made.path, place / "other")
    document = json.loads((other / MANIFEST).read_text())
    document["content"]["counts"]["job"] += 1
    (other / MANIFEST).write_text(json.dumps(document))

    with pytest.raises(BackupFailed, match="differs from the backup in: counts"):
        asyncio.run(restore_backup(other, place / "restored"))

    assert names_in(place) == ["other"]


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("format", 2, "format 2"),
        ("schema", newest_known() + 1, "newer than that of this Horai"),
        ("postgresql", "19.1", "PostgreSQL 19"),
    ],
)
def test_a_backup_of_a_later_version_is_refused(
    made: MadeBackup, place: Path, field: str, value: Any, why: str
) -> None:
    later = copied(made.path, place / "later")
    document = json.loads((later / MANIFEST).read_text())
    (document if field == "format" else document["content"])[field] = value
    (later / MANIFEST).write_text(json.dumps(document))

    with pytest.raises(BackupRefused, match=why):
        asyncio.run(restore_backup(later, place / "restored"))

    assert names_in(place) == ["later"]


def test_a_backup_into_the_data_directory_or_beside_another_backup_is_refused(data_dir: Path) -> None:
    backups = data_dir.parent / "backups"

    async def story() -> None:
        async with running(data_dir):
            with pytest.raises(BackupRefused, match="lost together with the database"):
                await make_backup(data_dir, data_dir / "backups", __version__)
            first = asyncio.create_task(make_backup(data_dir, backups, __version__))
            await until(lambda: names_in(backups))
            with pytest.raises(BackupRefused, match="Another process makes a backup"):
                await make_backup(data_dir, backups, __version__)
            await first

    run(story())
    assert len(list_backups(backups)) == 1


def test_a_cancelled_backup_leaves_nothing(data_dir: Path) -> None:
    backups = data_dir.parent / "backups"

    async def story() -> None:
        async with running(data_dir):
            for moment in ("pgdata/PG_VERSION", "pgdata/postmaster.pid"):
                begun = asyncio.create_task(make_backup(data_dir, backups, __version__))
                await until(lambda moment=moment: list(backups.glob(f".incomplete-*/{moment}")))
                begun.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await begun
                assert names_in(backups) == []

    run(story())


# kill -9


@contextmanager
def begun(*words: str) -> Generator["subprocess.Popen[str]"]:
    process = ForkedPopen([HORAI, *words], env=clean_environment(), stderr=subprocess.PIPE, text=True)
    with process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("moment", ["horai.lock", "pgdata/PG_VERSION", "pgdata/postmaster.pid"])
def test_a_killed_backup_leaves_nothing_that_looks_complete_and_the_next_one_removes_it(
    data_dir: Path, moment: str
) -> None:
    backups = data_dir.parent / "backups"

    async def story() -> None:
        async with running(data_dir):
            with begun("backup", str(backups), "--data-dir", str(data_dir)) as process:
                await until(lambda: list(backups.glob(f".incomplete-*/{moment}")) or process.poll() is not None)
                process.kill()
            (left,) = names_in(backups)
            assert left.startswith(".incomplete-")
            assert list_backups(backups) == []
            with pytest.raises(BackupRefused):
                await restore_backup(backups / left, data_dir.parent / "restored")

            next_one = await make_backup(data_dir, backups, __version__)

            assert names_in(backups) == [next_one.path.name]
            orphan = read_pid_file(backups / left / "pgdata")
            assert orphan is None or not is_postmaster_of(orphan.pid, backups / left / "pgdata")

    run(story())


@pytest.mark.parametrize("moment", ["pgdata/global", "pgdata/postmaster.pid"])
def test_a_killed_restore_leaves_no_data_directory_and_can_be_repeated(
    made: MadeBackup, place: Path, moment: str
) -> None:
    target, staging = place / "restored", place / ".restored.incomplete-restore"
    with begun("restore", str(made.path), "--data-dir", str(target)) as process:
        wait_until(lambda: (staging / moment).exists() or process.poll() is not None)
        process.kill()
    assert not target.exists()
    assert staging.exists()

    asyncio.run(restore_backup(made.path, target))

    assert names_in(place) == ["restored"]


# A full disk


@contextmanager
def small_disk(place: Path, megabytes: int) -> Generator[Path]:
    disk = place / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=755", "tmpfs", disk], check=True)
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


@as_root
def test_a_disk_that_is_too_small_is_told_before_anything_is_written(data_dir: Path, made: MadeBackup) -> None:
    async def story() -> None:
        async with running(data_dir):
            with small_disk(data_dir.parent, 20) as disk:
                with pytest.raises(BackupFailed, match=r"MB free, and .* MB are needed"):
                    await make_backup(data_dir, disk / "backups", __version__)
                with pytest.raises(BackupFailed, match=r"MB free, and .* MB are needed"):
                    await restore_backup(made.path, disk / "restored")
                assert names_in(disk / "backups") == []
                assert names_in(disk) == ["backups"]

    run(story())


@as_root
@pytest.mark.parametrize("share", [0.3, 1.05])
def test_a_disk_that_becomes_full_ends_a_backup_and_a_restore_and_nothing_is_left(
    data_dir: Path, made: MadeBackup, monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    """The space that the check wants to be free is taken by others meanwhile: first in the copy, then in the check."""
    monkeypatch.setattr(backup_files, "SPARE", -(10**12))
    copied_bytes = sum(file.size for name, file in made.manifest.files.items() if "/pg_wal/" not in name)

    async def story() -> None:
        async with running(data_dir):
            with small_disk(data_dir.parent, int(copied_bytes * share / 1_000_000)) as disk:
                with pytest.raises(BackupFailed, match=r"The disk of .* is full") as refused:
                    await make_backup(data_dir, disk / "backups", __version__)
                assert refused.value.hint is not None
                with pytest.raises(BackupFailed, match=r"The disk of .* is full"):
                    await restore_backup(made.path, disk / "restored")
                assert names_in(disk / "backups") == []
                assert names_in(disk) == ["backups"]

    run(story())


# Old backups


def manifest(cluster: str, at: datetime) -> BackupManifest:
    content = DatabaseContent(cluster, 1, "18.0", {}, {})
    return BackupManifest("0.1.0", at, at, "0/1", "0/2", content, (), {})


def test_old_backups_of_the_same_cluster_are_surplus_and_those_of_others_never() -> None:
    began = datetime(2026, 1, 1, tzinfo=UTC)
    found = [
        MadeBackup(Path(str(day)), manifest("ours" if day % 2 else "theirs", began + timedelta(days=day)))
        for day in range(6)
    ]

    assert [str(one.path) for one in surplus(found, "ours", 2)] == ["1"]
    assert surplus(found, "ours", 3) == surplus(found, "other", 1) == []


def test_pruning_keeps_the_newest_backups_and_files_that_are_no_backups(made: MadeBackup, place: Path) -> None:
    for day in range(4):
        path = copied(made.path, place / f"horai-2026010{day}T000000Z")
        at = datetime(2026, 1, day + 1, tzinfo=UTC)
        (path / MANIFEST).write_text(replace(made.manifest, started_at=at).as_json())
    (place / "notes.txt").write_text("mine")
    (place / "horai-half").mkdir()

    removed = asyncio.run(prune(place, made.manifest.content, 2))

    assert [path.name for path in removed] == ["horai-20260100T000000Z", "horai-20260101T000000Z"]
    kept = ["horai-20260102T000000Z", "horai-20260103T000000Z", "horai-half", "notes.txt"]
    assert names_in(place) == kept
