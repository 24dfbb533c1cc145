"""The dispatcher, step by step on a real database."""

import asyncio
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import make
import pytest
import rows
from stages import forget_jobs, workbench

from horai.core.outcome import Accepted, FailedRetryable, FailedUnrecoverable, NotSent, Outcome, Postponed, Succeeded
from horai.core.queue import QueueSettings, parse_rate
from horai.core.settings import SHARDS
from horai.core.states import State
from horai.db import claims, jobs
from horai.db.claims import ClaimedRow
from horai.db.jobs import Lane
from horai.db.pool import Dedicated
from horai.engine import loop
from horai.engine.dispatch.dispatcher import LONGEST_BARREN, _in_polls
from horai.engine.dispatch.scans import Scan
from horai.engine.janitor import Janitor
from horai.features.registry import JOB_HOOKS
from horai.operations import jobs as accepted
from horai.operations import queues
from horai.operations.jobs import JobChange

SECOND = timedelta(seconds=1)


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


async def test_B6_handlers_that_are_claimed_together_share_the_room(url: str):
    async with workbench(url, in_flight=7, claim_batch=100, straggler=timedelta(seconds=20)) as bench:
        await make.job(bench.scope)
        await make.job(bench.scope, "worker", target={"type": "worker", "handler": "h"})
        for job in ("publish", "worker"):
            await make.many(bench.scope, 30, job=job)

        await bench.dispatcher(h=bench.executor).step(bench.clock.now())

        assert len(await bench.called(7)) == len(bench.holdings) == 7, "7 in all, and not 7 of each"
        assert await bench.states() == {"RUNNING": 7, "INIT": 53}


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


async def test_between_tenants_the_claim_is_shared_by_weight(url: str):
    async with workbench(url, in_flight=40) as bench:
        second = await bench.connection.fetchval(
            "insert into horai.tenant (name, weight) values ('second', 3) returning id"
        )
        other = replace(bench.scope, tenant_id=second, tenant="second")
        for scope in (bench.scope, other):
            await make.job(scope)
            await make.many(scope, 200)

        await bench.dispatcher().step(bench.clock.now())

        shares = Counter(call.tenant for call in await bench.called(40))
        assert shares == {"default": 10, "second": 30}


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
        forget_jobs(dispatcher)
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
        change = JobChange({"target": {"type": "worker", "handler": "elsewhere"}, "timeout": None})
        changed = await accepted.change_job(bench.scope, "publish", change)
        bench.executor.gate.set()
        await bench.settle()
        await bench.connection.execute("update horai.instance_live set due = clock_timestamp()")
        forget_jobs(dispatcher)
        dispatcher.rescan_all()

        await dispatcher.step(bench.clock.now())
        await bench.settle()

        assert len(bench.executor.calls) == 1
        assert await make.state(bench.connection, instance) == "INIT"
        janitor = Janitor(
            bench.line("janitor"), bench.scope.wakeups, bench.vitals, bench.settings, bench.clock.now(), JOB_HOOKS
        )
        await janitor.step(bench.clock.now())
        assert await bench.connection.fetchval("select lane from horai.instance_live") == changed.lane_id


async def test_a_claim_whose_answer_was_lost_is_given_back(url: str, monkeypatch: pytest.MonkeyPatch):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 3)
        dispatcher = bench.dispatcher()
        real = claims.claim_due

        async def loses_the_answer(*arguments: object) -> list[ClaimedRow]:
            await real(*arguments)  # pyright: ignore[reportArgumentType]
            raise ConnectionResetError("after the commit")

        monkeypatch.setattr(claims, "claim_due", loses_the_answer)
        with pytest.raises(ConnectionResetError):
            await dispatcher.step(bench.clock.now())
        assert await bench.states() == {"RUNNING": 3}
        monkeypatch.undo()
        tap = await bench.tap(dispatcher.line)
        await make.many(bench.scope, 1)

        await dispatcher.step(bench.clock.now())
        names = await tap.names()
        assert names.index("running_of_node") < names.index("claim_due"), "before anything else is claimed"
        assert "next_due" in names, "and the places that were asked for are asked again"
        await bench.settler.step(bench.clock.now())

        assert bench.vitals.released_claims == 3
        assert await bench.states() == {"INIT": 3, "RUNNING": 1}
        bench.executor.gate.set()
        await bench.until_idle(dispatcher)
        await bench.settle()
        assert await bench.states() == {"SUCCESS": 4}
        assert Counter(call.attempt for call in bench.executor.calls) == {1: 1, 2: 3}
        assert await bench.connection.fetchval("select max(retry_count) from horai.instance_history") == 0


async def test_a_claim_that_failed_is_tried_again(url: str, monkeypatch: pytest.MonkeyPatch):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 40)
        dispatcher = bench.dispatcher()

        async def fails(*_: object) -> list[ClaimedRow]:
            raise ConnectionResetError("before it was sent")

        monkeypatch.setattr(claims, "claim_due", fails)
        with pytest.raises(ConnectionResetError):
            await dispatcher.step(bench.clock.now())
        monkeypatch.undo()
        bench.executor.gate.set()

        await bench.until_idle(dispatcher)
        await bench.settle()

        assert await bench.states() == {"SUCCESS": 40}
        assert bench.vitals.released_claims == 0


async def test_a_question_that_failed_is_asked_again(url: str, monkeypatch: pytest.MonkeyPatch):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 40)
        dispatcher = bench.dispatcher()

        async def fails(*_: object) -> list[object]:
            raise ConnectionResetError("gone")

        for statement in ("lanes", "next_due"):
            monkeypatch.setattr(jobs if statement == "lanes" else claims, statement, fails)
            with pytest.raises(ConnectionResetError):
                await dispatcher.step(bench.clock.now())
            monkeypatch.undo()
        bench.executor.gate.set()

        await bench.until_idle(dispatcher)
        await bench.settle()

        assert await bench.states() == {"SUCCESS": 40}


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


async def test_a_lane_that_committed_after_a_younger_one_is_served(url: str):
    """Ids are given before they commit: the lower one may become visible later."""
    async with workbench(url) as bench, rows.connections(url, 1) as (slow,):
        dispatcher = bench.dispatcher()
        transaction = slow.transaction()
        await transaction.start()
        older = await slow.fetchval(
            "insert into horai.lane (tenant_id, queue, priority, handler, inherits) values (1, 'older', 2, '', true) returning id"
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
        await dispatcher.step(bench.clock.now() + SECOND)

        assert [call.job for call in await bench.called(2)] == ["younger", "older"]
        bench.executor.gate.set()
        await bench.settle()


async def test_a_row_of_the_future_costs_no_claim_before_its_time(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        dispatcher = bench.dispatcher()
        await dispatcher.step(bench.clock.now())
        at = datetime.now(UTC) + timedelta(seconds=20)
        tap = await bench.tap(dispatcher.line)

        await make.many(bench.scope, 64, at=at)
        again = await dispatcher.step(bench.clock.now())

        assert abs((again - at).total_seconds()) < 0.1
        dispatcher.signal.clear()
        await make.many(bench.scope, 64, at=at + timedelta(seconds=1))
        assert not dispatcher.signal.is_set(), "a wake later than the timer costs nothing"
        assert await tap.names() == []


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


# Shards


async def test_C38_http_is_claimed_in_the_leased_shards_only(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 64)
        bench.keeper.owned = frozenset(range(16))
        dispatcher = bench.dispatcher()

        await bench.until_idle(dispatcher)

        assert await bench.states() == {"RUNNING": 32, "INIT": 32}
        assert {call.instance_id % SHARDS for call in await bench.called(32)} == set(range(16))
        bench.keeper.owned = frozenset(range(SHARDS))
        await bench.until_idle(dispatcher)
        assert await bench.states() == {"RUNNING": 64}, "a shard that is gained is looked at"
        bench.executor.gate.set()
        await bench.settle()


async def test_C38_a_shard_that_was_lost_is_not_claimed_from_though_it_was_in_line(url: str):
    async with workbench(url, in_flight=32) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 96)
        dispatcher = bench.dispatcher()
        await bench.until_idle(dispatcher)
        assert any(dispatcher.is_ready(place) for place in dispatcher.bench.lanes.places())
        bench.keeper.owned = frozenset({3})
        bench.executor.gate.set()
        await bench.settle()

        await bench.until_idle(dispatcher)
        await bench.settle()
        await make.many(bench.scope, 32)
        await bench.until_idle(dispatcher)
        await bench.settle()

        assert {call.instance_id % SHARDS for call in bench.executor.calls[32:]} == {3}
        assert await bench.states() == {"SUCCESS": 32 + 3, "INIT": 128 - 35}


async def test_the_lanes_of_a_handler_are_claimed_in_every_shard(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope, "worker", target={"type": "worker", "handler": "h"})
        await make.many(bench.scope, 64, job="worker")
        bench.keeper.owned = frozenset()
        bench.executor.gate.set()

        await bench.until_idle(bench.dispatcher(h=bench.executor))
        await bench.settle()

        assert await bench.states() == {"SUCCESS": 64}


# What is asked, and when


async def test_a_lane_that_is_new_here_is_asked_what_it_has_and_not_claimed_from_blindly(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        dispatcher = bench.dispatcher()
        tap = await bench.tap(dispatcher.line)

        again = await dispatcher.step(bench.clock.now())

        assert await tap.names() == ["lanes", "next_due"]
        assert again > bench.clock.now() + 30 * SECOND
        await bench.until_idle(dispatcher)
        assert await tap.names() == ["lanes", "next_due"], "with nothing there it asks once"


async def test_a_place_that_gave_all_it_was_asked_for_is_asked_for_more_before_it_is_asked_when(url: str):
    async with workbench(url, poll_batch=1) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 64)
        dispatcher = bench.dispatcher()
        tap = await bench.tap(dispatcher.line)

        await bench.until_idle(dispatcher)

        assert Counter(await tap.names()) == {
            "lanes": 1, "next_due": 2, "claim_due": 3, "jobs_to_run": 1, "signing_secrets": 1
        }  # fmt: skip
        assert await bench.states() == {"RUNNING": 64}


async def test_C47_no_scan_brings_more_than_a_poll_batch_at_once(url: str):
    async with workbench(url, in_flight=10_000) as bench:
        job = await make.job(bench.scope)
        await bench.connection.execute(
            "insert into horai.instance_live (id, job_id, due, fire_time, execute_time, born_for, slot, tenant_id, lane, shard)"
            " select 32 * n, $1, now(), now(), now(), now(), -n, 1, $2, 0 from generate_series(1, 500) n",
            job.id,
            job.lane_id,
        )
        dispatcher = bench.dispatcher()
        tap = await bench.tap(dispatcher.line)

        await bench.until_idle(dispatcher)

        assert bench.settings.poll_batch == 200
        asked = [query.args[-1] for query in tap.queries if "/* claim_due */" in query.query]
        assert asked == [[200]] * 3
        assert await bench.states() == {"RUNNING": 500}


async def test_a_row_that_cannot_be_claimed_is_looked_at_ever_less_often_until_its_queue_is_woken(url: str):
    async with workbench(url) as bench, rows.connections(url, 1) as (holder,):
        job = await make.job(bench.scope)
        await make.many(bench.scope, 1)
        dispatcher = bench.dispatcher()
        async with holder.transaction():
            await holder.execute("select from horai.instance_live for update")
            pauses: list[timedelta] = []
            for _ in range(8):
                again = await dispatcher.step(bench.clock.now())
                pauses.append(again - bench.clock.now())
                bench.clock.observe(again)
            assert pauses[0] < timedelta(milliseconds=5)
            noise = timedelta(milliseconds=5)
            assert all(sooner < later + noise for sooner, later in pairwise(pauses))
            assert LONGEST_BARREN * 0.8 < pauses[-1] <= LONGEST_BARREN + timedelta(milliseconds=2)
            queue_id = await bench.connection.fetchval("select queue_id from horai.lane where id = $1", job.lane_id)
            dispatcher.signal.clear()

            dispatcher.wake_queue(queue_id)

            assert dispatcher.signal.is_set()
            first = await dispatcher.step(bench.clock.now())
            assert first - bench.clock.now() < timedelta(milliseconds=50)
        bench.clock.observe(first)
        bench.executor.gate.set()
        await bench.until_idle(dispatcher)
        await bench.settle()
        assert await bench.states() == {"SUCCESS": 1}


async def test_a_dispatcher_that_drains_claims_nothing(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 3)
        dispatcher = bench.dispatcher()
        dispatcher.is_draining = True
        tap = await bench.tap(dispatcher.line)

        await dispatcher.step(bench.clock.now())

        assert await tap.names() == []
        assert await bench.states() == {"INIT": 3}


# What a queue allows


async def test_a_paused_queue_keeps_its_rows_and_lets_them_go_when_it_is_resumed(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.job(bench.scope, "other", queue="other")
        await bench.set_queue(paused=True)
        await make.many(bench.scope, 40)
        await make.many(bench.scope, 3, job="other")
        dispatcher = bench.dispatcher()
        tap = await bench.tap(dispatcher.line)

        await bench.until_idle(dispatcher)

        assert await bench.states() == {"INIT": 40, "RUNNING": 3}
        assert (await tap.names()).count("claim_due") == 1, "nobody looks into a paused queue"
        dispatcher.signal.clear()
        await bench.set_queue()
        assert dispatcher.signal.is_set()
        await dispatcher.step(bench.clock.now() + SECOND)
        await bench.until_idle(dispatcher)
        assert await bench.states() == {"RUNNING": 43}
        bench.executor.gate.set()
        await bench.settle()


async def test_a_queue_that_is_paused_under_way_lets_nothing_more_through(url: str):
    async with workbench(url) as bench, make.scope(url) as elsewhere:
        await make.job(bench.scope)
        dispatcher = bench.dispatcher()
        await bench.until_idle(dispatcher)
        await queues.set_queue(elsewhere, "default", QueueSettings(paused=True))

        await make.many(bench.scope, 40)
        await bench.until_idle(dispatcher)

        assert not dispatcher.bench.lanes[1].limits.paused, "it has not heard of it"
        assert await bench.states() == {"INIT": 40}


async def test_a_limit_that_another_process_has_set_holds_though_the_queue_is_thought_free(url: str):
    async with workbench(url) as bench, make.scope(url) as elsewhere:
        await make.job(bench.scope)
        dispatcher = bench.dispatcher()
        await bench.until_idle(dispatcher)
        queue = await queues.set_queue(elsewhere, "default", QueueSettings(max_concurrency=5))

        await make.many(bench.scope, 40)
        await bench.until_idle(dispatcher)
        assert await bench.states() == {"INIT": 40}

        dispatcher.wake_queue(queue.id)
        await dispatcher.step(bench.clock.now() + SECOND)
        assert await bench.states() == {"INIT": 35, "RUNNING": 5}


async def test_never_more_than_the_limit_are_in_hand_and_one_that_ends_lets_the_next_in(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 23)
        await bench.set_queue(max_concurrency=5)
        dispatcher = bench.dispatcher()
        await bench.until_idle(dispatcher)
        assert len(await bench.called(5)) == len(bench.holdings) == 5
        bench.executor.gate.set()
        most = 0
        async with asyncio.timeout(30):
            while (await bench.states()).get("SUCCESS") != 23:
                most = max(most, len(bench.holdings))
                dispatcher.signal.clear()
                await bench.settle()
                assert dispatcher.signal.is_set(), "a slot that is freed wakes the dispatcher"
                await bench.until_idle(dispatcher)

        assert most == 5
        assert len(bench.executor.calls) == 23


async def test_a_queue_that_is_full_holds_no_other_queue_up(url: str):
    async with workbench(url, in_flight=20) as bench:
        await make.job(bench.scope, "limited", queue="limited", priority="core")
        await make.job(bench.scope)
        await bench.set_queue("limited", max_concurrency=2)
        await make.many(bench.scope, 100, job="limited")
        await make.many(bench.scope, 10)

        await bench.until_idle(bench.dispatcher())

        assert Counter(call.job for call in await bench.called(12)) == {"limited": 2, "publish": 10}


async def test_a_rate_is_kept_by_the_buckets_clock(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 30)
        await bench.set_queue(rate=parse_rate("2/s"))
        dispatcher = bench.dispatcher()

        again = await dispatcher.step(bench.clock.now())

        assert await bench.states() == {"RUNNING": 1, "INIT": 29}, "an idle bucket holds one token"
        assert timedelta(milliseconds=300) < again - bench.clock.now() <= timedelta(milliseconds=501)
        await bench.connection.execute("update horai.queue set refilled_at = refilled_at - interval '1 hour'")
        bench.clock.observe(again)
        await dispatcher.step(bench.clock.now())
        assert await bench.states() == {"RUNNING": 2, "INIT": 28}, "nor does it save up for an hour"


async def test_a_rate_with_tokens_enough_holds_no_place_back(url: str):
    """A pick of all places asks for more rows than there are tokens: none of them takes all."""
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await bench.set_queue(rate=parse_rate("200/s"))
        dispatcher = bench.dispatcher()
        await bench.until_idle(dispatcher)
        await bench.connection.execute("update horai.queue set tokens = 20, refilled_at = now() + interval '1 day'")
        await make.many(bench.scope, 64)
        tap = await bench.tap(dispatcher.line)

        again = await dispatcher.step(bench.clock.now())

        assert await bench.states() == {"RUNNING": 20, "INIT": 44}
        assert len({call.instance_id % SHARDS for call in await bench.called(20)}) == 20
        assert (await tap.names()).count("claim_due") == 1
        await bench.connection.execute("update horai.queue set tokens = 20")
        bench.clock.observe(again)
        await dispatcher.step(bench.clock.now())
        assert await bench.states() == {"RUNNING": 40, "INIT": 24}, "those that were passed over are next"


# What happens while it looks


async def test_a_change_of_a_queue_during_the_look_at_the_lanes_is_not_missed(
    url: str, monkeypatch: pytest.MonkeyPatch
):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await bench.set_queue(paused=True)
        await make.many(bench.scope, 3)
        dispatcher = bench.dispatcher()
        real = jobs.lanes

        async def is_overtaken(connection: Dedicated) -> list[Lane]:
            found = await real(connection)
            await bench.set_queue()
            return found

        monkeypatch.setattr(jobs, "lanes", is_overtaken)
        await dispatcher.step(bench.clock.now())
        monkeypatch.undo()
        assert await bench.states() == {"INIT": 3}

        again = await dispatcher.step(bench.clock.now())
        assert again <= bench.clock.now() + SECOND
        await dispatcher.step(again)

        assert await bench.states() == {"RUNNING": 3}


async def test_a_place_that_becomes_unknown_while_it_is_asked_about_is_asked_about_again(
    url: str, monkeypatch: pytest.MonkeyPatch
):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        dispatcher = bench.deaf_dispatcher()
        real = claims.next_due

        async def is_overtaken(*arguments: object) -> list[tuple[int, int, datetime]]:
            found = await real(*arguments)  # pyright: ignore[reportArgumentType]
            monkeypatch.undo()
            await make.many(bench.scope, 40)
            dispatcher.rescan_all()
            return found

        monkeypatch.setattr(claims, "next_due", is_overtaken)

        await bench.until_idle(dispatcher)

        assert await bench.states() == {"RUNNING": 40}
        assert dispatcher.is_ready(Scan(0, 1)) is False


def test_a_place_gives_no_more_than_its_poll_and_the_shares_stay_what_they_were():
    heavy, light = Scan(0, 1), Scan(0, 2)

    assert _in_polls([(heavy, 750), (light, 250)], 200) == [(heavy, 200), (light, 66)]
    assert _in_polls([(heavy, 150), (light, 50)], 200) == [(heavy, 150), (light, 50)]
    assert _in_polls([(heavy, 1000), (light, 1)], 200)[1] == (light, 1), "nobody is left with nothing"
