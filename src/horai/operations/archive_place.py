"""The archive of one cluster: one file for each tenant, table and day, in a directory or in a bucket.

    <cluster>/tenant-<id>/<table>/<day>-<label>.parquet

Clusters can share a directory or a bucket. Files that are not complete are in a local directory.
"""

import hashlib
import os
import shutil
from collections.abc import Generator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from uuid import UUID

from horai.core.settings import EngineSettings
from horai.db.archives import PartitionDay
from horai.operations.archive_bucket import BucketStore
from horai.operations.archive_directory import DirectoryStore, make_directories
from horai.operations.file_cache import CachedFile

WORK = ".work"
LOCK = ".lock"


class ArchiveBusy(Exception):
    """Another process archives to the same directory, or removes the file."""


class ArchiveStore(Protocol):
    """A directory or a bucket that keeps the files. Its methods raise `OSError` if it does not work."""

    @property
    def local(self) -> Path:
        """Return a local directory for files that are not complete."""
        ...

    def label_of(self, identity: str, sha256: str) -> str:
        """Return the end of a file's name, of the hash of tenant, table and day, or of that of its content."""
        ...

    async def publish(self, written: Path, path: str, size: int, sha256: str) -> None:
        """Store a complete file. Afterwards it can be read, and a crash does not lose it."""
        ...

    async def is_intact(self, file: CachedFile) -> bool:
        """Return whether a recorded file is still there."""
        ...

    async def delete(self, path: str) -> None:
        """Delete a file; one that is not there is deleted."""
        ...

    async def forget(self, directory: str) -> None:
        """Delete what no record names below a directory, as far as the store can list it."""
        ...

    def reading(self, files: Sequence[CachedFile]) -> AbstractAsyncContextManager[list[Path]]:
        """Yield local places of files, which stay until the end."""
        ...

    async def close(self) -> None:
        """Close what is open."""
        ...


@dataclass(frozen=True, slots=True)
class ArchivePlace:
    """The archive of one cluster in a store."""

    store: ArchiveStore
    cluster: UUID

    @property
    def work(self) -> Path:
        """Return the directory of files that are not complete."""
        return self.store.local / str(self.cluster) / WORK

    def path_of(self, tenant_id: int, part: PartitionDay, sha256: str) -> str:
        """Return the path of a file in the store."""
        named = f"{self.cluster}:{tenant_id}:{part.table}:{part.day:%Y-%m-%d}"
        label = self.store.label_of(hashlib.sha256(named.encode()).hexdigest()[:16], sha256)
        return f"{self.directory_of(tenant_id)}/{part.table}/{part.day:%Y-%m-%d}-{label}.parquet"

    def directory_of(self, tenant_id: int) -> str:
        """Return the path that all files of a tenant begin with."""
        return f"{self.cluster}/tenant-{tenant_id}"

    @contextmanager
    def working(self) -> Generator[Path]:
        """Yield an empty directory for unfinished files. It is removed at the end, and after a crash by the next process.

        Raises `ArchiveBusy` if another process is at work. The lock ends with its process.
        """
        import fcntl  # noqa: PLC0415 - Windows does not have it, and nodes do not run there

        make_directories(self.store.local, self.work.parent)
        with (self.work.parent / LOCK).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ArchiveBusy(str(self.store.local)) from error
            shutil.rmtree(self.work, ignore_errors=True)
            self.work.mkdir(mode=0o700)
            try:
                yield self.work
            finally:
                shutil.rmtree(self.work, ignore_errors=True)


def store_of(settings: EngineSettings) -> ArchiveStore | None:
    """Return the store of the archive; None if there is none. The caller closes it."""
    if settings.archive_dir is None:
        return None
    if settings.archive_bucket is None:
        return DirectoryStore(Path(settings.archive_dir))
    cache = default_cache() if settings.archive_cache is None else Path(settings.archive_cache)
    return BucketStore(settings.archive_bucket, cache, settings.archive_cache_bytes)


def default_cache() -> Path:
    """Return the directory for cached files of the current user."""
    if os.geteuid() == 0:
        return Path("/var/cache/horai/archive")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "horai" / "archive"
