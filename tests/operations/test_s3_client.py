"""The client of S3-compatible storage against a real HTTP server that checks its signatures."""

import hashlib
import ssl
from collections.abc import Generator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp.connector
import pytest
from aiohttp.resolver import ThreadedResolver
from certificates import certificate
from s3_server import KEY_ID, SECRET, S3Server

from horai.core.bucket import Addressing, BucketCredentials
from horai.operations import s3_client
from horai.operations.s3_client import BucketFailed, S3Client

CONTENT = bytes(range(256)) * 9000
"""More than two chunks."""
SHA = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def storage() -> Generator[S3Server]:
    with S3Server() as server:
        yield server


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_client, "PAUSES", (0.0, 0.0))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    place = tmp_path / "content"
    place.write_bytes(CONTENT)
    return place


async def test_a_file_is_put_read_sized_and_deleted(storage: S3Server, file: Path, tmp_path: Path) -> None:
    client = S3Client(storage.settings("some/prefix"))
    assert await client.size_of("day.parquet") is None

    await client.put("day.parquet", file, len(CONTENT), SHA)

    assert storage.objects == {"some/prefix/day.parquet": CONTENT}
    assert await client.size_of("day.parquet") == len(CONTENT)
    with (tmp_path / "read").open("w+b") as to:
        assert await client.get("day.parquet", len(CONTENT), to) == SHA
    assert (tmp_path / "read").read_bytes() == CONTENT
    await client.delete("day.parquet")
    await client.delete("day.parquet")
    assert storage.objects == {}
    assert storage.refusals == ["NoSuchKey"], "the size of an object that is not there"


async def test_the_name_of_the_bucket_may_be_in_the_host(
    storage: S3Server, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class EveryNameIsHere(ThreadedResolver):
        async def resolve(self, host: str, *more: Any, **_: Any) -> Any:
            return await super().resolve("127.0.0.1", *more)

    monkeypatch.setattr(aiohttp.connector, "DefaultResolver", EveryNameIsHere)
    settings = replace(
        storage.settings(), addressing=Addressing.VIRTUAL, endpoint=f"http://storage.test:{storage.port}"
    )

    await S3Client(settings).put("a", file, len(CONTENT), SHA)

    assert storage.objects == {"a": CONTENT}
    assert storage.seen[0].headers["host"] == f"archive.storage.test:{storage.port}"


@pytest.mark.parametrize(
    ("credentials", "code"),
    [
        (BucketCredentials(KEY_ID, "another-secret"), "SignatureDoesNotMatch"),
        (BucketCredentials("AKIAOTHER", SECRET), "InvalidAccessKeyId"),
    ],
)
async def test_wrong_credentials_are_refused_and_not_told(
    storage: S3Server, file: Path, credentials: BucketCredentials, code: str
) -> None:
    client = S3Client(replace(storage.settings(), credentials=credentials))

    with pytest.raises(BucketFailed, match=f"put: HTTP 403 {code}$") as failed:
        await client.put("a", file, len(CONTENT), SHA)

    assert storage.objects == {}
    assert len(storage.seen) == 1, "a second try would not help"
    for secret in (credentials.secret, credentials.key_id, KEY_ID):
        assert secret not in repr(failed.value)


async def test_a_signature_of_another_time_is_refused(storage: S3Server) -> None:
    client = S3Client(storage.settings(), clock=lambda: datetime.now(UTC) - timedelta(hours=1))
    with pytest.raises(BucketFailed, match="RequestTimeTooSkewed"):
        await client.delete("a")


async def test_a_file_that_changed_since_it_was_summed_is_refused(storage: S3Server, file: Path) -> None:
    with pytest.raises(BucketFailed, match="HTTP 400 XAmzContentSHA256Mismatch"):
        await S3Client(storage.settings()).put("a", file, len(CONTENT), hashlib.sha256(b"other").hexdigest())
    assert storage.objects == {}


async def test_no_redirect_is_followed(storage: S3Server, file: Path) -> None:
    with S3Server() as thief:
        for status in (301, 302, 307, 308):
            storage.refuse(status, "PermanentRedirect", f"{thief.endpoint}/archive/a")
            client = S3Client(storage.settings())
            with pytest.raises(BucketFailed, match=f"HTTP {status} PermanentRedirect .a redirect"):
                await client.put("a", file, len(CONTENT), SHA)
            with pytest.raises(BucketFailed, match=f"HTTP {status}"):
                await client.get("a", len(CONTENT))
        assert thief.seen == []


async def test_an_answer_with_more_or_fewer_bytes_is_a_failure(storage: S3Server, tmp_path: Path) -> None:
    storage.objects["a"] = CONTENT
    client = S3Client(storage.settings())
    storage.adds_bytes = 1
    with pytest.raises(BucketFailed, match="more than"):
        await client.get("a", len(CONTENT))
    storage.recover()
    with pytest.raises(BucketFailed, match=f"has {len(CONTENT)} bytes, not {len(CONTENT) + 1}"):
        await client.get("a", len(CONTENT) + 1)


async def test_an_overloaded_storage_is_asked_three_times(storage: S3Server, file: Path) -> None:
    storage.refuse(503, "SlowDown")
    with pytest.raises(BucketFailed, match="HTTP 503 SlowDown"):
        await S3Client(storage.settings()).put("a", file, len(CONTENT), SHA)
    assert len(storage.seen) == 3


async def test_a_storage_that_is_away_or_silent_is_a_failure(
    storage: S3Server, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_client, "SILENCE", 0.2)
    client = S3Client(storage.settings())
    with storage.holding("PUT"), pytest.raises(BucketFailed, match="no answer in time"):
        await client.put("a", file, len(CONTENT), SHA)
    storage.stop()
    with pytest.raises(BucketFailed, match="cannot connect"):
        await client.get("a", 1)


async def test_tls_is_checked(tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chain, key = certificate(tmp_path, "127.0.0.1")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(chain, key)
    with S3Server(tls=context) as storage:
        client = S3Client(storage.settings())
        with pytest.raises(BucketFailed, match="put: TLS failed"):
            await client.put("a", file, len(CONTENT), SHA)
        assert storage.seen == [], "nothing is sent to a server that is not known"


async def test_a_file_that_one_request_cannot_put_is_refused(
    storage: S3Server, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_client, "LARGEST", 10)
    with pytest.raises(BucketFailed, match="larger than one object"):
        await S3Client(storage.settings()).put("a", file, len(CONTENT), SHA)
    assert storage.seen == []
