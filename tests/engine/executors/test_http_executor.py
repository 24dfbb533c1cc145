import asyncio
import base64
import errno
import functools
import gzip
import json
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, ParamSpec

import aiohttp
import pytest
from receiver import DRIP, DROP, HANG, Answer, Receiver, redirect

from horai.core.addresses import AddressPolicy, parse_networks
from horai.core.callbacks import verify
from horai.core.calls import Call, HttpTarget, WorkerTarget
from horai.core.outcome import Accepted, FailedRetryable, FailedUnrecoverable, NotSent, Outcome, Succeeded
from horai.engine.executors.bulkhead import SHORTEST_DELAY, Bulkhead
from horai.engine.executors.dial import CheckedResolver
from horai.engine.executors.http import HttpExecutor, _failure

LOOPBACK = AddressPolicy(parse_networks(["127.0.0.0/8", "::1"]))
SECRET = "whsec_" + base64.b64encode(b"a secret of the tenant").decode()
SHORT = timedelta(seconds=0.3)
ROOT = Path(__file__).resolve().parents[3]
P = ParamSpec("P")


def in_loop(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """Run an async test in a loop of its own."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        async def body() -> None:
            await test(*args, **kwargs)

        asyncio.run(body())

    return run


def call_to(url: str, **changes: Any) -> Call:
    method, headers = changes.pop("method", "POST"), changes.pop("headers", {})
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    fields: dict[str, Any] = {
        "instance_id": 1,
        "job_id": 7,
        "job": "publish",
        "tenant": "acme",
        "key": "article:42",
        "fire_time": at,
        "execute_time": at,
        "attempt": 1,
        "fence": 1,
        "born_for": at,
        "slot": 0,
        "payload": '{"card": "4111"}',
        "target": HttpTarget(url, method, headers),
        "timeout": None,
        "secrets": (SECRET,),
    }
    return Call(**(fields | changes))


@asynccontextmanager
async def executor(policy: AddressPolicy = LOOPBACK, **options: Any) -> AsyncGenerator[HttpExecutor]:
    opened = HttpExecutor(policy, **options)
    await opened.open()
    try:
        yield opened
    finally:
        await opened.close()


async def until(holds: Callable[[], bool]) -> None:
    """Let the loop turn until `holds`."""
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0)


def code_of(outcome: Outcome | Accepted) -> str:
    assert isinstance(outcome, FailedRetryable | FailedUnrecoverable)
    return outcome.code


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


# --- deadlines


@in_loop
async def test_B7_a_callee_of_6_s_is_a_retryable_failure_after_the_default_5_s():
    async with Receiver() as receiver, executor() as http:
        receiver.on("/slow", Answer(delay=6))
        begun = time.monotonic()
        outcome = await http.run(call_to(receiver.url("/slow")))

    assert time.monotonic() - begun == pytest.approx(5.0, abs=0.2)
    assert isinstance(outcome, FailedRetryable)
    assert outcome.code == "TIMEOUT"
    assert outcome.message.endswith("did not answer in full within 5 s")


@in_loop
async def test_B7_a_job_may_have_a_timeout_of_its_own():
    async with Receiver() as receiver, executor() as http:
        receiver.on("/slow", Answer(delay=0.6))
        begun = time.monotonic()
        cut = await http.run(call_to(receiver.url("/slow"), timeout=SHORT))
        assert time.monotonic() - begun == pytest.approx(0.3, abs=0.2)
        done = await http.run(call_to(receiver.url("/slow"), timeout=timedelta(seconds=7)))

    assert code_of(cut) == "TIMEOUT"
    assert done == Succeeded()


@in_loop
async def test_F12a_a_body_that_drips_ends_at_the_total_deadline():
    async with Receiver() as receiver, executor() as http:
        receiver.on("/drip", DRIP)
        begun = time.monotonic()
        outcome = await http.run(call_to(receiver.url("/drip"), timeout=SHORT))

    assert time.monotonic() - begun == pytest.approx(0.3, abs=0.2)
    assert code_of(outcome) == "TIMEOUT"


def test_F12b_the_guide_says_what_the_deadline_covers():
    guide = (ROOT / "docs" / "guides" / "http-targets.md").read_text()
    covered = "name lookup, connection, request and the last byte of the answer"
    assert f"**One deadline covers the whole call**: {covered}" in guide
    assert "stricter than a read time-out" in guide


@in_loop
async def test_F12a_a_target_that_does_not_read_the_request_runs_into_the_deadline():
    async with executor() as http:
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            payload = json.dumps("x" * 8_000_000)
            begun = time.monotonic()
            outcome = await http.run(
                call_to(f"http://127.0.0.1:{listener.getsockname()[1]}/", payload=payload, timeout=SHORT)
            )

    assert time.monotonic() - begun == pytest.approx(0.3, abs=0.2)
    assert code_of(outcome) == "TIMEOUT"


@in_loop
async def test_F12a_a_host_that_takes_no_connection_runs_into_the_deadline():
    listener = socket.create_server(("127.0.0.1", 0), backlog=0)
    fillers = [socket.socket() for _ in range(4)]
    for filler in fillers:
        filler.setblocking(False)
        filler.connect_ex(listener.getsockname())
    try:
        async with executor() as http:
            outcome = await http.run(call_to(f"http://127.0.0.1:{listener.getsockname()[1]}/", timeout=SHORT))
    finally:
        for opened in (*fillers, listener):
            opened.close()

    assert code_of(outcome) == "TIMEOUT"


# --- one host's trouble stays its own


@in_loop
async def test_B8_hanging_callees_do_not_stop_other_jobs():
    async with Receiver() as hanging, Receiver() as healthy, executor(per_host=4, waiting_per_host=4) as http:
        hanging.on("/hook", HANG)
        stuck = [asyncio.create_task(http.run(call_to(hanging.url("/hook")))) for _ in range(20)]
        await hanging.wait_for(4)
        assert (http.in_flight, http.waiting) == (4, 4)

        begun = time.monotonic()
        fine: list[Outcome | Accepted] = []
        for _ in range(25):
            fine += await asyncio.gather(*(http.run(call_to(healthy.url("/hook"))) for _ in range(4)))
        assert fine == [Succeeded()] * 100
        assert time.monotonic() - begun < 4.0, "those that hang have 5 s"
        assert (http.in_flight, http.waiting) == (4, 4)

        sent_back = [task.result() for task in stuck if task.done()]
        assert len(sent_back) == 12
        assert all(isinstance(outcome, NotSent) and outcome.delay >= timedelta(seconds=1) for outcome in sent_back)
        await abandon(stuck)
        assert (http.in_flight, http.waiting) == (0, 0)


async def abandon(tasks: list["asyncio.Task[Outcome | Accepted]"]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@in_loop
async def test_B8_a_name_server_that_hangs_for_one_host_delays_no_other(monkeypatch: pytest.MonkeyPatch):
    answer_late = asyncio.Event()
    asked: list[str] = []
    loop = asyncio.get_running_loop()
    real = socket.getaddrinfo

    def slow(host: str, *args: Any, **kwargs: Any) -> Any:
        asked.append(host)
        if host.endswith(".hanging"):
            asyncio.run_coroutine_threadsafe(answer_late.wait(), loop).result()
        return real("127.0.0.1", *args, **kwargs)

    async with Receiver() as receiver, executor() as http:
        monkeypatch.setattr(socket, "getaddrinfo", slow)
        stuck = [asyncio.create_task(http.run(call_to(f"http://{n}.hanging/"))) for n in range(40)]
        await until(lambda: len(asked) == 40)
        assert await http.run(call_to(receiver.url("/hook", "healthy"), timeout=timedelta(seconds=1))) == Succeeded()
        answer_late.set()
        await abandon(stuck)


def answering(monkeypatch: pytest.MonkeyPatch, hangs: Callable[[str], bool]) -> tuple[asyncio.Event, list[str]]:
    """Every name is on this machine; lookups of those that `hangs` end when the event is set."""
    late, asked, loop, real = asyncio.Event(), list[str](), asyncio.get_running_loop(), socket.getaddrinfo

    def look_up(host: str, *args: Any, **kwargs: Any) -> Any:
        asked.append(host)
        if hangs(host):
            asyncio.run_coroutine_threadsafe(late.wait(), loop).result()
        return real("127.0.0.1", *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return late, asked


@in_loop
async def test_F12a_a_name_lookup_that_hangs_runs_into_the_deadline(monkeypatch: pytest.MonkeyPatch):
    async with executor() as http:
        late, asked = answering(monkeypatch, lambda _: True)
        begun = time.monotonic()
        outcome = await http.run(call_to("http://www.hanging.test/", timeout=SHORT))
        waited = time.monotonic() - begun
        late.set()

    assert waited == pytest.approx(0.3, abs=0.2)
    assert (code_of(outcome), asked) == ("TIMEOUT", ["www.hanging.test"])


@in_loop
async def test_B8_two_hundred_names_that_never_resolve_delay_no_healthy_host(monkeypatch: pytest.MonkeyPatch):
    async with Receiver() as receiver, executor() as http:
        late, asked = answering(monkeypatch, lambda host: ".dead-" in host)
        stuck = [asyncio.create_task(http.run(call_to(f"http://www.dead-{n}.example/"))) for n in range(200)]
        await until(lambda: len(asked) == 200)
        healthy = receiver.url("/hook", "healthy.test")
        assert await http.run(call_to(healthy, timeout=timedelta(seconds=1))) == Succeeded()
        late.set()
        await abandon(stuck)


@in_loop
async def test_B8_one_domain_that_never_resolves_holds_sixteen_lookups(monkeypatch: pytest.MonkeyPatch):
    async with Receiver() as receiver, executor() as http:
        late, asked = answering(monkeypatch, lambda host: host.endswith(".dead.test"))
        stuck = [asyncio.create_task(http.run(call_to(f"http://n{n}.dead.test/"))) for n in range(70)]
        await until(lambda: len(asked) == 16)
        assert await http.run(call_to(receiver.url("/hook", "www.healthy.test"))) == Succeeded()
        assert sum(name.endswith(".dead.test") for name in asked) == 16
        late.set()
        await abandon(stuck)


@in_loop
async def test_the_deadline_of_a_waiting_call_begins_when_it_is_made():
    async with Receiver() as receiver, executor(per_host=1) as http:
        receiver.on("/hook", Answer(delay=0.25))
        timeout = timedelta(seconds=0.45)
        outcomes = await asyncio.gather(*(http.run(call_to(receiver.url("/hook"), timeout=timeout)) for _ in range(3)))

    assert outcomes == [Succeeded()] * 3


@in_loop
async def test_a_host_that_is_ever_more_overfull_is_left_alone_ever_longer_until_it_has_room():
    bulkhead = Bulkhead(in_flight=2, waiting=0)
    assert [await bulkhead.enter("a") for _ in range(2)] == [None, None]

    delays = [await bulkhead.enter("a") for _ in range(20)]
    seconds = [delay.total_seconds() for delay in delays if delay is not None]
    assert seconds == [1, 1, 2, 2, 4, 4, 8, 8, 16, 16, 32, 32, 60, 60, 60, 60, 60, 60, 60, 60]
    assert await bulkhead.enter("b") is None

    bulkhead.leave("a")
    assert await bulkhead.enter("a") is None
    assert await bulkhead.enter("a") == timedelta(seconds=1)


@in_loop
async def test_who_finds_no_room_at_a_host_that_answers_comes_again_by_its_pace():
    bulkhead = Bulkhead(in_flight=20, waiting=0)
    assert [await bulkhead.enter("a") for _ in range(20)] == [None] * 20
    for _ in range(10):
        bulkhead.leave("a")
        assert await bulkhead.enter("a") is None

    delays = [await bulkhead.enter("a") for _ in range(5_000)]

    assert delays[0] == SHORTEST_DELAY
    assert all(earlier <= later for earlier, later in pairwise(delay for delay in delays if delay is not None))
    last = delays[-1]
    assert last is not None
    assert last < timedelta(seconds=60), "a host that ends calls without a pause is not kept waiting for a minute"


@in_loop
async def test_a_place_goes_to_the_first_in_line_even_when_others_in_line_give_up():
    bulkhead = Bulkhead(in_flight=1, waiting=3)
    await bulkhead.enter("a")
    first, second, third = (asyncio.create_task(bulkhead.enter("a")) for _ in range(3))
    await until(lambda: bulkhead.waiting == 3)

    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    bulkhead.leave("a")
    first.cancel()  # the place was just given to it: it must pass on to the third
    await asyncio.gather(first, return_exceptions=True)

    assert await third is None
    assert (bulkhead.in_flight, bulkhead.waiting) == (1, 0)
    bulkhead.leave("a")
    assert bulkhead.in_flight == 0


@in_loop
async def test_closing_sends_the_waiting_back_and_nothing_is_sent_after_it():
    async with Receiver() as receiver:
        receiver.on("/hook", HANG)
        http = HttpExecutor(LOOPBACK, per_host=1)
        assert await http.run(call_to(receiver.url("/hook"))) == NotSent()
        await http.open()
        flying, waiting = (asyncio.create_task(http.run(call_to(receiver.url("/hook")))) for _ in range(2))
        await receiver.wait_for(1)
        await http.close()

        assert await waiting == NotSent()
        assert code_of(await flying) == "CONNECTION"
        assert await http.run(call_to(receiver.url("/hook"))) == NotSent()
        assert len(receiver.hits) == 1


@in_loop
async def test_a_cancelled_call_frees_its_place():
    async with Receiver() as receiver, executor(per_host=1) as http:
        receiver.on("/hook", HANG, Answer(200))
        task = asyncio.create_task(http.run(call_to(receiver.url("/hook"))))
        await receiver.wait_for(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert await http.run(call_to(receiver.url("/hook"))) == Succeeded()


# --- which addresses are dialled


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.8.8.8",
        "localhost",
        "LOCALHOST",
        "[::ffff:127.0.0.1]",
        "[::1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "[::]",
    ],
)
@in_loop
async def test_an_address_that_is_not_public_is_refused_unless_allowed(host: str):
    async with Receiver() as receiver, executor(AddressPolicy()) as http:
        outcome = await http.run(call_to(receiver.url("/hook?token=hunter2", host)))

    assert isinstance(outcome, FailedUnrecoverable)
    assert outcome.code == "ADDRESS_REFUSED"
    assert host.lower() in outcome.message.lower()
    assert "--callback-allow" in outcome.message
    assert "hunter2" not in outcome.message
    assert receiver.hits == []


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.1."])
@in_loop
async def test_an_address_in_disguise_is_refused_whatever_is_allowed(host: str):
    async with Receiver() as receiver, executor() as http:
        outcome = await http.run(call_to(receiver.url("/hook", host)))

    assert isinstance(outcome, FailedUnrecoverable)
    assert outcome.code == "INVALID_TARGET"
    assert receiver.hits == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@in_loop
async def test_an_allowed_address_is_called(host: str):
    async with Receiver() as receiver, executor() as http:
        assert await http.run(call_to(receiver.url("/hook", host))) == Succeeded()


def answers(monkeypatch: pytest.MonkeyPatch, *lookups: list[str]) -> list[str]:
    """Make the resolver answer with `lookups` in turn; returns the names it was asked for."""
    asked: list[str] = []

    def look_up(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        asked.append(host)
        found = lookups[min(len(asked), len(lookups)) - 1]
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port)) for address in found]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return asked


@in_loop
async def test_a_name_is_resolved_once_and_what_was_checked_is_dialled(monkeypatch: pytest.MonkeyPatch):
    async with Receiver() as receiver, executor() as http:
        asked = answers(monkeypatch, ["127.0.0.1"], ["10.0.0.1"])
        outcome = await http.run(call_to(receiver.url("/hook", "rebinding.example")))

    assert outcome == Succeeded()
    assert asked == ["rebinding.example"]


@in_loop
async def test_of_several_answers_only_the_permitted_ones_are_dialled(monkeypatch: pytest.MonkeyPatch):
    async with Receiver() as receiver, executor() as http:
        answers(monkeypatch, ["10.0.0.1", "127.0.0.1", "169.254.169.254"], ["10.0.0.1", "10.0.0.2"])
        mixed = await http.run(call_to(receiver.url("/hook", "mixed.example")))
        private = await http.run(call_to(receiver.url("/hook", "private.example")))

    assert mixed == Succeeded()
    assert code_of(private) == "ADDRESS_REFUSED"


@in_loop
async def test_the_resolver_gives_out_permitted_addresses_only(monkeypatch: pytest.MonkeyPatch):
    answers(monkeypatch, ["10.0.0.1", "127.0.0.1", "169.254.169.254"])
    resolver = CheckedResolver(AddressPolicy(parse_networks(["127.0.0.0/8"])))

    assert [found["host"] for found in await resolver.resolve("mixed.example", 80)] == ["127.0.0.1"]


@in_loop
async def test_a_redirect_is_not_followed():
    async with Receiver() as receiver, executor() as http:
        receiver.on("/hook", redirect(receiver.url("/elsewhere")))
        outcome = await http.run(call_to(receiver.url("/hook")))

    assert code_of(outcome) == "HTTP_307"
    assert [hit.path for hit in receiver.hits] == ["/hook"]


@in_loop
async def test_proxy_variables_are_ignored(monkeypatch: pytest.MonkeyPatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with Receiver() as receiver, executor() as http:
        assert await http.run(call_to(receiver.url("/hook"))) == Succeeded()


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
async def test_what_nobody_expected_is_a_retryable_outcome_that_tells_no_secret():
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
