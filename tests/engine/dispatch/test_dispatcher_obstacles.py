"""Rows that the dispatcher cannot call: their job has changed, the claim failed, or their queue has no room."""

import asyncio
import time
from collections import Counter
from datetime import timedelta
from typing import Any

import make
import pytest
from stages import forget_jobs, workbench

from horai.core.limits import SHARDS
from horai.core.outcome import FailedRetryable
from horai.core.queue import QueueSettings, parse_rate
from horai.core.states import State
from horai.db import claim_lanes, claims
from horai.db import queues as queue_rows
from horai.db.claims import ClaimedRow
from horai.db.concurrency_keys import KeyedRows
from horai.engine.janitor import Janitor
from horai.features.registry import JOB_HOOKS
from horai.operations import jobs as accepted
from horai.operations import queues
from horai.operations.jobs import JobChange

SECOND = timedelta(seconds=1)


async def test_the_rows_of_a_paused_job_are_parked_and_come_back(url: str):
    async with workbench(url) as bench:
        job = await make.job(bench.scope)
        await make.many(bench.scope, 3)
        await bench.connection.execute("update horai.job set status = 1")
        dispatcher = bench.dispatcher()

        await dispatcher.step(bench.clock.now())

        assert bench.executor.calls == []
        assert len(bench.in_flight) == 0
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


async def test_an_unreadable_job_definition_does_not_delay_the_rows_of_other_jobs(url: str):
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


async def test_a_row_whose_job_was_changed_to_a_worker_is_released_and_moved_to_the_new_lane(url: str):
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
            bench.line("janitor"), bench.scope.wakeups, bench.health, bench.settings, bench.clock.now(), JOB_HOOKS
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

        assert bench.health.released_claims == 3
        assert await bench.states() == {"INIT": 3, "RUNNING": 1}
        bench.executor.gate.set()
        await bench.until_idle(dispatcher)
        await bench.settle()
        assert await bench.states() == {"SUCCESS": 4}
        assert Counter(call.attempt for call in bench.executor.calls) == {1: 4}
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
        assert bench.health.released_claims == 0


async def test_a_question_that_failed_is_asked_again(url: str, monkeypatch: pytest.MonkeyPatch):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 40)
        dispatcher = bench.dispatcher()

        async def fails(*_: object) -> list[object]:
            raise ConnectionResetError("gone")

        for statement in ("lanes", "next_due"):
            monkeypatch.setattr(claim_lanes if statement == "lanes" else claims, statement, fails)
            with pytest.raises(ConnectionResetError):
                await dispatcher.step(bench.clock.now())
            monkeypatch.undo()
        bench.executor.gate.set()

        await bench.until_idle(dispatcher)
        await bench.settle()

        assert await bench.states() == {"SUCCESS": 40}


# What a queue allows


async def test_a_paused_queue_keeps_its_rows_and_the_dispatcher_claims_them_after_the_resume(url: str):
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
        assert (await tap.names()).count("claim_due") == 1, "a paused queue is not claimed from"
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

        assert not dispatcher.parts.scans[1].limits.paused, "it has not heard of it"
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
        assert len(await bench.called(5)) == len(bench.in_flight) == 5
        bench.executor.gate.set()
        most = 0
        async with asyncio.timeout(30):
            while (await bench.states()).get("SUCCESS") != 23:
                most = max(most, len(bench.in_flight))
                dispatcher.signal.clear()
                await bench.settle()
                assert dispatcher.signal.is_set(), "a slot that is freed wakes the dispatcher"
                await bench.until_idle(dispatcher)

        assert most == 5
        assert len(bench.executor.calls) == 23


async def test_C3a_a_permit_that_becomes_free_between_two_claims_goes_to_the_more_urgent_row(
    url: str, monkeypatch: pytest.MonkeyPatch
):
    async with workbench(url) as bench:
        for job, urgency in (("urgent", "core"), ("other", "low")):
            await make.job(bench.scope, job, priority=urgency)
        queue_id = await bench.set_queue(max_concurrency=1)
        await make.many(bench.scope, 1, job="urgent")
        dispatcher = bench.deaf_dispatcher()
        await bench.until_idle(dispatcher)
        for job in ("other", "urgent", "urgent"):
            await make.many(bench.scope, 1, job=job)
        dispatcher.rescan_all()
        await bench.until_idle(dispatcher)
        real, claims_seen = queue_rows.claim_limited, 0

        async def claim_and_settle(*arguments: Any) -> KeyedRows:
            nonlocal claims_seen
            found = await real(*arguments)
            claims_seen += 1
            if claims_seen == 1:
                bench.executor.gate.set()
                await bench.settle()
                bench.executor.gate.clear()
            return found

        monkeypatch.setattr(queue_rows, "claim_limited", claim_and_settle)
        dispatcher.wake_queue(queue_id)
        await dispatcher.step(bench.clock.now())

        assert claims_seen > 1
        assert [call.job for call in await bench.called(2)] == ["urgent", "urgent"]


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
        bench.clock.observe(again, time.monotonic())
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
        bench.clock.observe(again, time.monotonic())
        await dispatcher.step(bench.clock.now())
        assert await bench.states() == {"RUNNING": 40, "INIT": 24}, "those that were passed over are next"
