"""Deadlines of calls over HTTP, and hosts whose trouble stays their own."""

import asyncio
import json
import socket
import time
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from http_calls import LOOPBACK, call_to, code_of, executor, in_loop
from receiver import DRIP, HANG, Answer, Receiver

from horai.core.outcome import Accepted, FailedRetryable, NotSent, Outcome, Succeeded
from horai.engine.executors.bulkhead import SHORTEST_DELAY, Bulkhead, BusyTime
from horai.engine.executors.http import HttpExecutor

SHORT = timedelta(seconds=0.3)
ROOT = Path(__file__).resolve().parents[3]


async def until(holds: Callable[[], bool]) -> None:
    """Let the loop turn until `holds`."""
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0)


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
        receiver.on("/slower", Answer(delay=4))
        begun = time.monotonic()
        cut = await http.run(call_to(receiver.url("/slower"), timeout=SHORT))
        assert 0.3 <= time.monotonic() - begun < 2.0, "neither the default of 5 s nor the answer was waited for"
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
async def test_a_call_that_a_busy_host_has_no_room_for_is_delayed_by_the_pace_of_the_host():
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


@in_loop
async def test_C60_a_host_without_room_says_how_long_its_line_keeps_it_busy():
    bulkhead = Bulkhead(in_flight=1, waiting=4)
    assert await bulkhead.enter("host") is None
    line = [asyncio.ensure_future(bulkhead.enter("host")) for _ in range(2)]
    await asyncio.sleep(0)
    assert bulkhead.busy("host") == BusyTime(0.0, is_silent=False), "half of the line is free"

    line += [asyncio.ensure_future(bulkhead.enter("host")) for _ in range(2)]
    await asyncio.sleep(0)
    assert bulkhead.busy("host") == BusyTime(1.0, is_silent=True)
    for _ in range(11):
        assert await bulkhead.enter("host") is not None
    assert bulkhead.busy("host") == BusyTime(4.0, is_silent=True), "no call ends: it is left alone for longer"
    assert bulkhead.busy("other") == BusyTime(0.0, is_silent=False)

    for _ in range(2):  # two ends make a pace
        bulkhead.leave("host")
        line.append(asyncio.ensure_future(bulkhead.enter("host")))
        await asyncio.sleep(0)
    busy = bulkhead.busy("host")
    assert not busy.is_silent
    assert busy.seconds < 1.0
    bulkhead.close()
    await asyncio.gather(*line)


@in_loop
async def test_C60_a_call_that_is_turned_away_reports_how_long_its_host_is_busy():
    told: list[BusyTime] = []
    async with Receiver() as receiver, executor(per_host=1, waiting_per_host=1) as http:
        http.on_full = lambda _, busy: told.append(busy)
        receiver.on("/hang", HANG)
        calls = [asyncio.ensure_future(http.run(call_to(receiver.url("/hang"), timeout=SHORT))) for _ in range(3)]
        outcomes = await asyncio.gather(*calls)

    assert [isinstance(outcome, NotSent) for outcome in outcomes] == [False, False, True]
    assert told == [BusyTime(1.0, is_silent=True)]
