"""The hearer of what other processes have made ready."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from ears import ear
from rows import until

from faults.proxy import Proxy
from horai.core.health import EngineHealth
from horai.core.wakes import EverywhereWake, LaneWake, MoveWaitingWake, ScheduleWake, Wake, beat_text, to_text
from horai.db.clock import DatabaseClock
from horai.db.notify import notify
from horai.db.pool import Platform
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.engine import loop
from horai.engine.listener import Listener
from horai.engine.notifier import Notifier

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
PATIENCE = timedelta(seconds=8)
NODE = 42


@dataclass(slots=True)
class Process:
    """The parts of one process: a bus, a notifier, a listener, and the wakes that the bus heard."""

    wakeups: Wakeups
    notifier: Notifier
    listener: Listener
    heard: list[Wake] = field(default_factory=list[Wake])
    everything: list[None] = field(default_factory=list[None])

    def listen(self) -> None:
        self.wakeups.subscribe(LaneWake, self.heard.append)
        self.wakeups.subscribe(ScheduleWake, self.heard.append)
        self.wakeups.subscribe(EverywhereWake, lambda _: self.everything.append(None))
        self.wakeups.pass_on_to(self.notifier.tell)


@asynccontextmanager
async def process(url: str, patience: timedelta = PATIENCE, within: timedelta = SECOND) -> AsyncGenerator[Process]:
    wakeups, notifier = Wakeups(), Notifier(StageConnection(url, "horai notifier", within))
    listener = Listener(StageConnection(url, "horai listener", within), wakeups, notifier, lambda: NODE, patience)
    made = Process(wakeups, notifier, listener)
    made.listen()
    try:
        yield made
    finally:
        notifier.line.drop()
        listener.line.drop()


@asynccontextmanager
async def running(listener: Listener, connection: Platform) -> AsyncGenerator[None]:
    clock = DatabaseClock()
    await clock.ask(connection)
    task = asyncio.create_task(loop.run(listener, clock, EngineHealth()))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def said(listener: Listener, connection: Platform, *payloads: str) -> None:
    """Sends payloads, then this node's heartbeat, and returns when that has been heard: they come in order."""
    listener.signal.clear()
    for payload in payloads:
        await notify(connection, payload)
    await notify(connection, beat_text(NODE))
    async with asyncio.timeout(30):
        await listener.signal.wait()


async def test_E13_a_wake_of_one_process_is_heard_in_another(url: str, connection: Platform, runner: asyncio.Runner):
    async with process(url) as sender, process(url) as hearer:
        await hearer.listener.step(NOON)
        sender.wakeups.publish(LaneWake(3, 7, NOON))
        sender.wakeups.publish(ScheduleWake(9, NOON))
        await sender.notifier.step(NOON)
        await said(hearer.listener, connection)

        assert hearer.heard == [LaneWake(3, 7, NOON), ScheduleWake(9, NOON)]


async def test_a_process_does_not_hear_itself(url: str, connection: Platform, runner: asyncio.Runner):
    async with process(url) as alone:
        await alone.listener.step(NOON)
        alone.wakeups.publish(LaneWake(3, 7, NOON))
        await alone.notifier.step(NOON)
        await said(alone.listener, connection)

        assert alone.heard == [LaneWake(3, 7, NOON)], "told once, by itself"


async def test_the_listener_never_forwards_received_wakes(url: str, connection: Platform, runner: asyncio.Runner):
    async with process(url) as hearer, ear(url) as third:
        await hearer.listener.step(NOON)
        await said(hearer.listener, connection, to_text([LaneWake(3, 7, NOON), MoveWaitingWake(), EverywhereWake()]))
        await hearer.notifier.flush()
        await hearer.notifier.step(NOON)

        assert len(await third.heard()) == 2, "the wakes and the heartbeat"


@pytest.mark.parametrize(
    "payload",
    ["", "hello", "w:99:7:0", "r" * 7_999, "r " * 3_000, "w:1:7:" + "9" * 300, "'; drop table", "beat:x", "é☃\x01"],
)
async def test_hostile_payloads_are_passed_over(payload: str, url: str, connection: Platform, runner: asyncio.Runner):
    async with process(url) as hearer:
        await hearer.listener.step(NOON)
        await said(hearer.listener, connection, payload, to_text([LaneWake(3, 7, NOON)]))

        assert hearer.heard == [LaneWake(3, 7, NOON)]
        assert hearer.listener.ignored == (not payload.startswith("beat"))


async def test_it_listens_once_it_has_heard_its_own_heartbeat(url: str, connection: Platform, runner: asyncio.Runner):
    async with process(url) as hearer:
        listener = hearer.listener
        assert not listener.is_listening
        assert await listener.step(NOON) == NOON + PATIENCE
        assert not listener.is_listening, "LISTEN was answered, which a pooler would do as well"
        await notify(connection, beat_text(NODE + 1))
        await said(listener, connection)

        assert await listener.step(NOON + SECOND) == NOON + SECOND + PATIENCE
        assert listener.is_listening


async def test_the_heartbeat_of_another_node_does_not_prove_that_the_listener_hears(
    url: str, connection: Platform, runner: asyncio.Runner
):
    async with process(url) as hearer:
        await hearer.listener.step(NOON)
        await said(hearer.listener, connection)
        await hearer.listener.step(NOON)
        await notify(connection, beat_text(NODE + 1))
        await notify(connection, to_text([LaneWake(3, 7, NOON)]))
        await until(lambda: _true(bool(hearer.heard)))
        await hearer.listener.step(NOON + PATIENCE)

        assert not hearer.listener.is_listening


async def test_a_listener_that_misses_its_heartbeat_reconnects_and_delivers_an_everywhere_wake(
    url: str, connection: Platform, runner: asyncio.Runner
):
    async with process(url) as hearer:
        listener = hearer.listener
        await listener.step(NOON)
        await said(listener, connection)
        await listener.step(NOON)
        first = (await listener.line.get()).get_server_pid()
        assert len(hearer.everything) == 1

        again = await listener.step(NOON + PATIENCE)
        assert again == NOON + PATIENCE
        assert not listener.is_listening
        await listener.step(again)
        await said(listener, connection, to_text([LaneWake(3, 7, NOON)]))
        await listener.step(again)

        assert (await listener.line.get()).get_server_pid() != first
        assert listener.is_listening
        assert len(hearer.everything) == 2
        assert hearer.heard == [LaneWake(3, 7, NOON)]


async def test_E10_a_connection_that_breaks_is_noticed_at_once_and_comes_back(
    url: str, connection: Platform, runner: asyncio.Runner
):
    async with Proxy(url).listening() as proxy, process(proxy.url) as hearer, running(hearer.listener, connection):
        listener = hearer.listener
        await until(lambda: _beat_until(connection, listener.is_listening))
        proxy.break_all()
        await until(lambda: _true(not listener.is_listening))
        await until(lambda: _beat_until(connection, listener.is_listening))
        await notify(connection, to_text([LaneWake(3, 7, NOON)]))
        await until(lambda: _true(bool(hearer.heard)))

        assert hearer.heard == [LaneWake(3, 7, NOON)]
        assert len(hearer.everything) == 2


async def test_E10_a_connection_that_falls_silent_is_noticed_within_the_patience(
    url: str, connection: Platform, runner: asyncio.Runner
):
    patience = timedelta(milliseconds=800)
    async with (
        Proxy(url).listening() as proxy,
        process(proxy.url, patience, patience) as hearer,
        running(hearer.listener, connection),
    ):
        listener = hearer.listener
        await until(lambda: _beat_until(connection, listener.is_listening))
        proxy.set_mode("blackhole")
        await until(lambda: _beat_until(connection, not listener.is_listening))
        proxy.set_mode("pass")
        await until(lambda: _beat_until(connection, listener.is_listening))

        assert len(hearer.everything) >= 2


async def test_a_LISTEN_that_is_never_answered_is_tried_again(url: str, connection: Platform, runner: asyncio.Runner):
    async with Proxy(url).listening() as proxy, process(proxy.url, within=SECOND) as hearer:
        opened = await hearer.listener.line.get()
        proxy.set_mode("blackhole")
        async with running(hearer.listener, connection):
            await until(lambda: _true(opened.is_closed()))
            assert not hearer.listener.is_listening
            proxy.set_mode("pass")
            await until(lambda: _beat_until(connection, hearer.listener.is_listening))

        assert len(hearer.everything) == 1


async def test_E7b_while_it_listens_it_asks_nothing(url: str, connection: Platform, runner: asyncio.Runner):
    async with process(url) as hearer:
        await hearer.listener.step(NOON)
        line = await hearer.listener.line.get()
        asked = list[str]()
        line.add_query_logger(lambda query: asked.append(query.query))
        for beat in range(5):
            await said(hearer.listener, connection)
            await hearer.listener.step(NOON + beat * SECOND)

        assert asked == []


async def test_a_clock_that_was_set_back_does_not_lengthen_the_patience(
    url: str, connection: Platform, runner: asyncio.Runner
):
    async with process(url) as hearer:
        await hearer.listener.step(NOON)

        assert await hearer.listener.step(NOON - 3600 * SECOND) == NOON - 3600 * SECOND + PATIENCE


async def _beat_until(connection: Platform, holds: bool) -> bool:
    await notify(connection, beat_text(NODE))
    return holds


async def _true(holds: bool) -> bool:
    return holds
