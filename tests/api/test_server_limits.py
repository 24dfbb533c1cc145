"""The limits of the HTTP server, by raw connections to a whole node. Full-size attacks: tests/faults/test_server_abuse.py."""

import asyncio
import gc
import json
import tracemalloc
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from harness import FAST, Client, node
from structlog.testing import capture_logs

from api import given
from horai.api.abuse_log import Abuse, AbuseLog
from horai.core.settings import ServerLimits

LIMITS = ServerLimits(
    header_time=timedelta(seconds=20),
    body_time=timedelta(seconds=20),
    body_rate=1_000_000,
    body_free=1_000,
    bodies_in_memory=100_000,
)
SHORT = timedelta(milliseconds=400)
HOST = b"Host: 127.0.0.1\r\n"
GET = b"GET /healthz HTTP/1.1\r\n" + HOST


@asynccontextmanager
async def server(url: str, **changes: Any) -> AsyncGenerator[Client]:
    async with node(url, FAST, limits=replace(LIMITS, **changes)) as api:
        try:
            yield api
        finally:
            while OPENED:
                OPENED.pop().close()


OPENED: list["Raw"] = []


class Raw:
    """A connection on which a test writes bytes of its own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        OPENED.append(self)

    @classmethod
    async def to(cls, api: Client) -> "Raw":
        host, port = api.base.removeprefix("http://").split(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> tuple[int, Any]:
        """Status and JSON body of the next response; status 0 when the server closed without one."""
        async with asyncio.timeout(30):
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                line = await self.reader.readline()
                if not line:
                    return 0, None
                head += line
            size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            return int(head.split()[1]), json.loads(await self.reader.readexactly(size))

    async def is_closed(self) -> bool:
        async with asyncio.timeout(30):
            with suppress(ConnectionResetError):
                await self.reader.read()
            return self.reader.at_eof() or self.reader.exception() is not None

    def close(self) -> None:
        self.writer.transport.abort()


async def answer_to(api: Client, *parts: bytes) -> tuple[int, Any]:
    """Send parts on a new connection and read the answer, which may come before the last part."""
    raw = await Raw.to(api)
    try:
        for part in parts:
            await raw.send(part)
            await asyncio.sleep(0)
    except ConnectionError:
        pass
    answered = await raw.answer()
    if answered[0] in {400, 408, 431, 503}:
        assert await raw.is_closed()
    raw.close()
    return answered


async def test_headers_beyond_their_limits_get_431_and_the_connection_is_closed(url: str) -> None:
    async with server(url) as api:
        for parts in (
            (GET, *(b"X-%d: y\r\n" % number for number in range(200))),
            (GET + b"X: ", b"y" * 70_000),
            (GET + b"X: " + b"y" * 70_000 + b"\r\n\r\n",),
            (b"GET /" + b"y" * 70_000,),
            (GET, *(b"X%d: " % number + b"y" * 1000 + b"\r\n" for number in range(70))),
        ):
            status, problem = await answer_to(api, *parts)
            assert (status, problem["code"]) == (431, "SCH_431_HEADERS_TOO_LARGE"), parts[0][:20]

        assert (await answer_to(api, GET + b"X: " + b"y" * 60_000 + b"\r\n\r\n"))[0] == 200
        fields = b"".join(b"X-%d: y\r\n" % number for number in range(99))
        assert (await answer_to(api, GET + fields + b"\r\n"))[0] == 200


async def test_trailers_are_bounded_and_do_not_become_headers(url: str) -> None:
    chunked = b"POST /api/v1/jobs HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n \r\n0\r\n"
    async with server(url) as api:
        status, problem = await answer_to(api, chunked, b"X: ", *[b"y" * 50_000] * 3)
        assert (status, problem["code"]) == (431, "SCH_431_HEADERS_TOO_LARGE")

        status, problem = await answer_to(api, chunked + b"Host: 127.0.0.1\r\n\r\n")
        assert (status, problem["code"]) == (422, "SCH_422_INVALID"), "a second Host would be 400"


async def test_headers_that_do_not_arrive_in_time_get_408(url: str) -> None:
    async with server(url, header_time=SHORT) as api:
        began = asyncio.get_running_loop().time()
        status, problem = await answer_to(api, b"GET / HT")
        assert (status, problem["code"]) == (408, "SCH_408_TOO_SLOW")
        silent = await Raw.to(api)
        assert await silent.is_closed()
        assert asyncio.get_running_loop().time() - began < 5

        used = await Raw.to(api)
        await used.send(GET + b"\r\n")
        assert (await used.answer())[0] == 200
        await used.send(b"GET /healthz")  # the second request of a connection has the same time
        assert (await used.answer())[0] == 408


async def test_a_body_that_stalls_gets_408_and_one_that_flows_has_time_by_its_size(url: str) -> None:
    head = b"POST /api/v1/jobs HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\nContent-Length: 900\r\n\r\n"
    async with server(url, body_time=SHORT) as api:
        status, problem = await answer_to(api, head, b"{")
        assert (status, problem["code"]) == (408, "SCH_408_TOO_SLOW")

    async with server(url, body_time=SHORT, body_rate=100) as api:
        raw = await Raw.to(api)
        await raw.send(head)
        for _ in range(9):  # 0.9 s in total: beyond body_time, within body_time + 900 / 100 s
            await raw.send(b" " * 100)
            await asyncio.sleep(0.1)
        assert (await raw.answer())[0] == 422


async def test_bodies_in_memory_are_bounded_and_small_requests_go_on(url: str) -> None:
    head = b"POST /api/v1/jobs HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    async with server(url, body_time=timedelta(minutes=2)) as api:
        first = await Raw.to(api)
        await first.send(head % 90_001 + b" " * 90_000)
        await asyncio.sleep(0.2)

        status, problem = await answer_to(api, head % 50_000 + b" " * 49_999)
        assert (status, problem["code"]) == (503, "SCH_503_BUSY")
        assert (await api("POST", "/api/v1/jobs", {"name": "small"})).status == 201

        await first.send(b"{")  # the first body is complete: its bytes are free once it is answered
        assert (await first.answer())[0] == 422
        assert (await answer_to(api, head % 50_000 + b" " * 50_000))[0] == 422
        aborted = await Raw.to(api)
        await aborted.send(head % 90_001 + b" " * 90_000)
        await asyncio.sleep(0.2)
        aborted.close()
        await asyncio.sleep(0.2)
        assert (await answer_to(api, head % 90_000 + b" " * 90_000))[0] == 422


async def test_half_open_connections_make_room_for_requests(url: str) -> None:
    async with server(url, connections=20, header_time=timedelta(minutes=2)) as api:
        half_open = [await Raw.to(api) for _ in range(60)]
        for raw in half_open:
            await raw.send(b"GET / HT")
        assert (await api("GET", "/healthz")).status == 200
        assert (await half_open[0].answer())[0] in {0, 408}
        await half_open[-1].send(b"TP/1.1\r\n" + HOST + b"\r\n")
        for raw in half_open:
            raw.close()


async def test_connections_with_requests_in_progress_are_kept_and_the_next_one_gets_503(url: str) -> None:
    body = b"POST /api/v1/jobs HTTP/1.1\r\n" + HOST + b"Content-Length: 9\r\n\r\n"
    async with server(url, connections=8, body_time=timedelta(minutes=2)) as api:
        busy = [await Raw.to(api) for _ in range(6)]  # three quarters: the limit of one address
        for raw in busy:
            await raw.send(body)
        await asyncio.sleep(0.2)

        status, problem = await answer_to(api)
        assert (status, problem["code"]) == (503, "SCH_503_BUSY")
        for raw in busy:
            await raw.send(b"        {")
            assert (await raw.answer())[0] == 422
            raw.close()
        await asyncio.sleep(0.1)
        assert (await answer_to(api, GET + b"\r\n"))[0] == 200


async def test_many_pipelined_requests_are_refused(url: str) -> None:
    async with server(url) as api:
        raw = await Raw.to(api)
        await raw.send((GET + b"\r\n") * 200)
        assert await raw.is_closed()
        assert (await answer_to(api, (GET + b"\r\n") * 3))[0] == 200


async def test_a_large_body_for_an_unknown_job_is_refused_before_it_is_read(url: str) -> None:
    head = b"POST /api/v1/jobs/nobody/instances/batch HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
    async with server(url, body_time=timedelta(minutes=2)) as api:
        for framing in (b"Content-Length: 30000000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n"):
            status, problem = await answer_to(api, head + framing)
            assert (status, problem["code"]) == (404, "SCH_404_NOT_FOUND")


async def test_a_client_that_disconnects_during_its_body_is_one_log_line_without_a_traceback(url: str) -> None:
    head = b"POST /api/v1/jobs HTTP/1.1\r\n" + HOST + b"Content-Length: 100\r\n\r\n"
    with capture_logs() as lines:
        async with server(url) as api:
            for _ in range(5):
                raw = await Raw.to(api)
                await raw.send(head + b"{")
                await asyncio.sleep(0.05)
                raw.close()
            await asyncio.sleep(0.1)
    limited = [line for line in lines if line["event"] == "requests limited"]
    assert [(line["kind"], line["count"]) for line in limited] == [(Abuse.DISCONNECT.value, 5)]
    assert not [line for line in lines if "exc_info" in line or line["event"] == "request failed"]


async def test_two_host_headers_get_400(url: str) -> None:
    async with server(url) as api:
        status, problem = await answer_to(api, GET + HOST + b"\r\n")
        assert (status, problem["code"]) == (400, "SCH_400_MALFORMED")


async def test_forwarded_headers_do_not_change_the_address_of_a_client(url: str) -> None:
    with capture_logs() as lines:
        async with server(url) as api:
            raw = await Raw.to(api)
            forged = b"X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Proto: https\r\nContent-Length: 100\r\n\r\n{"
            await raw.send(b"POST /api/v1/jobs HTTP/1.1\r\n" + HOST + forged)
            await asyncio.sleep(0.1)
            raw.close()
            await asyncio.sleep(0.1)
    assert [line["last_address"] for line in lines if line["event"] == "requests limited"] == ["127.0.0.1"]


async def test_a_request_that_is_not_http_gets_400(url: str) -> None:
    async with server(url) as api:
        status, problem = await answer_to(api, b"\x16\x03\x01\x02\x00\r\n\r\n")
        assert (status, problem["code"]) == (400, "SCH_400_MALFORMED")


async def test_each_kind_of_abuse_is_logged_once_per_window_with_its_count() -> None:
    with capture_logs() as lines:
        tally = AbuseLog(first=0.05, window=0.2)
        for _ in range(3):
            tally.note(Abuse.NOT_HTTP, "127.0.0.1")
        tally.note(Abuse.SLOW_BODY, "127.0.0.1")
        await asyncio.sleep(0.1)
        for _ in range(4):
            tally.note(Abuse.NOT_HTTP, "127.0.0.1")
        assert [(line["kind"], line["count"]) for line in lines] == [("not valid HTTP", 3), ("body too slow", 1)]
        tally.close()
    assert [(line["kind"], line["count"]) for line in lines][2:] == [("not valid HTTP", 4)]


@pytest.mark.parametrize("headers", [{}, {"Idempotency_Key": "large"}])
async def test_a_request_that_was_answered_holds_no_memory_until_the_next_collection(
    api: Client, headers: dict[str, str]
) -> None:
    """Python collects cycles only after 50,000 new objects: by then, payloads of 1 MB would fill a small machine."""
    job = await given.job(api, status="PAUSED")
    path = f"/api/v1/jobs/{job['id']}/instances"

    async def put(key: int) -> None:
        body = {"payload": "p" * 1_000_000, "executeTime": "2999-01-01T00:00:00Z"}
        assert (await api("PUT", f"{path}/{key}", body, **headers)).status == 201

    await put(0)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        for key in range(1, 11):
            await put(key)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert held < 4_000_000
