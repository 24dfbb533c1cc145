"""Claims within the limits of queues, and the recovery of a claim whose answer was lost."""

from datetime import timedelta

import make
import pytest
from stages import Workbench, workbench

from horai.core.limits import SHARDS
from horai.core.queue import QueueSettings, parse_rate
from horai.db import claim_lanes, claims, queues
from horai.db.claims import ClaimedRow, RunningRow
from horai.db.pool import Platform
from horai.engine.dispatch.claimer import PAGE, ClaimResult
from horai.engine.dispatch.dispatcher import DispatcherParts
from horai.engine.dispatch.scans import Scan
from horai.operations import queues as accepted


async def learnt(bench: Workbench) -> DispatcherParts:
    """A claimer that knows its lanes and has all shards."""
    made = bench.parts()
    made.scans.own(frozenset(range(SHARDS)))
    made.scans.learn(await claim_lanes.lanes(bench.connection))
    return made


async def claim(bench: Workbench, on: DispatcherParts, rows: int = 10) -> ClaimResult:
    """So many rows of every place, over the bench's own connection."""
    return await on.claimer.claim(bench.connection, [(place, rows) for place in on.scans.all()])


async def taken_slots(bench: Workbench) -> int:
    return await bench.connection.fetchval("select count(*) from horai.queue_slot where instance_id is not null")


async def test_scans_without_limits_are_claimed_in_one_statement_across_queues(url: str):
    async with workbench(url) as bench:
        for queue in ("one", "two", "three"):
            await make.job(bench.scope, queue, queue=queue)
            await make.many(bench.scope, 40, job=queue)
        on = await learnt(bench)
        line = bench.line("claimer")
        tap = await bench.tap(line)

        claimed = await on.claimer.claim(await line.get(), [(place, 10) for place in on.scans.all()])

        assert await tap.names() == ["claim_due"]
        assert len(claimed.rows) == sum(claimed.found.values()) == len(bench.in_flight) == 120
        assert not any(row.held.has_slot for row in claimed.rows)
        assert not claimed.wait_until


async def test_a_limited_queue_gives_as_many_as_it_has_slots_and_the_others_all(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.job(bench.scope, "limited", queue="limited")
        await make.many(bench.scope, 40)
        await make.many(bench.scope, 40, job="limited")
        await bench.set_queue("limited", max_concurrency=7)
        on = await learnt(bench)

        claimed = await claim(bench, on)

        seated = [row for row in claimed.rows if row.held.has_slot]
        assert (len(seated), len(claimed.rows)) == (7, 47)
        assert await taken_slots(bench) == 7
        assert len((await claim(bench, on)).rows) == 0
        assert (on.claimer.begun, on.claimer.answered) == (4, 4), "each statement has a number of its own"


async def test_the_claimer_claims_by_the_granted_rate_and_returns_unused_tokens(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 3)
        queue_id = await bench.set_queue(rate=parse_rate("1000/s"))
        await bench.connection.execute("update horai.queue set tokens = 100, refilled_at = now() + interval '1 day'")
        on = await learnt(bench)

        claimed = await claim(bench, on)

        assert len(claimed.rows) == 3
        assert await bench.connection.fetchval("select tokens from horai.queue where id = $1", queue_id) == 97


async def test_without_a_token_nothing_is_claimed_and_its_places_wait_for_one(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.job(bench.scope, "free", queue="free")
        await make.many(bench.scope, 3)
        await make.many(bench.scope, 3, job="free")
        queue_id = await bench.set_queue(rate=parse_rate("30/m"))
        await queues.grant(bench.connection, queue_id, 1)
        on = await learnt(bench)
        begun = bench.clock.now()

        claimed = await claim(bench, on)

        assert len(claimed.rows) == 3, "of the other queue"
        assert set(claimed.wait_until) == set(on.scans.of_queue(queue_id))
        wait = max(claimed.wait_until.values()) - begun
        assert timedelta(seconds=1) < wait < timedelta(seconds=3)


async def test_the_tokens_of_a_rate_are_spread_over_the_places_that_have_something(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 320)
        await bench.set_queue(rate=parse_rate("1000/s"))
        await bench.connection.execute("update horai.queue set tokens = 70, refilled_at = now() + interval '1 day'")
        on = await learnt(bench)

        claimed = await claim(bench, on, rows=31)

        assert set(claimed.found.values()) == {2, 3}, "none gets all of them"
        assert len(claimed.rows) == 70
        assert not claimed.passed_over
        await bench.connection.execute("update horai.queue set tokens = 10")
        few = await claim(bench, on, rows=31)
        assert len(few.rows) == 10
        assert len(few.passed_over) == SHARDS - 10


async def test_a_queue_may_have_both_a_limit_and_a_rate(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 40)
        await bench.set_queue(max_concurrency=5, rate=parse_rate("100/s"))
        await bench.connection.execute("update horai.queue set tokens = 10, refilled_at = now() + interval '1 day'")
        on = await learnt(bench)

        claimed = await claim(bench, on)

        assert len(claimed.rows) == 5
        assert await bench.connection.fetchval("select tokens from horai.queue") == 5
        assert await taken_slots(bench) == 5


CHANGES = {"limited": QueueSettings(max_concurrency=1), "paused": QueueSettings(paused=True)}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
async def test_the_row_is_the_judge_of_a_queue_that_is_thought_free(url: str, change: QueueSettings):
    async with workbench(url) as bench, make.scope(url) as elsewhere:
        await make.job(bench.scope)
        await make.many(bench.scope, 10)
        on = await learnt(bench)
        await accepted.set_queue(elsewhere, "default", change)

        assert (await claim(bench, on)).rows == []


async def test_a_queue_that_is_thought_limited_and_is_free_gives_nothing_until_that_is_known(url: str):
    async with workbench(url) as bench, make.scope(url) as elsewhere:
        await make.job(bench.scope)
        await make.many(bench.scope, 10)
        await bench.set_queue(max_concurrency=2)
        on = await learnt(bench)
        await accepted.set_queue(elsewhere, "default", QueueSettings())
        assert (await claim(bench, on)).rows == []

        on.scans.learn(await claim_lanes.lanes(bench.connection))

        assert len((await claim(bench, on)).rows) == 10


# Lost answers


async def lose_the_answer(
    bench: Workbench, on: DispatcherParts, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    module = claims if statement == "claim_due" else queues
    real = getattr(module, statement)

    async def loses_the_answer(*arguments: object) -> list[ClaimedRow]:
        await real(*arguments)
        raise ConnectionResetError("after the commit")

    monkeypatch.setattr(module, statement, loses_the_answer)
    with pytest.raises(ConnectionResetError):
        await claim(bench, on, rows=100)
    monkeypatch.undo()


async def test_rows_of_a_lost_claim_answer_are_released_and_rows_in_flight_are_kept(
    url: str, monkeypatch: pytest.MonkeyPatch
):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 5)
        on = await learnt(bench)
        kept = await claim(bench, on)
        await make.many(bench.scope, PAGE + 7)
        await lose_the_answer(bench, on, monkeypatch, "claim_due")
        assert on.claimer.is_answer_lost
        assert on.claimer.answered == on.claimer.begun - 1

        await on.claimer.release_lost(bench.connection)
        while bench.health.unsettled or bench.settler.signal.is_set():
            bench.settler.signal.clear()
            await bench.settler.step(bench.clock.now())

        assert not on.claimer.is_answer_lost
        assert bench.health.released_claims == PAGE + 7
        assert await bench.states() == {"RUNNING": 5, "INIT": PAGE + 7}
        assert bench.in_flight.known() == {(row.held.id, row.held.fence) for row in kept.rows}


async def test_a_lost_claim_of_a_limited_queue_gives_its_slots_back(url: str, monkeypatch: pytest.MonkeyPatch):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 10)
        await bench.set_queue(max_concurrency=4)
        on = await learnt(bench)
        await lose_the_answer(bench, on, monkeypatch, "claim_limited")
        assert await taken_slots(bench) == 4

        await on.claimer.release_lost(bench.connection)
        await bench.settler.step(bench.clock.now())

        assert await taken_slots(bench) == 0
        assert await bench.states() == {"INIT": 10}


async def test_rows_that_settle_while_the_claimer_searches_lost_claims_are_not_released(
    url: str, monkeypatch: pytest.MonkeyPatch
):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 5)
        on = await learnt(bench)
        held = [row.held for row in (await claim(bench, on)).rows]
        real = claims.running_of_node

        async def is_overtaken(connection: Platform, node: int, after: int, limit: int) -> list[RunningRow]:
            found = await real(connection, node, after, limit)
            bench.in_flight.drop(held)
            return found

        monkeypatch.setattr(claims, "running_of_node", is_overtaken)
        bench.settler.signal.clear()  # the claim has set it, so that the connection is open in time
        await on.claimer.release_lost(bench.connection)

        assert bench.health.released_claims == 0
        assert not bench.settler.signal.is_set()


async def test_a_claim_that_was_never_sent_costs_one_look_and_no_more(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        on = await learnt(bench)
        on.claimer.is_answer_lost = True

        await on.claimer.release_lost(bench.connection)

        assert not on.claimer.is_answer_lost
        assert bench.health.released_claims == 0


async def test_a_cursor_follows_what_was_claimed(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        (instance_id,) = await make.many(bench.scope, 1)
        on = await learnt(bench)
        place = Scan(instance_id % SHARDS, 1)

        (row,) = (await claim(bench, on)).rows

        assert on.scans.position(place)[2:] == (row.due, instance_id)
