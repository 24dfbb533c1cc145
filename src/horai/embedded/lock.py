"""One living supervisor per data directory."""

import fcntl
import os
from pathlib import Path

from horai.embedded.errors import GIVE_OTHER_DIRECTORY, DirectoryInUse, DirectoryNotOurs


class DirectoryLock:
    """Held from `acquire` to `release`, or until this process dies in whatever way: the kernel lets go of it then.

    The postmaster does not inherit it, so a lock that is free next to a living postmaster means: its supervisor died.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock or say who has it; taking it twice is taking it once."""
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
        """Let go; the file stays, as the mark that the directory is Horai's."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> int:
        try:
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except PermissionError as error:
            raise DirectoryNotOurs(f"{self._path.parent} belongs to another user.", GIVE_OTHER_DIRECTORY) from error
