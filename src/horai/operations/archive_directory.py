"""The directory of the archive: one file for each tenant, table and day.

    DIR/<cluster>/tenant-<id>/<table>/<day>-<hash>.parquet

Clusters can share a directory. The hash follows from the cluster, the tenant, the table and the day, so that a second
try has the same name. A file gets its name when it is complete, verified and on disk: any file that has it can be read.
"""

import hashlib
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from horai.db.archives import PartitionDay

WORK = ".work"
LOCK = ".lock"
CHUNK = 1 << 20


class ArchiveBusy(Exception):
    """Another process archives to the same directory."""


@dataclass(frozen=True, slots=True)
class ArchiveDirectory:
    """The archive of one cluster below the directory of the operator."""

    root: Path
    cluster: UUID

    @property
    def work(self) -> Path:
        """Return the directory of files that are not complete."""
        return self.root / str(self.cluster) / WORK

    def path_of(self, tenant_id: int, part: PartitionDay) -> str:
        """Return the path of a file below the root."""
        named = f"{self.cluster}:{tenant_id}:{part.table}:{part.day:%Y-%m-%d}"
        digest = hashlib.sha256(named.encode()).hexdigest()[:16]
        return f"{self.cluster}/tenant-{tenant_id}/{part.table}/{part.day:%Y-%m-%d}-{digest}.parquet"

    @contextmanager
    def working(self) -> Generator[Path]:
        """Yield an empty directory for unfinished files. It is removed at the end, and after a crash by the next process.

        Raises `ArchiveBusy` if another process is at work. The lock ends with its process.
        """
        import fcntl  # noqa: PLC0415 - Windows does not have it, and nodes do not run there

        _make_directories(self.root, self.work.parent)
        with (self.work.parent / LOCK).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ArchiveBusy(str(self.root)) from error
            shutil.rmtree(self.work, ignore_errors=True)
            self.work.mkdir(mode=0o700)
            try:
                yield self.work
            finally:
                shutil.rmtree(self.work, ignore_errors=True)

    def publish(self, written: Path, path: str) -> None:
        """Give a file that is on disk its name, for good: the name is on disk as well."""
        place = file_below(self.root, path)
        _make_directories(self.root, place.parent)
        written.replace(place)
        _sync(place.parent)

    def forget_tenant(self, tenant_id: int) -> None:
        """Delete all files of a tenant. Raises `OSError` if one of them cannot be deleted."""
        place = self.root / str(self.cluster) / f"tenant-{tenant_id}"
        if place.exists():
            shutil.rmtree(place)
            _sync(place.parent)


def file_below(root: Path, path: str) -> Path:
    """Return the file of a recorded path. Raises `ValueError` for a path that leads out of the directory."""
    place = (root / path).resolve()
    if not place.is_relative_to(root.resolve()):
        raise ValueError(f"{path!r} is not a path of the archive")
    return place


def sync_file(place: Path) -> None:
    """Wait until the bytes of a file are on disk."""
    descriptor = os.open(place, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256_of(place: Path) -> str:
    """Return SHA-256 of a file in hexadecimal."""
    found = hashlib.sha256()
    with place.open("rb") as source:
        while chunk := source.read(CHUNK):
            found.update(chunk)
    return found.hexdigest()


def _make_directories(root: Path, place: Path) -> None:
    """Create a directory and those above it, which only this user can read, and put their names on disk."""
    if place.is_dir():
        return
    if place != root:
        _make_directories(root, place.parent)
    place.mkdir(mode=0o700, parents=place == root, exist_ok=True)
    _sync(place.parent)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
