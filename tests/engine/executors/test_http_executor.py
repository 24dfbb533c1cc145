"""Calls over HTTP, to a real receiver: what is sent, what the answer comes to, and what goes wrong."""

import asyncio
import errno
import gzip
import json
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from http_calls import SECRET, call_to, code_of, executor, in_loop
from receiver import DROP, Answer, Receiver

from horai.core.callbacks import verify
from horai.core.calls import HttpTarget, WorkerTarget
from horai.core.outcome import Accepted, FailedRetryable, FailedUnrecoverable, NotSent, Succeeded
from horai.engine.executors.http import _failure

# --- what is sent, and what the answer comes to


@in_loop
async def test_B13_the_answer_alone_carries_the_result_and_nothing_is_called_back():
    async with Receiver() as receiver, executor() as http:
        receiver.on(
            "/hook",
            Answer(json={"result": "SUCCESS", "output": {"rows": 3}}),
            Answer(json={"result": "FAIL_RETRYABLE", "message": "locked"}),
            Answer(json={"result": "FAIL_UNRECOVERABLE", "message": "gone"}),
            Answer(503, headers={"Retry-After": "7"}),
            Answer(404),
            Answer(204),
        )
        outcomes = [await http.run(call_to(receiver.url("/hook"))) for _ in range(6)]

    assert outcomes == [
        Succeeded('{"rows": 3}'),
        FailedRetryable("RESULT_RETRYABLE", "locked"),
        FailedUnrecoverable("RESULT_UNRECOVERABLE", "gone"),
        FailedRetryable("HTTP_503", "the target answered 503 Service Unavailable", timedelta(seconds=7)),
        FailedUnrecoverable("HTTP_404", "the target answered 404 Not Found"),
        Succeeded(),
    ]


@in_loop
async def test_C28_B19_every_call_carries_its_idempotency_token_and_every_try_the_same_one():
    async with Receiver() as receiver, executor() as http:
        receiver.on("/hook", Answer(500), DROP, Answer(429), Answer(200))
        for attempt in range(1, 5):
            await http.run(call_to(receiver.url("/hook"), attempt=attempt, fence=10 + attempt))

        assert [hit.headers["idempotency-key"] for hit in receiver.hits] == ["7:1767323045000"] * 4
        assert [hit.headers["horai-attempt"] for hit in receiver.hits] == ["1", "2", "3", "4"]
        assert [hit.headers["horai-fence"] for hit in receiver.hits] == ["11", "12", "13", "14"]
        assert list(receiver.effective) == ["acme:publish:article:42"]
        assert receiver.duplicates == []


@in_loop
async def test_C27_the_key_reaches_the_target_in_body_and_headers_and_the_signature_holds():
    async with Receiver() as receiver, executor() as http:
        await http.run(call_to(receiver.url("/hook"), key="文章/42\n"))
        hit = receiver.hits[0]

    assert hit.unit == "acme:publish:文章/42\n"
    assert hit.json["key"] == "文章/42\n"
    assert hit.json["payload"] == {"card": "4111"}
    assert hit.headers["accept-encoding"] == "identity"
    assert verify(SECRET, hit.headers, hit.body, datetime.now(UTC))


@in_loop
async def test_the_url_the_method_and_the_targets_headers_are_sent_as_they_were_written():
    async with Receiver() as receiver, executor() as http:
        url = receiver.url("/a%2Fb/c?sig=%2B%2c%41&x=+")
        await http.run(call_to(url, method="PUT", headers={"Authorization": "Bearer x"}))
        await http.run(call_to(receiver.url("") + "?a=1#fragment"))

    first, second = receiver.hits
    assert (first.method, first.path) == ("PUT", "/a%2Fb/c?sig=%2B%2c%41&x=+")
    assert first.headers["authorization"] == "Bearer x"
    assert second.path == "/?a=1"


@in_loop
async def test_a_payload_of_a_mebibyte_arrives_whole():
    payload = json.dumps("x" * (1024 * 1024 - 2))
    async with Receiver() as receiver, executor() as http:
        assert await http.run(call_to(receiver.url("/hook"), payload=payload)) == Succeeded()
        hit = receiver.hits[0]

    assert hit.headers["content-length"] == str(len(hit.body))
    assert payload.encode() in hit.body


@in_loop
async def test_a_202_leaves_the_target_what_is_left_of_the_timeout():
    async with Receiver() as receiver, executor() as http:
        receiver.on("/hook", Answer(202, delay=0.2))
        outcome = await http.run(call_to(receiver.url("/hook"), timeout=timedelta(seconds=10)))

    assert isinstance(outcome, Accepted)
    assert timedelta(seconds=9) < outcome.remaining <= timedelta(seconds=9.8)


@in_loop
async def test_a_connection_is_used_again_and_cookies_are_not():
    async with Receiver() as receiver, executor() as http:
        receiver.on("/hook", Answer(headers={"Set-Cookie": "session=1"}, json={}))
        for _ in range(3):
            assert await http.run(call_to(receiver.url("/hook", "localhost"))) == Succeeded()

    assert len({hit.peer for hit in receiver.hits}) == 1
    assert all("cookie" not in hit.headers for hit in receiver.hits)


# --- what goes wrong


@pytest.mark.parametrize("method", ["POST", "PUT", "GET"])
@in_loop
async def test_a_dropped_connection_is_retryable_and_the_request_was_sent_once(method: str):
    async with Receiver() as receiver, executor() as http:
        receiver.on("/hook", Answer(200), DROP)
        await http.run(call_to(receiver.url("/hook"), method=method))
        outcome = await http.run(call_to(receiver.url("/hook"), method=method))

    assert isinstance(outcome, FailedRetryable)
    assert outcome.code == "CONNECTION"
    assert len(receiver.hits) == 2


JSON = {"Content-Type": "application/json"}


@in_loop
async def test_a_json_body_over_256_kb_is_cut_and_fails_a_success():
    bomb = json.dumps({"result": "FAIL_UNRECOVERABLE", "message": "x" * 20_000_000}).encode()
    async with Receiver() as receiver, executor() as http:
        receiver.on("/bomb", Answer(body=bomb, headers=JSON), Answer(503, body=bomb, headers=JSON), Answer(body=bomb))
        assert code_of(await http.run(call_to(receiver.url("/bomb")))) == "ANSWER_UNREADABLE"
        assert code_of(await http.run(call_to(receiver.url("/bomb")))) == "HTTP_503"
        assert await http.run(call_to(receiver.url("/bomb"))) == Succeeded()


@in_loop
async def test_a_compressed_json_body_is_not_unpacked_and_fails_a_success():
    packed = gzip.compress(b'{"result": "FAIL_UNRECOVERABLE"}')
    async with Receiver() as receiver, executor() as http:
        receiver.on("/hook", Answer(body=packed, headers={"Content-Encoding": "gzip", **JSON}))
        outcome = await http.run(call_to(receiver.url("/hook")))
    assert isinstance(outcome, FailedUnrecoverable)
    assert outcome.code == "ANSWER_UNREADABLE"
    assert "gzip" in outcome.message
    assert receiver.hits[0].headers["accept-encoding"] == "identity"


@in_loop
async def test_trouble_with_the_connection_is_retryable_and_named(monkeypatch: pytest.MonkeyPatch):
    async with Receiver() as receiver, executor() as http:
        closed = await http.run(call_to("http://127.0.0.1:1/?token=hunter2"))
        untrusted = await http.run(call_to(receiver.url("/hook").replace("http:", "https:")))

        def fails(*_: Any, **__: Any) -> Any:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        monkeypatch.setattr(socket, "getaddrinfo", fails)
        unknown = await http.run(call_to("http://nowhere.example/?token=hunter2"))

    assert code_of(closed) == "CONNECTION"
    assert code_of(untrusted) == "CONNECTION"
    assert unknown == FailedRetryable("CONNECTION", "nowhere.example: its name could not be resolved")
    assert "hunter2" not in repr([closed, untrusted, unknown])


@in_loop
async def test_an_answer_that_is_not_http_is_retryable_and_json_that_breaks_off_is_unreadable():
    replies = [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
        b"HTTP/1.1 503 X\r\nContent-Length: 9\r\n\r\n{",
    ]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(replies.pop(0))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    async with server, executor() as http:
        outcomes = [await http.run(call_to(url)) for _ in range(3)]

    assert [code_of(outcome) for outcome in outcomes] == ["CONNECTION", "ANSWER_UNREADABLE", "HTTP_503"]
    assert "was not HTTP" in repr(outcomes[0])
    assert "broke off" in repr(outcomes[1])


def test_a_node_without_file_descriptors_does_not_blame_the_target():
    error = aiohttp.ClientConnectorError(None, OSError(errno.EMFILE, "Too many open files"))  # pyright: ignore[reportArgumentType]

    assert _failure("example.com", error) == NotSent(timedelta(seconds=1))


@in_loop
async def test_S5_a_call_without_a_secret_is_released_and_not_sent():
    async with Receiver() as receiver, executor() as http:
        outcome = await http.run(call_to(receiver.url("/hook"), secrets=()))
        assert receiver.hits == []

    assert outcome == NotSent(timedelta(seconds=1))


@in_loop
async def test_an_unexpected_error_is_a_retryable_outcome_that_shows_no_secret():
    async with Receiver() as receiver, executor() as http:
        outcome = await http.run(call_to(receiver.url("/hook"), secrets=("hunter2",)))
        assert await http.run(call_to(receiver.url("/hook"))) == Succeeded()
        assert http.in_flight == 0

    assert isinstance(outcome, FailedRetryable)
    assert outcome.code == "EXECUTOR_ERROR"
    assert "hunter2" not in outcome.message


@pytest.mark.parametrize(
    "target",
    [
        WorkerTarget("handler"),
        HttpTarget("http://user:hunter2@127.0.0.1/"),
        HttpTarget("gopher://127.0.0.1/?hunter2"),
        HttpTarget("http://127.0.0.1/", headers={"X-A": "hunter2\r\nHost: evil"}),
        HttpTarget("http://127.0.0.1/", method="POST / HTTP/1.1\r\nhunter2"),
    ],
)
@in_loop
async def test_a_target_that_cannot_be_called_is_unrecoverable(target: HttpTarget | WorkerTarget):
    async with executor() as http:
        outcome = await http.run(call_to("", target=target))

    assert isinstance(outcome, FailedUnrecoverable)
    assert outcome.code == "INVALID_TARGET"
    assert "hunter2" not in outcome.message


# --- the receiver as a process of its own


@in_loop
async def test_the_receiver_runs_by_itself_and_logs_each_hit(tmp_path: Path):
    log = tmp_path / "hits.jsonl"
    command = [sys.executable, "-m", "tests.support.receiver", "--port", "0", "--log", str(log)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3])
    try:
        assert process.stdout is not None
        port = int(await asyncio.to_thread(process.stdout.readline))
        async with executor() as http:
            outcomes = [
                await http.run(call_to(f"http://127.0.0.1:{port}/hook{query}"))
                for query in ("?status=503", "", "?delay=0.01")
            ]
    finally:
        process.kill()
        process.communicate()

    assert [type(outcome) for outcome in outcomes] == [FailedRetryable, Succeeded, Succeeded]
    hits = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(hit["status"], hit["effective"]) for hit in hits] == [(503, False), (200, True), (200, False)]
    assert {hit["unit"] for hit in hits} == {"acme:publish:article:42"}
