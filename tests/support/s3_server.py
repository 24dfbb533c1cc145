"""A small S3-compatible server over HTTP, in a thread of its own: it keeps objects, checks each signature, and fails as told.

The check of AWS Signature Version 4 is written from its specification, apart from the client: method, path, signed
headers, the SHA-256 of the body, the scope and the age of the request. Both styles of addresses are understood.

    with S3Server() as storage:
        storage.settings("archive")            # of a client with the right credentials
        storage.refuse(403, "AccessDenied")    # until `recover`
        with storage.holding("PUT") as held:   # a request waits, as soon as `held.reached` is set
            ...
"""

import asyncio
import hashlib
import hmac
import re
import ssl
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Self

from aiohttp import web

from horai.core.bucket import Addressing, BucketCredentials, BucketSettings

KEY_ID, SECRET = "AKIAHORAITEST", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
REGION = "eu-test-1"
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([a-z0-9-]+)/s3/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})"
)


class Refusal(Exception):
    """An answer with an error code."""

    def __init__(self, status: int, code: str, location: str | None = None) -> None:
        super().__init__(code)
        self.status, self.code, self.location = status, code, location


@dataclass
class Hold:
    """Requests of one method wait until `release` is set; `reached` is set when one does."""

    method: str
    after: bool = False
    """Wait after the object was stored or deleted, before the answer."""
    reached: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class Seen:
    """A request as it arrived."""

    method: str
    bucket: str
    key: str
    headers: dict[str, str]


class S3Server:
    """The server. Its objects outlive a stop."""

    def __init__(self, bucket: str = "archive", secret: str = SECRET, tls: ssl.SSLContext | None = None) -> None:
        self.bucket, self.secret, self.port = bucket, secret, 0
        self.objects: dict[str, bytes] = {}
        self.seen: list[Seen] = []
        self.refusals: list[str] = []
        """The error codes of answers."""
        self.flips_bytes = False
        """Answers with other bytes than were stored."""
        self.adds_bytes = 0
        self._refusal: Refusal | None = None
        self._hold: Hold | None = None
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._runner: web.AppRunner | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    @property
    def endpoint(self) -> str:
        """The address of the server."""
        return f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a process that uses the server."""
        return {
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": REGION,
            "AWS_ENDPOINT_URL_S3": self.endpoint,
        }

    def settings(self, prefix: str = "") -> BucketSettings:
        """The bucket, with the right credentials."""
        return BucketSettings(
            self.bucket,
            prefix,
            self.endpoint,
            REGION,
            Addressing.PATH,
            BucketCredentials(KEY_ID, SECRET, "a-session-token"),
        )

    def start(self) -> None:
        """Listen, on the same port as before."""
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)

    def stop(self) -> None:
        """Refuse connections."""
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)

    def refuse(self, status: int, code: str, location: str | None = None) -> None:
        """Answer all requests with an error."""
        self._refusal = Refusal(status, code, location)

    def recover(self) -> None:
        """Serve again."""
        self._refusal, self.flips_bytes, self.adds_bytes = None, False, 0

    @contextmanager
    def holding(self, method: str, *, after: bool = False) -> Generator[Hold]:
        """Let requests of a method wait."""
        self._hold = hold = Hold(method, after)
        try:
            yield hold
        finally:
            self._hold = None
            hold.release.set()

    async def _start(self) -> None:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self._tls, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def _stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._serve(request)
        except Refusal as refusal:
            self.refusals.append(refusal.code)
            text = f"<?xml version='1.0'?><Error><Code>{refusal.code}</Code><Message>{KEY_ID}</Message></Error>"
            headers = {} if refusal.location is None else {"Location": refusal.location}
            return web.Response(status=refusal.status, text=text, headers=headers, content_type="application/xml")

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        bucket, key = self._named(request)
        self.seen.append(Seen(request.method, bucket, key, {n.lower(): v for n, v in request.headers.items()}))
        body = await request.read()
        if self._refusal is not None:
            raise self._refusal
        self._check_signature(request, body)
        if bucket != self.bucket:
            raise Refusal(404, "NoSuchBucket")
        await self._wait(request.method, after=False)
        answer = self._act(request.method, key, body)
        await self._wait(request.method, after=True)
        return answer

    def _named(self, request: web.Request) -> tuple[str, str]:
        host, path = request.headers["Host"].split(":")[0], request.path.lstrip("/")
        if host.startswith(f"{self.bucket}."):
            return self.bucket, path
        bucket, _, key = path.partition("/")
        return bucket, key

    async def _wait(self, method: str, *, after: bool) -> None:
        hold = self._hold
        if hold is not None and (hold.method, hold.after) == (method, after):
            hold.reached.set()
            await asyncio.to_thread(hold.release.wait, 60)

    def _act(self, method: str, key: str, body: bytes) -> web.StreamResponse:
        if method == "PUT":
            self.objects[key] = body
            return web.Response(headers={"ETag": hashlib.md5(body).hexdigest()})
        if method == "DELETE":
            self.objects.pop(key, None)
            return web.Response(status=204)
        if key not in self.objects:
            raise Refusal(404, "NoSuchKey")
        content = self.objects[key]
        if self.flips_bytes:
            content = bytes([content[0] ^ 255]) + content[1:]
        return web.Response(body=content + bytes(self.adds_bytes))

    def _check_signature(self, request: web.Request, body: bytes) -> None:
        told = _AUTHORIZATION.fullmatch(request.headers.get("Authorization", ""))
        if told is None:
            raise Refusal(403, "AccessDenied")
        key_id, day, region, names, signature = told.groups()
        if (key_id, region) != (KEY_ID, REGION):
            raise Refusal(403, "InvalidAccessKeyId")
        at, listed = request.headers["x-amz-date"], names.split(";")
        moment = datetime.strptime(at, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        if abs(datetime.now(UTC) - moment) > timedelta(minutes=15) or not at.startswith(day):
            raise Refusal(403, "RequestTimeTooSkewed")
        amazon = {name.lower() for name in request.headers if name.lower().startswith("x-amz-")}
        if listed != sorted(listed) or not {"host", *amazon} <= set(listed):
            raise Refusal(403, "AccessDenied")
        if hashlib.sha256(body).hexdigest() != request.headers["x-amz-content-sha256"]:
            raise Refusal(400, "XAmzContentSHA256Mismatch")
        lines = request.method + "\n" + request.raw_path + "\n\n"
        for name in listed:
            lines += name + ":" + request.headers[name].strip() + "\n"
        lines += "\n" + names + "\n" + request.headers["x-amz-content-sha256"]
        scope = f"{day}/{region}/s3/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n" + hashlib.sha256(lines.encode()).hexdigest()
        by_day = hmac.new(("AWS4" + self.secret).encode(), day.encode(), "sha256").digest()
        by_region = hmac.new(by_day, region.encode(), "sha256").digest()
        by_service = hmac.new(by_region, b"s3", "sha256").digest()
        key = hmac.new(by_service, b"aws4_request", "sha256").digest()
        if not hmac.compare_digest(hmac.new(key, text.encode(), "sha256").hexdigest(), signature):
            raise Refusal(403, "SignatureDoesNotMatch")
