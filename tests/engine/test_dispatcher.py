"""The dispatcher, step by step on a real database."""

import asyncio
import time
from datetime import UTC, datetime, timedelta

import pytest

import make
import rows
from horai.accept import jobs as accepted
from horai.accept.jobs import Change
from horai.core.settlement import Accepted, FailedRetryable, FailedUnrecoverable, NotSent, Outcome, Postponed, Succeeded
from horai.core.states import State
from horai.db import claims
from horai.db.claims import Claimed
from horai.engine import loop
from horai.engine.janitor import Janitor
from stages import workbench


async def test_B6_a_claim_takes_no_more_than_there_is_room_for(url: str):
    async with workbench(url, in_flight=7, claim_batch=5, straggler=timedelta(seconds=20)) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 30)
        dispatcher = bench.dispatcher()

        await dispatcher.step(bench.clock.now())

        assert len(await bench.called(7)) == len(bench.holdings) == bench.vitals.in_flight == 7
        assert await bench.states() == {"RUNNING": 7, "INIT": 23}
        later = await dispatcher.step(bench.clock.now())
        assert await bench.states() == {"RUNNING": 7, "INIT": 23}
        assert later > bench.clock.now() + timedelta(milliseconds=500), "with no room it waits for the signal"


async def test_B6_room_that_is_freed_wakes_the_dispatcher(url: str):
    async with workbench(url, in_flight=3) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 9)
        dispatcher = bench.dispatcher()
        bench.executor.gate.set()
        for _ in range(3):
            dispatcher.signal.clear()
            await dispatcher.step(bench.clock.now())
            await bench.settle()
            assert dispatcher.signal.is_set()

        assert await bench.states() == {"SUCCESS": 9}
        assert len({call.idempotency_key for call in bench.executor.calls}) == 9


async def test_a_dispatcher_that_may_not_trust_its_lease_claims_nothing(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 1)
        dispatcher = bench.dispatcher()
        bench.keeper.trusted = False

        again = await dispatcher.step(bench.clock.now())

        assert await bench.states() == {"INIT": 1}
        assert again - bench.clock.now() < timedelta(seconds=1)


async def test_the_most_urgent_priority_is_claimed_first(url: str):
    async with workbench(url, in_flight=4) as bench:
        for priority in ("low", "normal", "core", "high"):
            await make.job(bench.scope, priority, priority=priority)
            await make.many(bench.scope, 4, job=priority)
        dispatcher = bench.dispatcher()
        bench.executor.gate.set()
        for _ in range(4):
            await dispatcher.step(bench.clock.now())
            await bench.settle()

        order = [call.job for call in bench.executor.calls]
        assert order == ["core"] * 4 + ["high"] * 4 + ["normal"] * 4 + ["low"] * 4


async def test_what_becomes_urgent_during_a_long_step_does_not_wait_for_its_end(url: str):
    """A backlog of low priority that settles as fast as it is claimed would otherwise be drained first."""
    async with workbench(url, in_flight=10_000, claim_batch=50) as bench:
        await make.job(bench.scope, "low", priority="low")
        await make.job(bench.scope, "core", priority="core")
        await make.many(bench.scope, 3000, job="low")
        dispatcher = bench.dispatcher()
        bench.executor.gate.set()
        running = [asyncio.create_task(loop.run(s, bench.clock, bench.vitals)) for s in (bench.settler, dispatcher)]
        await bench.called(100)

        await make.many(bench.scope, 1, job="core")
        await bench.called(3001)

        place = [call.job for call in bench.executor.calls].index("core")
        assert place < 2000, f"the urgent one was call number {place}"
        await rows.until(lambda: bench.connection.fetchval("select count(*) = 0 from horai.instance_live"))
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def test_the_rows_of_a_paused_job_are_parked_and_come_back(url: str):
    async with workbench(url) as bench:
        job = await make.job(bench.scope)
        await make.many(bench.scope, 3)
        await bench.connection.execute("update horai.job set status = 1")
        dispatcher = bench.dispatcher()

        await dispatcher.step(bench.clock.now())

        assert bench.executor.calls == []
        assert len(bench.holdings) == 0
        parked = await bench.connection.fetch("select lane, state, retry_count from horai.instance_live")
        assert [tuple(row) for row in parked] == [(0, State.INIT, 0)] * 3
        await accepted.resume_job(bench.scope, "publish", None)
        dispatcher._jobs._known.clear()
        await dispatcher.step(bench.clock.now())
        assert len(await bench.called(3)) == 3
        assert job.lane_id == await bench.connection.fetchval("select min(lane) from horai.instance_live")
        bench.executor.gate.set()
        await bench.settle()


async def test_the_rows_of_a_deleted_job_are_cancelled(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 2)
        await bench.connection.execute("update horai.job set deleted_at = now()")

        await bench.dispatcher().step(bench.clock.now())

        assert bench.executor.calls == []
        assert await bench.states() == {"CANCELLED": 2}
        assert await bench.connection.fetchval("select min(reason) from horai.instance_history") == 5


async def test_a_definition_that_cannot_be_read_holds_nobody_else_up(url: str):
    async with workbench(url) as bench:
        broken = await make.job(bench.scope, "broken")
        await make.job(bench.scope)
        await make.many(bench.scope, 2, job="broken")
        await make.many(bench.scope, 2)
        await bench.connection.execute("update horai.job set definition = '{}' where id = $1", broken.id)
        bench.executor.gate.set()

        await bench.dispatcher().step(bench.clock.now())
        await bench.settle()

        assert await bench.states() == {"SUCCESS": 2, "INIT": 2}
        due = await bench.connection.fetchval("select min(due) from horai.instance_live")
        assert due > bench.clock.now() + timedelta(seconds=1), "and it is not claimed again at once"


async def test_a_row_whose_job_is_now_run_by_somebody_else_is_given_back_and_moved(url: str):
    """It ran over HTTP when its job was changed to a worker's; its retry came back into the old lane."""
    async with workbench(url) as bench:
        await make.job(bench.scope)
        (instance,) = await make.many(bench.scope, 1)
        dispatcher = bench.dispatcher()
        bench.executor.answer = lambda _: FailedRetryable("X", "x")
        await dispatcher.step(bench.clock.now())
        await bench.called(1)
        change = Change({"target": {"type": "worker", "handler": "elsewhere"}, "timeout": None})
        changed = await accepted.change_job(bench.scope, "publish", change)
        bench.executor.gate.set()
        await bench.settle()
        await bench.connection.execute("update horai.instance_live set due = clock_timestamp()")
        dispatcher._jobs._known.clear()
        dispatcher._sweep_at = bench.clock.now()

        await dispatcher.step(bench.clock.now())
        await bench.settle()

        assert len(bench.executor.calls) == 1
        assert await make.state(bench.connection, instance) == "INIT"
        janitor = Janitor(bench.line("janitor"), bench.scope.wakeups, bench.vitals, bench.settings, bench.clock.now())
        await janitor.step(bench.clock.now())
        assert await bench.connection.fetchval("select lane from horai.instance_live") == changed.lane_id


async def test_a_claim_whose_answer_was_lost_is_given_back(url: str, monkeypatch: pytest.MonkeyPatch):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 3)
        dispatcher = bench.dispatcher()
        real = claims.claim_due

        async def loses_the_answer(*arguments: object) -> list[Claimed]:
            await real(*arguments)  # pyright: ignore[reportArgumentType]
            raise ConnectionResetError("after the commit")

        monkeypatch.setattr(claims, "claim_due", loses_the_answer)
        with pytest.raises(ConnectionResetError):
            await dispatcher.step(bench.clock.now())
        assert await bench.states() == {"RUNNING": 3}
        monkeypatch.undo()

        await dispatcher.step(bench.clock.now())
        await bench.settler.step(bench.clock.now())

        assert bench.vitals.released_claims == 3
        assert await bench.states() == {"INIT": 3}
        bench.executor.gate.set()
        await dispatcher.step(bench.clock.now())
        await bench.settle()
        assert await bench.states() == {"SUCCESS": 3}
        assert {call.attempt for call in bench.executor.calls} == {2}
        assert await bench.connection.fetchval("select max(retry_count) from horai.instance_history") == 0


async def test_a_row_that_was_locked_when_the_claim_passed_is_found_after_its_put_is_ignored(url: str):
    async with workbench(url) as bench, rows.connections(url, 1) as (holder,):
        await make.job(bench.scope)
        await make.put(bench.scope, "k", version=5)
        await make.many(bench.scope, 200)
        dispatcher = bench.dispatcher()
        async with holder.transaction():
            await holder.execute("select from horai.instance_live where key = 'k' for update")
            await dispatcher.step(bench.clock.now())
            assert await bench.states() == {"RUNNING": 200, "INIT": 1}

        await make.put(bench.scope, "k", version=4)
        assert dispatcher.signal.is_set()
        await dispatcher.step(bench.clock.now() + timedelta(milliseconds=30))

        assert await bench.states() == {"RUNNING": 201}
        bench.executor.gate.set()
        await bench.settle()


async def test_a_row_that_committed_behind_the_cursor_is_found_by_the_straggler_pass(url: str):
    async with workbench(url) as bench, rows.connections(url, 1) as (late,):
        job = await make.job(bench.scope)
        dispatcher = bench.dispatcher()
        bench.executor.gate.set()
        async with late.transaction():
            await late.execute(
                "insert into horai.instance_live (id, job_id, due, fire_time, execute_time, born_for, slot, tenant_id, lane, shard)"
                " select n, $1, now(), now(), now(), now(), -n, 1, $2, n % 32 from generate_series(900000, 900031) n",
                job.id,
                job.lane_id,
            )
            await make.many(bench.scope, 200)
            await dispatcher.step(bench.clock.now())
            await bench.settle()
            assert await bench.states() == {"SUCCESS": 200}

        await dispatcher.step(bench.clock.now() + timedelta(seconds=1))
        await bench.settle()

        assert await bench.states() == {"SUCCESS": 232}


async def test_a_lane_that_committed_after_a_younger_one_is_served(url: str):
    """Ids are given before they commit: the lower one may become visible later."""
    async with workbench(url) as bench, rows.connections(url, 1) as (slow,):
        dispatcher = bench.dispatcher()
        transaction = slow.transaction()
        await transaction.start()
        older = await slow.fetchval(
            "insert into horai.lane (tenant_id, queue, priority, handler) values (1, 'older', 2, '') returning id"
        )
        await make.job(bench.scope, "younger", queue="younger")
        await make.many(bench.scope, 1, job="younger")
        await dispatcher.step(bench.clock.now())
        await transaction.commit()

        job = await make.job(bench.scope, "older", queue="older")
        assert job.lane_id == older
        dispatcher.signal.clear()
        await make.many(bench.scope, 1, job="older")
        assert dispatcher.signal.is_set()
        await dispatcher.step(bench.clock.now())

        assert [call.job for call in await bench.called(2)] == ["younger", "older"]
        bench.executor.gate.set()
        await bench.settle()


async def test_a_row_of_the_future_costs_no_claim_before_its_time(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        dispatcher = bench.dispatcher()
        await dispatcher.step(bench.clock.now())
        at = datetime.now(UTC) + timedelta(seconds=20)

        await make.many(bench.scope, 20, at=at)
        again = await dispatcher.step(bench.clock.now())

        assert abs((again - at).total_seconds()) < 0.1
        dispatcher.signal.clear()
        await make.many(bench.scope, 20, at=at + timedelta(seconds=1))
        assert not dispatcher.signal.is_set(), "a wake later than the timer costs nothing"


async def test_a_wake_for_a_lane_that_nobody_here_can_run_wakes_nobody(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope, "workers", target={"type": "worker", "handler": "h"})
        dispatcher = bench.dispatcher()
        await dispatcher.step(bench.clock.now())
        dispatcher.signal.clear()

        await make.many(bench.scope, 5, job="workers")

        assert not dispatcher.signal.is_set()
        await dispatcher.step(bench.clock.now())
        assert await bench.states() == {"INIT": 5}, "an unknown handler waits, it is not discarded"


OUTCOMES: dict[str, tuple[Outcome, str]] = {
    "success": (Succeeded('{"n": 1}'), "SUCCESS"),
    "retryable": (FailedRetryable("X", "x"), "FAIL"),
    "unrecoverable": (FailedUnrecoverable("X", "x"), "DEAD"),
    "not sent": (NotSent(timedelta(hours=1)), "INIT"),
    "postponed": (Postponed(timedelta(hours=1)), "INIT"),
}


@pytest.mark.parametrize(("outcome", "state"), OUTCOMES.values(), ids=OUTCOMES.keys())
async def test_B9_an_outcome_becomes_the_state_it_means(url: str, outcome: Outcome, state: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.put(bench.scope, "k", payload={"a": 1})
        bench.executor.answer = lambda _: outcome
        bench.executor.gate.set()

        await bench.dispatcher().step(bench.clock.now())
        await bench.settle()

        assert await bench.states() == {state: 1}
        (call,) = bench.executor.calls
        assert (call.key, call.payload, call.unit, call.attempt) == ("k", '{"a": 1}', "default:publish:k", 1)
        assert len(call.secrets) == 1


async def test_an_accepted_call_that_is_never_reported_times_out(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 1)
        bench.executor.answer = lambda _: Accepted(timedelta(milliseconds=20))
        bench.executor.gate.set()

        await bench.dispatcher().step(bench.clock.now())
        await bench.settle()

        assert await bench.states() == {"FAIL": 1}
        assert await bench.connection.fetchval("select error_code from horai.instance_live") == "TIMEOUT"


async def test_stopping_waits_for_calls_and_fails_those_that_do_not_end_in_time(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 2)
        dispatcher = bench.dispatcher()
        await dispatcher.step(bench.clock.now())
        await bench.called(2)

        await dispatcher.stop(timedelta(milliseconds=50))
        await bench.settle()

        assert await bench.states() == {"FAIL": 2}
        assert await bench.connection.fetchval("select min(error_code) from horai.instance_live") == "NODE_STOPPED"
        await make.many(bench.scope, 1)
        await dispatcher.step(bench.clock.now())
        assert len(bench.executor.calls) == 2, "nothing is claimed any more"


async def test_stopping_waits_for_a_claim_under_way(url: str):
    """Its rows would otherwise be left to the rescue, as if they had failed."""
    async with workbench(url) as bench, rows.connections(url, 1) as (holder,):
        await make.job(bench.scope)
        await make.many(bench.scope, 1)
        dispatcher = bench.dispatcher()
        bench.executor.gate.set()
        claiming = await dispatcher.line.get()
        async with holder.transaction():
            await holder.execute("select from horai.node for update")
            stepping = asyncio.create_task(dispatcher.step(bench.clock.now()))
            await rows.until_blocked(bench.connection, claiming)
            stopping = asyncio.create_task(dispatcher.stop(timedelta(seconds=5)))
            await asyncio.sleep(0.05)
            assert not stopping.done()
        await stepping
        await bench.called(1)
        await bench.settle()
        await stopping

        assert await bench.states() == {"SUCCESS": 1}


async def test_two_dispatchers_share_the_work_and_call_nothing_twice(url: str):
    async with workbench(url) as one, workbench(url) as other:
        await make.job(one.scope)
        await make.many(one.scope, 400)
        one.executor.gate.set()
        other.executor.gate.set()

        await asyncio.gather(one.dispatcher().step(one.clock.now()), other.dispatcher().step(other.clock.now()))
        await one.settle()
        await other.settle()

        keys = [call.idempotency_key for bench in (one, other) for call in bench.executor.calls]
        assert len(keys) == len(set(keys)) == 400
        assert await one.states() == {"SUCCESS": 400}


async def test_the_delay_is_measured_from_the_execute_time(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 10, at=datetime.now(UTC) - timedelta(seconds=30))
        bench.executor.gate.set()

        await bench.dispatcher().step(bench.clock.now())
        await bench.settle()

        assert bench.vitals.started == 10
        assert 25 < bench.vitals.delay_quantile(time.monotonic(), 0.95) < 60
