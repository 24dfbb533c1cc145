"""The sender of wakes to other processes."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import make
from databases import Superuser
from ears import ear
from rows import until

from faults.proxy import Proxy
from horai.core.debounce import QUICK, SLOW
from horai.core.health import EngineHealth
from horai.core.wakes import ENTRIES, AuditWake, LaneWake, MoveWaitingWake, OutcomeWake
from horai.db import instances
from horai.db.clock import DatabaseClock
from horai.db.instances import InsertTarget
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.engine import loop
from horai.engine.notifier import IDLE, Notifier
from horai.operations.scope import Scope

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@asynccontextmanager
async def notifier(url: str, within: timedelta = timedelta(seconds=5)) -> AsyncGenerator[Notifier]:
    made = Notifier(StageConnection(url, "horai notifier", within))
    try:
        yield made
    finally:
        made.line.drop()


@asynccontextmanager
async def running(stage: Notifier, connection: Superuser) -> AsyncGenerator[None]:
    clock = DatabaseClock()
    await clock.ask(connection)
    task = asyncio.create_task(loop.run(stage, clock, EngineHealth()))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_E13_the_first_wake_is_sent_at_once_and_the_next_with_the_interval(url: str):
    async with ear(url) as listening, notifier(url) as sender:
        sender.tell(LaneWake(3, 7, NOON))
        assert sender.signal.is_set()
        assert await sender.step(NOON) == NOON + IDLE
        assert await listening.wakes() == [LaneWake(3, 7, NOON)]

        sender.tell(LaneWake(4, 7, NOON))
        assert await sender.step(NOON + QUICK / 2) == NOON + QUICK
        assert len(await listening.heard()) == 1

        await sender.step(NOON + QUICK)
        assert await listening.wakes() == [LaneWake(3, 7, NOON), LaneWake(4, 7, NOON)]


async def test_E4_wakes_of_one_interval_leave_together(url: str):
    async with ear(url) as listening, notifier(url) as sender:
        for second in range(20):
            sender.tell(LaneWake(3, 7, NOON + second * SECOND))
        await sender.step(NOON)

        assert await listening.wakes() == [LaneWake(3, 7, NOON)]
        assert sender.sent == 1


async def test_only_the_first_wake_of_an_interval_rouses_the_loop(url: str):
    async with notifier(url) as sender:
        sender.tell(MoveWaitingWake())
        sender.signal.clear()
        sender.tell(LaneWake(3, 7, NOON))

        assert not sender.signal.is_set()


async def test_E7b_with_nothing_to_tell_it_does_not_even_connect(url: str):
    async with notifier(url) as sender:
        assert await sender.step(NOON) == NOON + IDLE
        assert sender.backend_pid is None


async def test_its_notifications_come_from_the_backend_it_names(url: str):
    async with ear(url) as listening, notifier(url) as sender:
        sender.tell(MoveWaitingWake())
        await sender.step(NOON)
        await listening.heard()

        assert listening.pids == [sender.backend_pid]


async def test_outcomes_that_do_not_fit_are_sent_with_the_next_interval(url: str):
    outcomes = [OutcomeWake(number, 1) for number in range(1, ENTRIES + 6)]
    async with ear(url) as listening, notifier(url) as sender:
        for outcome in outcomes:
            sender.tell(outcome)
        again = await sender.step(NOON)
        assert NOON < again <= NOON + SLOW
        await sender.step(again)

        assert await listening.wakes() == outcomes


async def test_a_process_that_ends_tells_what_it_leaves_behind(url: str):
    async with ear(url) as listening, notifier(url) as sender:
        sender.tell(MoveWaitingWake())
        await sender.step(NOON)
        sender.tell(LaneWake(3, 7, NOON))
        await sender.flush()

        assert await listening.wakes() == [MoveWaitingWake(), LaneWake(3, 7, NOON)]


async def test_E10_a_wake_whose_connection_is_cut_during_the_send_is_sent_over_the_next_connection(
    url: str, connection: Superuser, runner: asyncio.Runner
):
    async with Proxy(url).listening() as proxy, notifier(proxy.url) as sender, running(sender, connection):
        sender.tell(MoveWaitingWake())
        await until(lambda: _true(sender.sent == 1))
        async with ear(url) as listening:
            proxy.cut_after("notify")
            sender.tell(LaneWake(3, 7, NOON))
            await until(lambda: _true(sender.sent == 2))

            assert set(await listening.wakes()) == {LaneWake(3, 7, NOON)}


async def test_E10_publishers_do_not_wait_for_an_absent_database_and_all_wakes_are_sent_when_it_is_back(
    url: str, connection: Superuser, runner: asyncio.Runner
):
    async with Proxy(url).listening() as proxy, notifier(proxy.url) as sender, running(sender, connection):
        wakeups = Wakeups()
        wakeups.pass_on_to(sender.tell)
        proxy.set_mode("reset")
        for number in range(3):
            wakeups.publish(LaneWake(number, 7, NOON))

        async with ear(url) as listening:
            proxy.set_mode("pass")
            await until(lambda: _true(sender.sent == 1))
            assert await listening.wakes() == [LaneWake(number, 7, NOON) for number in range(3)]


async def test_a_database_that_does_not_answer_is_given_up(url: str, connection: Superuser, runner: asyncio.Runner):
    async with Proxy(url).listening() as proxy, notifier(proxy.url, SECOND) as sender, running(sender, connection):
        await until(lambda: _told_until(sender, sender.sent > 0))
        first = sender.backend_pid
        proxy.set_mode("blackhole")
        sender.tell(MoveWaitingWake())
        await until(lambda: _true(sender.line._connection is None))

        proxy.set_mode("pass")
        await until(lambda: _true(sender._bundle.is_empty and sender.backend_pid != first))


async def test_the_final_flush_drops_its_wakes_if_the_database_is_unreachable(url: str):
    async with Proxy(url).listening() as proxy, notifier(proxy.url) as sender:
        proxy.set_mode("reset")
        sender.tell(MoveWaitingWake())
        await sender.flush()

        assert sender.sent == 0


async def test_E13_ten_thousand_inserts_are_few_notifications_and_each_is_covered(
    url: str, connection: Superuser, runner: asyncio.Runner
):
    async with make.scope(url) as scope, ear(url) as listening, notifier(url) as sender, running(sender, connection):
        scope.wakeups.pass_on_to(sender.tell)
        place = await lane_of_a_job(scope)
        clock = asyncio.get_running_loop().time
        began = clock()
        for _ in range(100):
            for row in await instances.insert_many(connection, place, [(None, None)] * 100):
                scope.wakeups.announce([row])  # as if each had been a request of its own
        await until(lambda: _true(sender._bundle.is_empty))
        elapsed = clock() - began

        heard = await listening.wakes()
        assert len(listening.payloads) <= 5 + elapsed / SLOW.total_seconds(), f"in {elapsed:.2f} s"
        assert {wake.lane for wake in heard if isinstance(wake, LaneWake)} == {place.lane}
        assert not [wake for wake in heard if not isinstance(wake, LaneWake | AuditWake)], "the job is audited"


async def lane_of_a_job(scope: Scope) -> InsertTarget:
    job = await make.job(scope)
    return InsertTarget(job.id, job.tenant_id, job.lane_now, None)


async def _told_until(sender: Notifier, holds: bool) -> bool:
    sender.tell(MoveWaitingWake())
    return holds


async def _true(holds: bool) -> bool:
    return holds
