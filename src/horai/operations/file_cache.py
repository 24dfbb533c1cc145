"""A bounded cache of files on the local disk, named by their SHA-256.

A process owns a numbered directory below the given one, by a lock that ends with the process; the next process takes it
over with its files. Only this user can enter it. A file gets its name when it is complete and compared. The files that
readers hold stay; of the others, the one that was used least recently goes first.
"""

import asyncio
import os
import shutil
import stat
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

PARTIAL, LOCK, SLOT = ".part", ".lock", "horai-archive-"
MOST_SLOTS = 64


class CacheFull(OSError):
    """The files of a read do not fit into the cache, alone or beside the files of other reads."""


class StillFetching(Exception):
    """A file has not arrived in the time of a read. It goes on to arrive."""


@dataclass(frozen=True, slots=True)
class CachedFile:
    """A file that a reader wants: where it comes from, its size, and the SHA-256 that it must have."""

    path: str
    bytes: int
    sha256: str


@dataclass(slots=True)
class _Entry:
    bytes: int
    readers: int = 0
    arrival: asyncio.Task[None] | None = None


Fetch = Callable[[CachedFile, BinaryIO], Awaitable[str]]
"""Writes a file and returns its SHA-256."""


class FileCache:
    """The cache of one process. It opens at its first use."""

    def __init__(self, root: Path, most_bytes: int, fetch: Fetch) -> None:
        self._root = root
        self._most_bytes = most_bytes
        self._fetch = fetch
        self._entries: dict[str, _Entry] = {}
        """By SHA-256, those that were used least recently first."""
        self._slot: tuple[Path, int] | None = None

    @property
    def directory(self) -> Path:
        """Return the directory that belongs to this process. Raises `OSError`."""
        if self._slot is None:
            self._slot = _own_slot(self._root)
            self._entries = _found(self._slot[0])
        return self._slot[0]

    @property
    def used(self) -> int:
        """Return the bytes of all files, with those that arrive."""
        return sum(entry.bytes for entry in self._entries.values())

    @asynccontextmanager
    async def held(self, files: Sequence[CachedFile], patience: float) -> AsyncGenerator[list[Path]]:
        """Yield the places of files, which stay until the end. Raises `CacheFull`, `StillFetching` or `OSError`."""
        directory = self.directory
        if sum(size for size in {file.sha256: file.bytes for file in files}.values()) > self._most_bytes:
            raise CacheFull("the files of the read are larger than the cache")
        held = list[_Entry]()
        try:
            for file in files:
                held.append(self._enter(file))
            arrivals = [entry.arrival for entry in held if entry.arrival is not None]
            if arrivals:
                await _wait(arrivals, patience)
            yield [directory / file.sha256 for file in files]
        finally:
            for entry in held:
                entry.readers -= 1

    def _enter(self, file: CachedFile) -> _Entry:
        """Return the entry of a file, with one reader more. A file that is not there begins to arrive."""
        entry = self._entries.pop(file.sha256, None)
        if entry is not None and entry.bytes != file.bytes:
            (self.directory / file.sha256).unlink(missing_ok=True)
            entry = None
        if entry is None:
            self._make_room(file.bytes)
            entry = _Entry(file.bytes)
            entry.arrival = asyncio.create_task(self._arrive(file, entry), name="archive file")
            entry.arrival.add_done_callback(_seen)
        self._entries[file.sha256] = entry
        entry.readers += 1
        return entry

    def _make_room(self, size: int) -> None:
        for name, entry in list(self._entries.items()):
            if self.used + size <= self._most_bytes:
                return
            if entry.readers == 0 and entry.arrival is None:
                (self.directory / name).unlink(missing_ok=True)
                del self._entries[name]
        if self.used + size > self._most_bytes:
            raise CacheFull("other reads use the cache")

    async def _arrive(self, file: CachedFile, entry: _Entry) -> None:
        place = self.directory / file.sha256
        partial = place.with_suffix(PARTIAL)
        try:
            with _private(partial) as to:
                found = await self._fetch(file, to)
                to.flush()
                await asyncio.to_thread(os.fsync, to.fileno())
            _compare(found, file)
            partial.replace(place)
        except BaseException:
            partial.unlink(missing_ok=True)
            self._entries.pop(file.sha256, None)
            raise
        finally:
            entry.arrival = None

    async def close(self) -> None:
        """End what arrives, and give the directory free for another process."""
        arrivals = [entry.arrival for entry in self._entries.values() if entry.arrival is not None]
        for arrival in arrivals:
            arrival.cancel()
        await asyncio.gather(*arrivals, return_exceptions=True)
        slot, self._slot = self._slot, None
        if slot is not None:
            os.close(slot[1])


async def _wait(arrivals: Sequence[asyncio.Task[None]], patience: float) -> None:
    """Wait until all files are there. Raises the failure of one, or `StillFetching`; the arrivals go on."""
    _, late = await asyncio.wait(arrivals, timeout=patience, return_when=asyncio.FIRST_EXCEPTION)
    for arrival in arrivals:
        if arrival.done():
            arrival.result()
    if late:
        raise StillFetching


def _compare(found: str, file: CachedFile) -> None:
    if found != file.sha256:
        raise OSError(f"the file has the SHA-256 {found}, not {file.sha256}")


def _seen(arrival: asyncio.Task[None]) -> None:
    """Take note of a failure that no reader waits for any more."""
    if not arrival.cancelled():
        arrival.exception()


def _private(place: Path) -> BinaryIO:
    """Create a file that only this user can read."""
    return os.fdopen(os.open(place, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w+b")


def _own_slot(root: Path) -> tuple[Path, int]:
    """Lock the first directory that no other process has. Return it with the open lock. Raises `OSError`."""
    import fcntl  # noqa: PLC0415 - Windows does not have it, and nodes do not run there

    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    for number in range(MOST_SLOTS):
        directory = root / f"{SLOT}{number}"
        directory.mkdir(mode=0o700, exist_ok=True)
        found = directory.lstat()
        if found.st_uid != os.geteuid() or not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o077:
            raise PermissionError(f"{directory} must belong to the user of the node, and to no other user")
        lock = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        return directory, lock
    raise OSError(f"{root}: {MOST_SLOTS} processes use the cache")


def _found(directory: Path) -> dict[str, _Entry]:
    """Return the files that an earlier process left, the oldest first. Unfinished ones are deleted."""
    kept = list[tuple[float, str, int]]()
    for place in directory.iterdir():
        if place.name == LOCK:
            continue
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        elif place.suffix == PARTIAL:
            place.unlink()
        else:
            told = place.stat()
            kept.append((told.st_mtime, place.name, told.st_size))
    return {name: _Entry(size) for _, name, size in sorted(kept)}
