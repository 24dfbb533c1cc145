"""The upkeep of the sweeper: how often it looks, what it gives back, and what it writes down."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

import make
import pytest
from stages import Workbench, workbench

from horai.core.limits import SHARDS
from horai.core.queue import QueueSettings
from horai.db import claims, nodes, queues
from horai.db.claims import LeftBehind, Position
from horai.db.pool import Platform
from horai.engine.sweeper import Sweeper
from horai.operations import queues as accepted

SECOND = timedelta(seconds=1)
SWEEP = timedelta(seconds=31)


async def taken_slots(bench: Workbench) -> int:
    return await bench.connection.fetchval("select count(*) from horai.queue_slot where instance_id is not null")


# How often, and what it costs


async def test_E7c_an_idle_sweep_is_one_statement_for_every_thousand_places(url: str):
    async with workbench(url) as bench:
        for number in range(40):
            await make.job(bench.scope, f"job-{number}", queue=f"queue-{number}")
        dispatcher = bench.dispatcher()
        sweeper = bench.sweeper(dispatcher)
        await bench.until_idle(dispatcher)
        tap = await bench.tap(sweeper.line)

        await sweeper.step(bench.clock.now() + SWEEP)

        assert len(list(dispatcher.parts.scans.all())) == 40 * SHARDS
        assert await tap.names() == ["lanes", "left_behind", "left_behind"]


@pytest.mark.parametrize(("is_listening", "sweeps"), [(True, 1), (False, 31)])
async def test_E10_the_sweeper_sweeps_every_second_while_the_listener_is_not_listening(
    url: str, is_listening: bool, sweeps: int
):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        dispatcher = bench.dispatcher()
        sweeper = Sweeper(bench.line("sweeper"), dispatcher, bench.settler, bench.scope.wakeups, lambda: is_listening)
        await bench.until_idle(dispatcher)
        tap = await bench.tap(sweeper.line)
        now = bench.clock.now()
        for second in range(1, 32):
            assert await sweeper.step(now + second * SECOND) == now + (second + 1) * SECOND

        assert (await tap.names()).count("left_behind") == sweeps


async def test_a_sweep_reads_lanes_and_limits_whose_wakes_did_not_arrive(url: str):
    async with workbench(url) as bench, make.scope(url) as elsewhere:
        await make.job(elsewhere)
        dispatcher = bench.dispatcher()
        sweeper = bench.sweeper(dispatcher)
        await bench.until_idle(dispatcher)
        await accepted.set_queue(elsewhere, "default", QueueSettings(max_concurrency=3))
        await make.job(elsewhere, "other", queue="other")
        await make.many(elsewhere, 10)
        await make.many(elsewhere, 10, job="other")
        dispatcher.signal.clear()

        await sweeper.step(bench.clock.now() + SWEEP)

        assert dispatcher.signal.is_set()
        await bench.until_idle(dispatcher)
        assert Counter(call.job for call in await bench.called(13)) == {"publish": 3, "other": 10}
        bench.executor.gate.set()
        await bench.settle()


async def test_a_node_that_drains_or_distrusts_its_lease_does_not_look(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        dispatcher = bench.dispatcher()
        sweeper = bench.sweeper(dispatcher)
        await bench.until_idle(dispatcher)
        tap = await bench.tap(sweeper.line)
        dispatcher.is_active = True

        bench.lease.trusted = False
        await sweeper.step(bench.clock.now() + SWEEP)
        bench.lease.trusted, dispatcher.is_draining = True, True
        await sweeper.step(bench.clock.now() + 2 * SWEEP)

        assert await tap.names() == []


# Rows that no process holds


async def test_a_sweep_releases_rows_that_run_on_this_node_and_are_not_in_flight(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 3)
        dispatcher = bench.dispatcher()
        sweeper = bench.sweeper(dispatcher)
        await bench.until_idle(dispatcher)
        answered = dispatcher.parts.claimer.answered
        await make.many(bench.scope, 150)
        lost = await make.claim(bench.connection, bench.lease.incarnation, claim_id=answered)
        others = await make.node(bench.connection)
        await make.many(bench.scope, 5)
        await make.claim(bench.connection, others, claim_id=1)
        assert len(lost) == 150

        await sweeper.step(bench.clock.now() + SWEEP)
        await bench.settler.step(bench.clock.now())

        assert bench.health.released_claims == 150
        assert await bench.states() == {"RUNNING": 3 + 5, "INIT": 150}
        assert len(bench.in_flight) == 3, "what is in hand stays there, and what others run is theirs"
        bench.executor.gate.set()
        await bench.until_idle(dispatcher)
        await bench.settle()
        assert await bench.states() == {"RUNNING": 5, "SUCCESS": 153}


async def test_a_sweep_leaves_what_a_claim_under_way_has_taken(url: str):
    """Its answer is still to come."""
    async with workbench(url) as bench:
        await make.job(bench.scope)
        dispatcher = bench.dispatcher()
        sweeper = bench.sweeper(dispatcher)
        await bench.until_idle(dispatcher)
        with dispatcher.parts.claimer.numbered() as by:
            await make.many(bench.scope, 20)
            coming = await make.claim(bench.connection, bench.lease.incarnation, claim_id=by.claim)

            await sweeper.step(bench.clock.now() + SWEEP)

            assert not bench.settler.signal.is_set()
            assert bench.health.released_claims == 0
            bench.in_flight.add(coming)
        await sweeper.step(bench.clock.now() + 2 * SWEEP)
        assert bench.health.released_claims == 0


async def test_rows_that_settle_while_the_sweep_reads_are_not_released(url: str, monkeypatch: pytest.MonkeyPatch):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 20)
        dispatcher = bench.dispatcher()
        sweeper = bench.sweeper(dispatcher)
        bench.executor.gate.set()
        await bench.until_idle(dispatcher)
        real = claims.left_behind

        async def is_overtaken(
            connection: Platform, positions: Sequence[Position], node: int | None, limit: int
        ) -> list[LeftBehind]:
            found = await real(connection, positions, node, limit)
            await bench.settle()
            return found

        monkeypatch.setattr(claims, "left_behind", is_overtaken)
        await sweeper.step(bench.clock.now() + SWEEP)

        assert await bench.states() == {"SUCCESS": 20}
        assert bench.health.released_claims == 0


# Slots


async def test_a_sweep_frees_the_permits_of_calls_that_no_node_makes_and_wakes_the_queue(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 10)
        await bench.set_queue(max_concurrency=4)
        dispatcher = bench.dispatcher()
        sweeper = bench.sweeper(dispatcher)
        await bench.until_idle(dispatcher)
        held = [row for row in bench.in_flight.known() if row]
        await bench.connection.execute(
            "update horai.queue_slot set fence = fence + 5 where instance_id = any ($1::bigint[])",
            [instance_id for instance_id, _ in held[:2]],
        )
        gone = await make.node(bench.connection)
        await bench.connection.execute("update horai.queue_slot set node = $1 where instance_id = $2", gone, held[2][0])
        await nodes.stop_node(bench.connection, gone)
        await bench.connection.execute("update horai.node set rescued_at = now() where incarnation = $1", gone)
        dispatcher.signal.clear()

        await sweeper.step(bench.clock.now() + SWEEP)

        assert await taken_slots(bench) == 1, "that of the call that is in hand as it is written"
        assert dispatcher.signal.is_set()
        bench.executor.gate.set()
        await bench.settle()


async def test_slots_are_left_alone_while_a_claim_is_under_way(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 3)
        queue_id = await bench.set_queue(max_concurrency=4)
        dispatcher = bench.dispatcher()
        sweeper = bench.sweeper(dispatcher)
        await bench.until_idle(dispatcher)
        await make.many(bench.scope, 1)
        claimer = dispatcher.parts.claimer
        scans = [dispatcher.parts.scans.position(place) for place in dispatcher.parts.scans.all()]
        with claimer.numbered() as by:
            assert len(await queues.claim_limited(bench.connection, by, queue_id, scans, 4)) == 1

            await sweeper.step(bench.clock.now() + SWEEP)

            assert await taken_slots(bench) == 4
        bench.executor.gate.set()
        await bench.settle()


async def test_calls_that_began_before_their_queue_had_a_limit_give_their_slots_back_within_seconds(url: str):
    """They were given slots when the limit was set; their settlements do not know of them."""
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 3)
        dispatcher = bench.dispatcher()
        sweeper = bench.sweeper(dispatcher)
        await bench.until_idle(dispatcher)
        await bench.called(3)
        await bench.set_queue(max_concurrency=3)
        await make.many(bench.scope, 6)
        await dispatcher.step(bench.clock.now() + SECOND)
        assert await bench.states() == {"RUNNING": 3, "INIT": 6}, "they count"
        assert await taken_slots(bench) == 3
        await sweeper.step(bench.clock.now() + SECOND)
        assert await taken_slots(bench) == 3, "as long as they run"
        bench.executor.gate.set()
        await bench.settle()

        await sweeper.step(bench.clock.now() + 2 * SECOND)
        assert await taken_slots(bench) == 0
        await bench.until_idle(dispatcher)
        await bench.settle()

        assert (await bench.states())["SUCCESS"] >= 6
        tap = await bench.tap(sweeper.line)
        dispatcher.is_active = False
        await sweeper.step(bench.clock.now() + 3 * SECOND)
        assert await tap.names() == [], "and then no statement asks for them"


async def test_two_sweepers_of_two_nodes_do_not_take_from_each_other(url: str):
    async with workbench(url) as one, workbench(url) as other:
        await make.job(one.scope)
        await make.many(one.scope, 100)
        dispatchers = [one.dispatcher(), other.dispatcher()]
        for bench, dispatcher in zip((one, other), dispatchers, strict=True):
            await bench.until_idle(dispatcher)
        await make.many(one.scope, 100)
        await other.until_idle(dispatchers[1])
        await other.sweeper(dispatchers[1]).step(other.clock.now() + SWEEP)
        await other.until_idle(dispatchers[1])

        for bench, dispatcher in zip((one, other), dispatchers, strict=True):
            await bench.sweeper(dispatcher).step(bench.clock.now() + SWEEP)
            bench.executor.gate.set()
            await bench.settle()

        assert (one.health.released_claims, other.health.released_claims) == (0, 0)
        assert await one.states() == {"SUCCESS": 200}
