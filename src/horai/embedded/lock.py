"""The lock that allows one live supervisor per data directory."""

import fcntl
import os
from pathlib import Path

from horai.embedded.errors import GIVE_OTHER_DIRECTORY, DirectoryInUse, DirectoryNotOurs


class DirectoryLock:
    """A lock that is held from `acquire` to `release`. If this process dies in any way, the kernel releases it.

    The postmaster does not inherit it, so a free lock beside a running postmaster means that its supervisor died.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock, or raise `DirectoryInUse` with the process id of its holder. A second call has no effect."""
        if self._descriptor is not None:
            return
        descriptor = self._open()
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
            os.close(descriptor)
            raise DirectoryInUse(
                f"{self._path.parent} is in use by another Horai (process {holder or 'unknown'}).",
                f"Stop that one, or use its database. {GIVE_OTHER_DIRECTORY}",
            ) from error
        except OSError:
            os.close(descriptor)
            raise
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Release the lock. The file stays and marks the directory as Horai's."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> int:
        try:
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except PermissionError as error:
            raise DirectoryNotOurs(f"{self._path.parent} belongs to another user.", GIVE_OTHER_DIRECTORY) from error
