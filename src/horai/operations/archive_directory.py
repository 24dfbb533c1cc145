"""The archive in a directory of the operator. All nodes see the same files.

A file gets its name when it is complete, verified and on disk: any file that has its name can be read. A file that is
written again has the same name and replaces the other one.
"""

import asyncio
import hashlib
import os
import shutil
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from horai.operations.file_cache import CachedFile

CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class DirectoryStore:
    """The files below a directory."""

    root: Path

    @property
    def local(self) -> Path:
        """Return the directory itself: a file is renamed within one file system."""
        return self.root

    def label_of(self, identity: str, sha256: str) -> str:
        """Return the end of a file's name, which follows from the tenant, the table and the day."""
        del sha256
        return identity

    async def publish(self, written: Path, path: str, size: int, sha256: str) -> None:
        """Give a file that is on disk its name, for good: the name is on disk as well."""
        del size, sha256
        await asyncio.to_thread(self._rename, written, path)

    def _rename(self, written: Path, path: str) -> None:
        place = file_below(self.root, path)
        make_directories(self.root, place.parent)
        written.replace(place)
        _sync(place.parent)

    async def is_intact(self, file: CachedFile) -> bool:
        """Return whether a recorded file is there, byte by byte."""
        return await asyncio.to_thread(_is_intact, file_below(self.root, file.path), file)

    async def delete(self, path: str) -> None:
        """Delete a file; one that is not there is deleted."""
        await asyncio.to_thread(self._unlink, path)

    def _unlink(self, path: str) -> None:
        place = file_below(self.root, path)
        place.unlink(missing_ok=True)
        if place.parent.is_dir():
            _sync(place.parent)

    async def forget(self, directory: str) -> None:
        """Delete a directory with all that is in it."""
        await asyncio.to_thread(self._forget, file_below(self.root, directory))

    def _forget(self, place: Path) -> None:
        if place.exists():
            shutil.rmtree(place)
            _sync(place.parent)

    @asynccontextmanager
    async def reading(self, files: Sequence[CachedFile]) -> AsyncGenerator[list[Path]]:
        """Yield the places of files. Raises `FileNotFoundError`."""
        places = [file_below(self.root, file.path) for file in files]
        for place in places:
            if not place.is_file():
                raise FileNotFoundError(str(place))
        yield places

    async def close(self) -> None:
        """Close nothing: no file is open."""


def _is_intact(place: Path, file: CachedFile) -> bool:
    return place.is_file() and place.stat().st_size == file.bytes and sha256_of(place) == file.sha256


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


def make_directories(root: Path, place: Path) -> None:
    """Create a directory and those above it, which only this user can read, and put their names on disk."""
    if place.is_dir():
        return
    if place != root:
        make_directories(root, place.parent)
    place.mkdir(mode=0o700, parents=place == root, exist_ok=True)
    _sync(place.parent)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
