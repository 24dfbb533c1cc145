"""Back up an embedded database while it works.

    <directory>/                      locked while a backup is made
        .incomplete-…/                a backup that is being made, or that a killed process has left
        horai-20261117T193656Z/       a complete backup
            manifest.json
            pgdata/                   a cluster that was started, checked and shut down
            keys/                     only if the operator asked for it

`pg_basebackup` copies the cluster with the WAL that makes the copy consistent. A PostgreSQL that is started on the copy
replays this WAL, is read, and is shut down; the hashes of the manifest are those of the files after it. A rename, the
last step, makes the backup complete.
"""

import asyncio
import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from horai.embedded.account import Account, account_for
from horai.embedded.admin import admin_url
from horai.embedded.area import Area
from horai.embedded.backup_files import (
    NO_SPACE,
    check_copied,
    disk_full,
    hashed,
    in_thread,
    locked,
    remove_tree,
    require_space,
    size_of,
    sync_directory,
    told_plainly,
    write_synced,
)
from horai.embedded.backup_manifest import (
    MANIFEST,
    PREFIX,
    BackupManifest,
    CopiedFile,
    DatabaseContent,
    MadeBackup,
    list_backups,
    surplus,
)
from horai.embedded.binaries import binaries_for
from horai.embedded.errors import BackupFailed, BackupRefused
from horai.embedded.inspection import inspect
from horai.embedded.postmaster import LOOK_EVERY, stop_leftover, url_of

INCOMPLETE = ".incomplete-"
KEYS = "keys"
STOP_WITHIN = timedelta(seconds=10)
IN_THE_WAY = ("backup_manifest", "backup_label.old", "tablespace_map.old", "postmaster.opts")
"""Files of the cluster that describe the copy before it was started."""


async def make_backup(data_dir: Path, into: Path, horai: str, keys: Sequence[Path] = ()) -> MadeBackup:
    """Back up the running embedded database of `data_dir` into a new directory in `into`, and check the copy.

    `keys` are files to copy as well. Raises `EmbeddedError`, and then leaves nothing behind.
    """
    area, into = Area.at(data_dir), Area.at(into).root
    url = admin_url(url_of(data_dir))
    if into == area.root or area.root in into.parents:
        raise BackupRefused(
            f"{into} is in the data directory: a backup there is lost together with the database.",
            "Give a directory on another disk.",
        )
    account = account_for(area.cluster, area.root)
    with told_plainly(into):
        _make_directory(into, account)
        with locked(into, "Another process makes a backup in"):
            await remove_leftovers(into)
            await in_thread(lambda _: require_space(into, size_of(area.cluster)))
            started_at = datetime.now(UTC)
            staging = Area.at(into / f"{INCOMPLETE}{_name(started_at)}")
            try:
                return await _made(staging, url, account, horai, started_at, keys)
            except BaseException:
                await asyncio.shield(in_thread(lambda _: remove_tree(staging.root)))
                raise


async def _made(
    staging: Area, url: str, account: Account, horai: str, started_at: datetime, keys: Sequence[Path]
) -> MadeBackup:
    await in_thread(lambda _: _prepare(staging, account))
    binaries = await in_thread(lambda _: binaries_for(staging, account))
    await _run(account, _copy_command(binaries, url, staging.cluster), staging.root.parent)
    start_lsn, end_lsn = await in_thread(lambda halt: _verify_copy(staging.cluster, halt))
    content = await inspect(staging.root)
    directories, files = await in_thread(lambda halt: _clean_and_hash(staging, keys, halt))
    names = tuple(key.name for key in keys)
    manifest = BackupManifest(
        horai, started_at, datetime.now(UTC), start_lsn, end_lsn, content, directories, files, names
    )
    return await in_thread(lambda _: _complete(staging.root, manifest))


def _make_directory(into: Path, account: Account) -> None:
    """Create the directory of the backups and its missing parents. The user of PostgreSQL must be able to enter them."""
    missing = [path for path in (into, *into.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        path.chmod(0o711 if account.is_other else 0o700)
    if not into.is_dir():
        raise BackupRefused(f"{into} is not a directory.", "Give a directory for backups.")


def _prepare(staging: Area, account: Account) -> None:
    staging.make(account)
    staging.lock.touch()  # marks the directory as Horai's: a PostgreSQL will be started in it
    staging.cluster.mkdir(mode=0o700)
    if account.is_other:
        os.chown(staging.cluster, account.uid, account.gid, follow_symlinks=False)


def _copy_command(binaries: Path, url: str, cluster: Path) -> list[str | Path]:
    query = parse_qs(urlsplit(url).query)
    server = ["--host", query["host"][0], "--port", query["port"][0], "--username", urlsplit(url).username or ""]
    how = ["--wal-method=stream", "--checkpoint=fast", "--manifest-checksums=SHA256", "--no-sync", "--no-password"]
    return [binaries / "pg_basebackup", *server, "--pgdata", cluster, *how]


async def _run(account: Account, command: Sequence[str | Path], target: Path) -> None:
    """Run a program to its end; a cancellation kills it. Its output goes to a file that has no name on the full disk."""
    with tempfile.TemporaryFile() as output:
        process = account.spawn(command, output)
        try:
            while process.poll() is None:  # noqa: ASYNC110 - a process has no event
                await asyncio.sleep(LOOK_EVERY)
        finally:
            _end(process)
        if process.returncode != 0:
            output.seek(0)
            words = output.read().decode(errors="replace").strip()
            if NO_SPACE in words:
                raise disk_full(target)
            name = Path(command[0]).name
            raise BackupFailed(f"{name} failed with exit code {process.returncode}: {words or '(no output)'}")


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()


def _verify_copy(cluster: Path, halt: threading.Event) -> tuple[str, str]:
    """Compare the copied files with the list of the server; return the first and the last position of the WAL they need.

    PostgreSQL's own pg_verifybackup does the same, but does not run in every wheel.
    """
    listed = json.loads((cluster / "backup_manifest").read_text())
    for file in listed["Files"]:
        if "Path" in file:  # the list encodes names that are not UTF-8; Horai has no such file
            check_copied(cluster / file["Path"], CopiedFile(file["Size"], file["Checksum"]), halt)
    ranges = listed["WAL-Ranges"]
    return ranges[0]["Start-LSN"], ranges[-1]["End-LSN"]


def _clean_and_hash(
    staging: Area, keys: Sequence[Path], halt: threading.Event
) -> tuple[tuple[str, ...], dict[str, CopiedFile]]:
    """Remove the files of the check, copy the keys, and hash the rest."""
    for path in staging.root.iterdir():
        if path == staging.cluster:
            continue
        if path.is_dir() and not path.is_symlink():
            remove_tree(path)
        else:
            path.unlink()
    for name in IN_THE_WAY:
        (staging.cluster / name).unlink(missing_ok=True)
    if keys:
        (staging.root / KEYS).mkdir(mode=0o700)
        for key in keys:
            shutil.copyfile(key, staging.root / KEYS / key.name)
            (staging.root / KEYS / key.name).chmod(0o600)
    return hashed(staging.root, halt)


def _complete(staging: Path, manifest: BackupManifest) -> MadeBackup:
    """Write the manifest and give the directory its name."""
    write_synced(staging / MANIFEST, manifest.as_json())
    sync_directory(staging)
    into, name = staging.parent, staging.name.removeprefix(INCOMPLETE)
    final = next(path for path in (into / f"{name}{tail}" for tail in ("", *_tails())) if not path.exists())
    staging.rename(final)
    sync_directory(into)
    return MadeBackup(final, manifest)


def _tails() -> list[str]:
    return [f"-{number}" for number in range(2, 1000)]


def _name(at: datetime) -> str:
    return f"{PREFIX}{at:%Y%m%dT%H%M%SZ}"


async def remove_leftovers(into: Path) -> None:
    """Remove what killed processes have left. The caller holds the lock of the directory."""
    for leftover in await in_thread(lambda _: sorted(into.glob(f"{INCOMPLETE}*"))):
        await stop_leftover(leftover / "pgdata", STOP_WITHIN)
        await in_thread(lambda _, tree=leftover: remove_tree(tree))


async def prune(into: Path, content: DatabaseContent, keep: int) -> list[Path]:
    """Remove the oldest backups of a cluster beyond `keep`, and return their paths.

    A backup loses its name first, so that a crash leaves no part of it that looks complete.
    """
    into = Area.at(into).root
    removed: list[Path] = []
    with told_plainly(into), locked(into, "Another process makes a backup in"):
        for backup in surplus(await in_thread(lambda _: list_backups(into)), content.cluster, keep):
            unnamed = into / f"{INCOMPLETE}removed-{backup.path.name}"
            backup.path.rename(unnamed)
            await in_thread(lambda _, tree=unnamed: remove_tree(tree))
            removed.append(backup.path)
    return removed
