"""Restore a backup into a new data directory.

The files are copied into a directory beside the new one and compared with the manifest; a PostgreSQL is started there and
its content is compared as well. A rename, the last step, makes it the data directory: a crash leaves no directory of
that name.
"""

import asyncio
import os
import threading
from datetime import timedelta
from pathlib import Path

from horai.db.migrate import newest_known
from horai.embedded.account import Account, account_for
from horai.embedded.area import HARMLESS, Area
from horai.embedded.backup_files import (
    copy_checked,
    in_thread,
    locked,
    remove_tree,
    require_space,
    sync_directory,
    told_plainly,
)
from horai.embedded.backup_manifest import DatabaseContent, MadeBackup, newest_backup
from horai.embedded.binaries import MAJOR
from horai.embedded.errors import BackupFailed, BackupRefused
from horai.embedded.inspection import inspect
from horai.embedded.postmaster import stop_leftover

CLUSTER, KEYS = "pgdata", "keys"
STOP_WITHIN = timedelta(seconds=10)
GIVE_NEW = "Give a --data-dir that does not exist yet."


async def restore_backup(path: Path, data_dir: Path) -> MadeBackup:
    """Restore a backup, or the newest one of a directory of backups, as the data directory `data_dir`.

    The data directory must be missing or empty.

    Raises `EmbeddedError`, and then leaves nothing behind.
    """
    backup = await in_thread(lambda _: newest_backup(path.resolve()))
    target = Area.at(data_dir)
    _require_readable(backup)
    _require_empty(target.root)
    account = account_for(target.root)
    with told_plainly(target.root.parent):
        target.root.parent.mkdir(parents=True, exist_ok=True)
        require_space(target.root.parent, backup.manifest.size)
        staging = Area.at(target.root.with_name(f".{target.root.name}.incomplete-restore"))
        await _take_over(staging)
        with locked(staging.root, "Another process restores in"):
            try:
                await _restored(backup, staging, account)
                await in_thread(lambda _: _complete(staging.root, target.root))
            except BaseException:
                await asyncio.shield(in_thread(lambda _: remove_tree(staging.root)))
                raise
    return backup


def _require_readable(backup: MadeBackup) -> None:
    content = backup.manifest.content
    if content.schema > newest_known():
        raise BackupRefused(
            f"The backup was made by Horai {backup.manifest.horai}, and its schema is newer than that of this Horai.",
            f"Restore it with Horai {backup.manifest.horai} or newer.",
        )
    major = content.postgresql.partition(".")[0]
    if major != str(MAJOR):
        raise BackupRefused(
            f"The backup was made by PostgreSQL {major}; this Horai carries PostgreSQL {MAJOR}.",
            f"Restore it with Horai {backup.manifest.horai}.",
        )


def _require_empty(root: Path) -> None:
    if not root.exists():
        return
    if not root.is_dir():
        raise BackupRefused(f"{root} is not a directory.", GIVE_NEW)
    if any(entry.name not in HARMLESS for entry in root.iterdir()):
        raise BackupRefused(f"{root} is not empty: a restore replaces nothing.", GIVE_NEW)
    if root.is_mount() or any(root.iterdir()):
        raise BackupRefused(f"{root} is the root of a disk, which cannot be renamed.", "Give a directory in it.")


async def _take_over(staging: Area) -> None:
    """Make an empty directory for the restore. The files that a killed restore has left there are removed."""
    if staging.root.exists():
        with locked(staging.root, "Another process restores in"):
            await stop_leftover(staging.cluster, STOP_WITHIN)
            await in_thread(lambda _: remove_tree(staging.root))
    staging.root.mkdir(mode=0o700)


async def _restored(backup: MadeBackup, staging: Area, account: Account) -> None:
    await in_thread(lambda halt: _copy(backup, staging, account, halt))
    found = await inspect(staging.root)
    _require_same(backup.manifest.content, found)
    await in_thread(lambda halt: _put_keys(backup, staging.root, halt))


def _copy(backup: MadeBackup, staging: Area, account: Account, halt: threading.Event) -> None:
    staging.root.chmod(0o711 if account.is_other else 0o700)
    staging.make(account)
    staging.lock.touch()
    manifest = backup.manifest
    for name in sorted(name for name in manifest.directories if _is_of(name, CLUSTER)):
        made = staging.root / name
        made.mkdir(mode=0o700)
        if account.is_other:
            os.chown(made, account.uid, account.gid, follow_symlinks=False)
    for name in (name for name in manifest.files if _is_of(name, CLUSTER)):
        copy_checked(backup.path / name, staging.root / name, manifest.files[name], account, halt)
    for name in (name for name in manifest.directories if _is_of(name, CLUSTER)):
        sync_directory(staging.root / name)


def _is_of(name: str, folder: str) -> bool:
    """Return whether a name of the manifest is in the folder, and nowhere else."""
    parts = Path(name).parts
    return bool(parts) and parts[0] == folder and ".." not in parts


def _require_same(expected: DatabaseContent, found: DatabaseContent) -> None:
    """Raise if the restored database differs from the one that was checked when the backup was made."""
    wrong = [name for name in ("cluster", "schema", "counts") if getattr(expected, name) != getattr(found, name)]
    if expected.violations is not None and found.violations is not None and expected.violations != found.violations:
        wrong.append("violations")
    if wrong:
        raise BackupFailed(
            f"The restored database differs from the backup in: {', '.join(wrong)}.", "Use another backup."
        )


def _put_keys(backup: MadeBackup, root: Path, halt: threading.Event) -> None:
    """Put the key files of the backup beside the database, for this user alone."""
    own = Account(os.geteuid(), os.getegid(), "")
    for name in backup.manifest.keys:
        kept = f"{KEYS}/{Path(name).name}"
        copy_checked(backup.path / kept, root / Path(name).name, backup.manifest.files[kept], own, halt)


def _complete(staging: Path, target: Path) -> None:
    """Give the directory its name. An empty directory of that name is replaced."""
    sync_directory(staging)
    staging.rename(target)
    sync_directory(target.parent)
