"""The archive in a bucket of S3-compatible storage.

The name of an object has a hash of its content: a late upload of a process that was taken for dead adds an object, and
never replaces one that is recorded. An upload is read back before it counts. Reads go through a bounded local cache.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO

from horai.core.bucket import BucketSettings
from horai.operations.file_cache import CachedFile, FileCache
from horai.operations.s3_client import BucketFailed, S3Client

PATIENCE = 20.0
"""Seconds that a read waits for its files. A file that takes longer goes on to arrive, for the next read."""


class BucketStore:
    """The objects below the prefix of a bucket."""

    def __init__(self, bucket: BucketSettings, cache: Path, cache_bytes: int) -> None:
        self._client = S3Client(bucket)
        self._cache = FileCache(cache, cache_bytes, self._fetch)

    @property
    def local(self) -> Path:
        """Return the directory of this process in the cache."""
        return self._cache.directory

    def label_of(self, identity: str, sha256: str) -> str:
        """Return the end of an object's name, which follows from its content."""
        del identity
        return sha256[:32]

    async def publish(self, written: Path, path: str, size: int, sha256: str) -> None:
        """Upload a file, read it back and compare it. Raises `BucketFailed`."""
        await self._client.put(path, written, size, sha256)
        if (found := await self._client.get(path, size)) != sha256:
            raise BucketFailed(f"the object read back has the SHA-256 {found}, not {sha256}")

    async def is_intact(self, file: CachedFile) -> bool:
        """Return whether a recorded object is there with its size. Its content was compared when it was recorded."""
        return await self._client.size_of(file.path) == file.bytes

    async def delete(self, path: str) -> None:
        """Delete an object; one that is not there is deleted."""
        await self._client.delete(path)

    async def forget(self, directory: str) -> None:
        """Do nothing: the database names every object that can be there."""

    @asynccontextmanager
    async def reading(self, files: Sequence[CachedFile]) -> AsyncGenerator[list[Path]]:
        """Yield the places of cached files. Raises `OSError`, `CacheFull` or `StillFetching`."""
        async with self._cache.held(files, PATIENCE) as places:
            yield places

    async def _fetch(self, file: CachedFile, to: BinaryIO) -> str:
        return await self._client.get(file.path, file.bytes, to)

    async def close(self) -> None:
        """End downloads, and give the cache free."""
        await self._cache.close()
