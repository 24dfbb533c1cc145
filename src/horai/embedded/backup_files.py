"""The files of backups: hashed, copied, removed; and the lock of a directory of backups."""

import asyncio
import errno
import fcntl
import hashlib
import os
import shutil
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from horai.embedded.account import Account
from horai.embedded.backup_manifest import CopiedFile
from horai.embedded.errors import BackupFailed, BackupRefused, EmbeddedError

CHUNK = 1024 * 1024
SPARE = 64 * 1024 * 1024
"""Bytes that must be free beyond the size of the data: for WAL that is written meanwhile."""
NO_SPACE = "No space left on device"
REMOVAL_TRIES, REMOVAL_PAUSE = 100, 0.05
Result = TypeVar("Result")


class Halted(Exception):
    """The caller was cancelled: the thread ends."""


async def in_thread(work: Callable[[threading.Event], Result]) -> Result:
    """Run the work in a thread. A cancellation sets its event and waits for its end."""
    halt = threading.Event()
    task = asyncio.ensure_future(asyncio.to_thread(work, halt))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        halt.set()
        await asyncio.wait([task])
        _ = task.exception()  # retrieved, so that asyncio does not log it; the cancellation is raised
        raise


@contextmanager
def locked(directory: Path, what: str) -> Generator[None]:
    """Hold the lock of a directory. Raise `BackupRefused` if another process holds it; the kernel frees it at any death."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise BackupRefused(f"{what} {directory}.", "Wait for its end, or give another directory.") from error
    try:
        yield
    finally:
        os.close(descriptor)


@contextmanager
def told_plainly(target: Path) -> Generator[None]:
    """Turn errors of the disk into `BackupFailed`, which names the directory."""
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise disk_full(target) from error
        raise BackupFailed(f"{error.filename or target} cannot be used: {error.strerror or error}.") from error
    except EmbeddedError as error:
        if NO_SPACE in error.detail and not isinstance(error, BackupFailed):
            raise disk_full(target) from error
        raise


def disk_full(target: Path) -> BackupFailed:
    """Return the error of a full disk."""
    return BackupFailed(
        f"The disk of {target} is full.", "Free some space or give another directory. Nothing was kept."
    )


def require_space(target: Path, size: int) -> None:
    """Raise `BackupFailed` if the disk of the directory has less free space than `size` bytes and a reserve."""
    free = shutil.disk_usage(target).free
    if free < size + SPARE:
        raise BackupFailed(
            f"The disk of {target} has {in_mb(free)} free, and {in_mb(size + SPARE)} are needed.",
            "Free some space or give another directory.",
        )


def in_mb(size: int) -> str:
    """Return a size in MB, for people."""
    return f"{size / 1_000_000:,.0f} MB"


def size_of(cluster: Path) -> int:
    """Return the size of the files that a backup copies, in bytes: those of a cluster without its WAL."""
    total = 0
    for directory, names, files in os.walk(cluster):
        names[:] = [name for name in names if name != "pg_wal"]
        for name in files:
            try:
                total += Path(directory, name).lstat().st_size
            except FileNotFoundError:  # the server removes files while it works
                continue
    return total


def hashed(root: Path, halt: threading.Event) -> tuple[tuple[str, ...], dict[str, CopiedFile]]:
    """Return the directories and the files below `root`, and write each file to the disk."""
    directories, files = list[str](), dict[str, CopiedFile]()
    for directory, _, names in sorted(os.walk(root)):
        directories.append(str(Path(directory).relative_to(root)))
        for name in sorted(names):
            path = Path(directory, name)
            if path.is_symlink():
                raise BackupFailed(f"{path} is a symlink: a backup of tablespaces is not possible.")
            files[str(path.relative_to(root))] = _read(path, halt)
    for directory in directories:
        sync_directory(root / directory)
    return tuple(directories), files


def _read(path: Path, halt: threading.Event) -> CopiedFile:
    """Hash a file, and write it to the disk."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as source:
        for part in _parts(source.read, halt):
            digest.update(part)
            size += len(part)
        os.fsync(source.fileno())
    return CopiedFile(size, digest.hexdigest())


def check_copied(path: Path, expected: CopiedFile, halt: threading.Event) -> None:
    """Raise `BackupFailed` if a file is not the one that was copied."""
    if not path.is_file() or _read(path, halt) != expected:
        raise _damaged(path)


def copy_checked(source: Path, target: Path, expected: CopiedFile, account: Account, halt: threading.Event) -> None:
    """Copy a file for the user of PostgreSQL. Raise `BackupFailed` if the bytes are not those of the manifest."""
    digest, size = hashlib.sha256(), 0
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        reading = source.open("rb")
    except FileNotFoundError as error:
        raise _damaged(source) from error
    with reading, os.fdopen(os.open(target, flags, 0o600), "wb") as writing:
        for part in _parts(reading.read, halt):
            digest.update(part)
            size += len(part)
            writing.write(part)
        writing.flush()
        if account.is_other:
            os.fchown(writing.fileno(), account.uid, account.gid)
        os.fsync(writing.fileno())
    if (size, digest.hexdigest()) != (expected.size, expected.sha256):
        raise _damaged(source)


def _damaged(file: Path) -> BackupFailed:
    return BackupFailed(f"The backup is damaged: {file} is not the file that was written.", "Use another backup.")


def _parts(read: Callable[[int], bytes], halt: threading.Event) -> Iterator[bytes]:
    while part := read(CHUNK):
        if halt.is_set():
            raise Halted
        yield part


def write_synced(file: Path, text: str) -> None:
    """Write a new file that only this user can read, down to the disk."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())


def sync_directory(directory: Path) -> None:
    """Make the names in a directory survive a power cut."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_tree(tree: Path) -> None:
    """Remove a directory. A program of a killed process may still write there, and fails when its files are missing."""
    for _ in range(REMOVAL_TRIES):
        shutil.rmtree(tree, ignore_errors=True)
        if not tree.exists():
            return
        time.sleep(REMOVAL_PAUSE)
