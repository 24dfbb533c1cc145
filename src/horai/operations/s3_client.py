"""A client of S3-compatible storage: put, read, size and delete of one object.

It follows no redirect, so that signed headers and files go to the configured endpoint only. It takes from an answer its
status, its error code and as many bytes as the caller expects. Messages name the operation and the reason; they hold no
credential and no header.
"""

import asyncio
import hashlib
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, TypeVar

import aiohttp
from yarl import URL

from horai.core.bucket import BucketSettings
from horai.core.sigv4 import EMPTY, Unsigned, encoded_path, signed_headers
from horai.operations.wall_clock import wall_clock

CONNECT, SILENCE = 10.0, 30.0
"""Seconds that a connection may take, and that the storage may be silent for."""
SHORT, LONGEST = 60.0, 25 * 60.0
"""Seconds of a request without a file, and at most with one."""
SLOWEST = 1 << 20
"""Bytes per second at which a file must move at least, beyond the first minute."""
LARGEST = 5 * 1024**3
"""Bytes of the largest object that one request may put."""
CHUNK = 1 << 20
ERROR_BYTES = 4096
PAUSES = (0.2, 1.0)
"""Seconds before the second and the third try of a request that the storage could not serve."""
Made = TypeVar("Made")
_CODE = re.compile(rb"<Code>([A-Za-z0-9]{1,64})</Code>")


class BucketFailed(OSError):
    """The storage did not take, give or delete an object. Its text has no credential."""


class _Unserved(BucketFailed):
    """The storage is out of reach or overloaded: a second try may succeed."""


class S3Client:
    """Requests to one bucket. Each of them can be repeated, and is tried three times if the storage does not serve it."""

    def __init__(self, bucket: BucketSettings, clock: Callable[[], datetime] = wall_clock) -> None:
        self._bucket = bucket
        self._clock = clock

    async def put(self, key: str, file: Path, size: int, sha256: str) -> None:
        """Upload a file. The storage compares it with its SHA-256, which is signed. Raises `BucketFailed`."""
        if size > LARGEST:
            raise BucketFailed(f"a file of {size} bytes is larger than one object may be: {LARGEST} bytes")

        async def once() -> None:
            with file.open("rb") as body:
                async with self._request("PUT", key, size, sha256, body) as answer:
                    await _require(answer, "put", 200)

        await _tried(once)

    async def get(self, key: str, size: int, to: BinaryIO | None = None) -> str:
        """Read an object of `size` bytes, into a file if one is given. Return its SHA-256. Raises `BucketFailed`."""

        async def once() -> str:
            found, count = hashlib.sha256(), 0
            if to is not None:
                to.seek(0)
                to.truncate()
            async with self._request("GET", key, size) as answer:
                await _require(answer, "get", 200)
                async for chunk in answer.content.iter_chunked(CHUNK):
                    count += len(chunk)
                    if count > size:
                        raise BucketFailed(f"get: the object has more than {size} bytes")
                    await asyncio.to_thread(_take, chunk, found.update, to)
            if count < size:
                raise _Unserved(f"get: the object has {count} bytes, not {size}")
            return found.hexdigest()

        return await _tried(once)

    async def size_of(self, key: str) -> int | None:
        """Return the size of an object; None if it is not there. Raises `BucketFailed`."""

        async def once() -> int | None:
            async with self._request("HEAD", key) as answer:
                if answer.status == 404:
                    return None
                await _require(answer, "head", 200)
                return answer.content_length

        return await _tried(once)

    async def delete(self, key: str) -> None:
        """Delete an object; one that is not there is deleted. Raises `BucketFailed`."""

        async def once() -> None:
            async with self._request("DELETE", key) as answer:
                if answer.status != 404:
                    await _require(answer, "delete", 200, 204)

        await _tried(once)

    @asynccontextmanager
    async def _request(
        self, method: str, key: str, size: int = 0, sha256: str = EMPTY, body: BinaryIO | None = None
    ) -> AsyncGenerator[aiohttp.ClientResponse]:
        origin, host, path = self._bucket.address_of(key)
        unsigned = Unsigned(method, path, {"host": host}, sha256)
        headers = signed_headers(unsigned, self._bucket.credentials, self._bucket.region, self._clock())
        headers["accept-encoding"] = "identity"
        if body is not None:
            headers |= {"content-length": str(size), "content-type": "application/vnd.apache.parquet"}
        total = min(SHORT + size / SLOWEST, LONGEST)
        timeout = aiohttp.ClientTimeout(total=total, connect=CONNECT, sock_connect=CONNECT, sock_read=SILENCE)
        try:
            async with (
                aiohttp.ClientSession(
                    timeout=timeout, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()
                ) as session,
                session.request(
                    method,
                    URL(origin + encoded_path(path), encoded=True),
                    data=body,
                    headers=headers,
                    allow_redirects=False,
                ) as answer,
            ):
                yield answer
        except TimeoutError as error:
            raise BucketFailed(f"{method.lower()}: no answer in time") from error
        except aiohttp.ClientSSLError as error:
            raise BucketFailed(f"{method.lower()}: TLS failed") from error
        except (aiohttp.ClientError, ValueError) as error:
            raise _Unserved(f"{method.lower()}: {_reason(error)}") from error


def _take(chunk: bytes, digest: Callable[[bytes], None], to: BinaryIO | None) -> None:
    digest(chunk)
    if to is not None:
        to.write(chunk)


async def _require(answer: aiohttp.ClientResponse, operation: str, *statuses: int) -> None:
    """Raise the failure of an answer with another status."""
    if answer.status in statuses:
        return
    code = _CODE.search(await answer.content.read(ERROR_BYTES))
    told = f"{operation}: HTTP {answer.status}" + (f" {code[1].decode()}" if code is not None else "")
    if answer.status in (429, 500, 502, 503, 504):
        raise _Unserved(told)
    if 300 <= answer.status < 400:
        told += " (a redirect; is the endpoint or the region wrong?)"
    raise BucketFailed(told)


def _reason(error: Exception) -> str:
    """Return the kind of a failure. Its text could hold parts of an answer."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect ({error.os_error.strerror or type(error.os_error).__name__})"
    return type(error).__name__


async def _tried(once: Callable[[], Awaitable[Made]]) -> Made:
    for pause in PAUSES:
        try:
            return await once()
        except _Unserved:
            await asyncio.sleep(pause)
    try:
        return await once()
    except _Unserved as error:
        raise BucketFailed(str(error)) from error
