"""Dispatch under the controls of the governor: held lanes, halved low priority, limited retries, and thinned schedules."""

import json
from datetime import UTC, datetime, timedelta

import make
import pytest
from stages import Workbench, workbench

from horai.core.calls import WorkerTarget
from horai.core.controls import LONG_DEFERRAL, ControlBoard, Controls, LowPriority, controls_from, is_left_out
from horai.core.health import EngineHealth
from horai.core.job import Priority, Recipe
from horai.core.outcome import FailedRetryable
from horai.core.retry import RetryPolicy
from horai.db import controls
from horai.db.claims import Claim, ClaimedRow
from horai.db.controls import GovernedRate
from horai.db.jobs import Runnable
from horai.engine.dispatch.dispatcher import Dispatcher
from horai.engine.dispatch.host_gates import HostGates
from horai.engine.dispatch.retry_limiter import LATEST, SOONEST, RetryLimiter
from horai.engine.dispatch.start_delays import StartLimits, observe_starts

MINUTE = timedelta(minutes=1)


async def limit(bench: Workbench, rate: GovernedRate, per_second: float) -> None:
    await bench.connection.execute(
        "insert into horai.governed_rate (name, per_second) values ($1, $2)", rate.value, per_second
    )


async def run(bench: Workbench, dispatcher: Dispatcher, steps: int = 3) -> list[str]:
    """Let the dispatcher work; return the jobs that were called, in order."""
    bench.executor.gate.set()
    for _ in range(steps):
        await bench.until_idle(dispatcher)
        await bench.settle()
    return [call.job for call in bench.executor.calls]


def apply(dispatcher: Dispatcher, new: Controls) -> None:
    dispatcher.parts.scans.controls.apply(new)


async def with_priorities(bench: Workbench, rows: int = 1) -> Dispatcher:
    """A dispatcher, and jobs `core`, `normal` and `low` with due instances."""
    dispatcher = bench.dispatcher()
    for priority in ("core", "normal", "low"):
        await make.job(bench.scope, priority, priority=priority)
        await make.many(bench.scope, rows, job=priority)
    return dispatcher


@pytest.mark.parametrize(
    ("new", "started"),
    [
        (Controls(), ["core", "low", "normal"]),
        (Controls(low=LowPriority.PAUSED), ["core", "normal"]),
        (Controls(frozen_tenants=frozenset({1})), ["core", "normal"]),
        (Controls(frozen_tenants=frozenset({2})), ["core", "low", "normal"]),
        (Controls(is_core_only=True), ["core"]),
    ],
)
async def test_held_priorities_are_not_claimed_and_run_as_soon_as_they_are_released(
    url: str, new: Controls, started: list[str]
) -> None:
    async with workbench(url) as bench:
        dispatcher = await with_priorities(bench)
        apply(dispatcher, new)
        assert sorted(await run(bench, dispatcher)) == started
        waiting = await bench.connection.fetch("select state, attempt, fence from horai.instance_live")
        assert {tuple(row) for row in waiting} <= {(0, 0, 0)}
        apply(dispatcher, Controls())
        assert sorted(await run(bench, dispatcher)) == ["core", "low", "normal"]


async def test_a_scan_that_is_in_line_when_its_priority_is_held_is_not_claimed_from(url: str) -> None:
    async with workbench(url) as bench:
        dispatcher = await with_priorities(bench)
        await dispatcher._refresh(await dispatcher.line.get(), bench.clock.now())
        dispatcher.rescan_all()
        await dispatcher._set_timers(await dispatcher.line.get())
        dispatcher._queue_due_scans()
        apply(dispatcher, Controls(is_core_only=True))
        assert await run(bench, dispatcher) == ["core"]


async def test_C29_halved_low_priority_starts_at_its_rate_beside_others(url: str) -> None:
    async with workbench(url) as bench:
        await limit(bench, GovernedRate.LOW, 0.5)
        dispatcher = await with_priorities(bench, 20)
        apply(dispatcher, Controls(low=LowPriority.HALVED, low_rate=0.5))
        called = await run(bench, dispatcher)
        assert called.count("normal") == called.count("core") == 20
        assert called.count("low") <= 1


async def test_tokens_that_no_row_used_are_returned(url: str) -> None:
    async with workbench(url) as bench:
        await limit(bench, GovernedRate.LOW, 5.0)
        await bench.connection.execute("update horai.governed_rate set tokens = 5")
        dispatcher = bench.dispatcher()
        await make.job(bench.scope, "low", priority="low")
        await make.many(bench.scope, 1, job="low")
        apply(dispatcher, Controls(low=LowPriority.HALVED, low_rate=5.0))
        assert await run(bench, dispatcher, 1) == ["low"]
        assert await bench.connection.fetchval("select tokens from horai.governed_rate") >= 4


async def test_a_rate_that_is_not_limited_any_more_grants_everything(url: str) -> None:
    async with workbench(url) as bench:
        dispatcher = await with_priorities(bench, 5)
        apply(dispatcher, Controls(low=LowPriority.HALVED, low_rate=0.5))  # its row is gone: the mode has ended
        assert (await run(bench, dispatcher)).count("low") == 5


async def test_the_bucket_of_a_rate_is_shared_and_never_holds_more_than_a_second(url: str) -> None:
    async with workbench(url) as bench:
        await limit(bench, GovernedRate.RETRIES, 4.0)
        await bench.connection.execute("update horai.governed_rate set refilled_at = refilled_at - interval '1 hour'")
        lines = [await bench.line("one").get(), await bench.line("other").get(), await bench.line("third").get()]
        grants = [await controls.grant_governed(line, GovernedRate.RETRIES, 3) for line in lines]
        assert [grant and grant.granted for grant in grants] == [3, 1, 0]
        assert grants[-1] is not None
        assert timedelta(0) < grants[-1].wait < timedelta(milliseconds=260)
        assert await controls.grant_governed(lines[0], GovernedRate.LOW, 3) is None


def row(number: int, *, retries: int = 1, job: int = 1, waited: timedelta = timedelta(0)) -> ClaimedRow:
    now = datetime.now(UTC)
    held = Claim(number, job, retries + 1, retries + 1, 1, retries, now)
    return ClaimedRow(held, 1, now + waited, 0, None, now, now, now, None, False)


def limiter(bench: Workbench, new: Controls) -> RetryLimiter:
    board = ControlBoard()
    board.apply(new)
    return RetryLimiter(board, bench.health, bench.clock)


async def test_C30_retries_beyond_the_rate_get_later_turns_and_first_tries_pass(url: str) -> None:
    async with workbench(url) as bench:
        await limit(bench, GovernedRate.RETRIES, 2.0)
        await bench.connection.execute("update horai.governed_rate set tokens = 1, refilled_at = clock_timestamp()")
        some = [row(1), row(2), row(3), row(4, retries=0)]
        line = bench.line("retries")
        waits = await limiter(bench, Controls(retry_rate=2.0)).admit(await line.get(), some, {})
        assert sorted(waits) == [2, 3]
        assert SOONEST <= waits[2] < waits[3] <= LATEST
        assert waits[3] - waits[2] == timedelta(seconds=0.5)


async def test_held_retries_are_given_back_with_their_counts_and_without_an_event(url: str) -> None:
    async with workbench(url) as bench:
        bench.executor.answer = lambda _: FailedRetryable("HTTP_503", "no")
        await make.job(bench.scope, "flaky", retry={"maxRetry": 9, "base": "1ms", "cap": "1ms", "jitter": "none"})
        await make.many(bench.scope, 3, job="flaky")
        dispatcher = bench.dispatcher()
        await run(bench, dispatcher, 1)
        await limit(bench, GovernedRate.RETRIES, 0.1)
        apply(dispatcher, Controls(retry_rate=0.1))
        before = len(bench.executor.calls)
        await bench.connection.execute("update horai.instance_live set due = clock_timestamp()")
        dispatcher.rescan_all()
        await run(bench, dispatcher)
        assert len(bench.executor.calls) - before <= 1
        held = await bench.connection.fetch(
            "select state, retry_count, due > clock_timestamp() as is_later from horai.instance_live"
        )
        assert [tuple(each) for each in held if each["state"] == 0] == [(0, 1, True)] * (
            3 - (len(bench.executor.calls) - before)
        )
        released = await bench.connection.fetchval("select count(*) from horai.event where kind = 'INSTANCE_RELEASED'")
        assert released == 0


async def test_C31_the_retry_of_a_long_run_is_deferred_once_and_short_ones_run(url: str) -> None:
    async with workbench(url) as bench:
        now = bench.clock.now()
        bench.health.totals.observe_durations(now, [1], [now - timedelta(seconds=30)])
        bench.health.totals.observe_durations(now, [2], [now - timedelta(seconds=1)])
        known = {number: unseen(number) for number in (1, 2, 3)}
        known[4] = declaring(4, timedelta(minutes=1))
        known[5] = declaring(5, timedelta(seconds=5))
        checked = limiter(bench, Controls(is_short_first=True))
        some = [row(1, job=1), row(2, job=2), row(3, job=3), row(4, job=1, waited=LONG_DEFERRAL)]
        some += [row(5, job=4), row(6, job=5)]
        line = bench.line("retries")
        assert await checked.admit(await line.get(), some, known) == {1: LONG_DEFERRAL, 5: LONG_DEFERRAL}


def unseen(number: int) -> Runnable:
    """A job that declares no timeout."""
    return Runnable(number, 1, "job", "default", is_paused=False, is_deleted=False, recipe=None)


def declaring(number: int, timeout: timedelta) -> Runnable:
    """A job of which no run was observed, with a timeout."""
    recipe = Recipe(WorkerTarget("long"), RetryPolicy(), timeout, "long")
    return Runnable(number, 1, "job", "default", is_paused=False, is_deleted=False, recipe=recipe)


async def test_F8_a_frequent_low_priority_schedule_leaves_out_every_second_slot_and_records_it(url: str) -> None:
    async with workbench(url) as bench:
        low = await make.job(bench.scope, "low", every="1m", priority="low")
        usual = await make.job(bench.scope, "usual", every="1m")
        await bench.connection.execute("update horai.job set active_from = '2020-01-01'")
        trigger = bench.trigger()
        trigger._controls.apply(Controls(low=LowPriority.HALVED, low_rate=1.0, thins_low=True))
        minute = bench.clock.now().replace(second=0, microsecond=0)
        for back in (0, 1):
            slot = minute - back * MINUTE
            await bench.connection.execute("update horai.schedule set fire_time = $1, last_job = 0", slot)
            trigger.reload()
            await trigger.step(bench.clock.now())
        made = await bench.connection.fetch("select job_id, fire_time from horai.instance_live")
        skipped = await bench.connection.fetch("select job_id, from_time, slots, reason, tenant_id from horai.skip")
        assert {each["fire_time"] for each in made if each["job_id"] == usual.id} == {minute, minute - MINUTE}
        assert len([each for each in made if each["job_id"] == low.id]) == 1
        assert [(each["job_id"], each["slots"], each["reason"], each["tenant_id"]) for each in skipped] == [
            (low.id, 1, "THINNED", 1)
        ]


def test_F8_slots_are_left_out_in_turns_and_only_of_schedules_that_fire_often() -> None:
    first = datetime(2026, 11, 17, 9, tzinfo=UTC)
    every = timedelta(minutes=5)
    turns = [is_left_out(first + every * n, first + every * (n + 1)) for n in range(6)]
    assert turns in ([True, False] * 3, [False, True] * 3)
    hourly = [is_left_out(first + timedelta(hours=n), first + timedelta(hours=n + 1)) for n in range(6)]
    assert hourly == [False] * 6
    assert not is_left_out(first, None)


def test_controls_survive_their_document_and_unknown_fields() -> None:
    known = Controls(LowPriority.HALVED, 2.5, True, True, 0.5, True, True, frozenset({3}), True, True)
    text = json.dumps({**known.document(), "frozenTenants": [3], "newer": 1})
    assert controls_from(text) == known
    assert controls_from(None) == controls_from("{}") == Controls()
    assert controls_from('{"low": "QUARTERED"}').low is LowPriority.PAUSED


def test_no_control_but_a_pause_holds_core_jobs() -> None:
    strict = Controls(LowPriority.PAUSED, 0.1, is_core_only=True, frozen_tenants=frozenset({1}))
    assert [priority.name for priority in Priority if not strict.holds(priority, 1)] == ["core"]
    assert EngineHealth().totals.usual_seconds(1) is None


async def test_the_oldest_wait_counts_rows_that_nothing_holds(url: str) -> None:
    async with workbench(url) as bench:
        dispatcher = bench.dispatcher()
        for name, queue in (("free", "open"), ("held", "shut")):
            await make.job(bench.scope, name, queue=queue, priority="low" if name == "held" else "normal")
            await make.many(bench.scope, 1, job=name)
        long_ago = "update horai.instance_live set due = clock_timestamp() - $2::interval where job_id = (select id from horai.job where name = $1)"
        await bench.connection.execute(long_ago, "held", timedelta(hours=1))
        await bench.connection.execute(long_ago, "free", timedelta(minutes=1))
        await dispatcher._refresh(await dispatcher.line.get(), bench.clock.now())
        sweeper = bench.sweeper(dispatcher)
        await sweeper._sweep(await sweeper.line.get())
        assert 3599 < bench.health.oldest_wait < 3700
        apply(dispatcher, Controls(low=LowPriority.PAUSED))
        await sweeper._sweep(await sweeper.line.get())
        assert 59 < bench.health.oldest_wait < 120
        await bench.set_queue("open", paused=True)
        await sweeper._sweep(await sweeper.line.get())
        assert bench.health.oldest_wait == 0


async def test_the_wait_for_a_host_that_is_down_is_no_trigger_delay(url: str) -> None:
    async with workbench(url) as bench:
        now = bench.clock.now()
        waited = [row(1, retries=0, job=1), row(2, retries=0, job=2)]
        late = [
            each._replace(execute_time=now - timedelta(minutes=5), due=now - timedelta(minutes=5)) for each in waited
        ]
        gates = HostGates(bench.settings, bench.health, bench.clock)
        gates.note_limited((1,))
        limits = StartLimits({}, gates.limited_at)
        observe_starts(bench.health, late, limits, now)
        assert sum(bench.health.totals.limit_waits.counts) == 1
        assert 299 < bench.health.totals.limit_waits.total < 301
        assert 299 < bench.health.totals.delays.total < 301, "the other job has no held host"


def test_a_row_that_a_host_gave_back_counts_from_its_later_due_time() -> None:
    now = datetime.now(UTC)
    given_back = row(1, job=1)._replace(execute_time=now - MINUTE, due=now - timedelta(seconds=3))
    fresh = row(2, job=1)._replace(execute_time=now + MINUTE, due=now + MINUTE)
    limits = StartLimits({}, {1: now - timedelta(seconds=30)})
    assert limits.begin_of(given_back, now) == now - timedelta(seconds=3)
    assert limits.begin_of(fresh, now) == fresh.execute_time, "a start before its time is no wait"
    still = StartLimits({}, {1: now + MINUTE})
    assert still.begin_of(given_back, now) == now
