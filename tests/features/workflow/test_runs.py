"""The statements behind runs: what they guard, what they see, and what they cost."""

import json
from datetime import timedelta

import flows
import make

from horai.core.outcome import Complete
from horai.core.states import State
from horai.db import claims, instances
from horai.db.claims import Claimable
from horai.db.pool import Platform, connect
from horai.db.verify import verify
from horai.features.workflow import run_store
from horai.features.workflow.run_store import NodeEnd, RunStart, Unblock
from horai.features.workflow.runs import advance_runs, start_run
from horai.features.workflow.trigger_rules import NodeCause
from horai.operations import jobs


async def test_unblock_ignores_an_instance_that_is_not_blocked(url: str, connection: Platform):
    async with make.scope(url) as scope:
        run = await flows.start(scope, connection, await flows.workflow(scope))
        load = await flows.instance_of(connection, run, "load")
        due = await connection.fetchval("select due from horai.instance_live where id = $1", load)

        assert await run_store.unblock(connection, [Unblock(load, run)]) == []
        assert await connection.fetchval("select due from horai.instance_live where id = $1", load) == due


async def test_an_unblocked_instance_is_due_now_in_the_lane_of_its_job_and_has_an_event(url: str, connection: Platform):
    async with make.scope(url) as scope:
        run = await flows.start(scope, connection, await flows.workflow(scope))
        left = await flows.instance_of(connection, run, "left")
        before = await connection.fetchval("select clock_timestamp()")

        (woken,) = await run_store.unblock(connection, [Unblock(left, run, '{"a": 1.0}')])
        row = await connection.fetchrow("select * from horai.instance_live where id = $1", left)

        assert row is not None
        assert woken == Claimable(left, row["lane"], row["due"])
        assert row["lane"] == await connection.fetchval("select lane_id from horai.job where name = 'left'")
        assert before <= row["due"] == row["execute_time"]
        assert (row["state"], row["payload"], row["events"]) == (0, '{"a": 1.0}', 1)
        event = await connection.fetchrow("select seq, kind, data from horai.event where instance_id = $1", left)
        assert event is not None
        assert (event["seq"], event["kind"], json.loads(event["data"])["run"]) == (1, "INSTANCE_UNBLOCKED", str(run))


async def test_an_unblocked_instance_of_a_paused_job_is_parked(url: str, connection: Platform):
    async with make.scope(url) as scope:
        run = await flows.start(scope, connection, await flows.workflow(scope))
        left = await flows.instance_of(connection, run, "left")
        await jobs.pause_job(scope, "left", None)

        (woken,) = await run_store.unblock(connection, [Unblock(left, run)])

        assert woken.lane == 0, "the lane that no node claims from"
        assert await connection.fetchval("select lane from horai.instance_live where id = $1", left) == 0


async def test_an_instance_that_is_gone_counts_as_dead(url: str, connection: Platform):
    async with make.scope(url) as scope:
        run = await flows.start(scope, connection, await flows.workflow(scope))
        load = await flows.instance_of(connection, run, "load")
        await connection.execute("delete from horai.instance_live where id = $1", load)
        since = await connection.fetchval("select clock_timestamp()")

        assert (await run_store.states_of(connection, [load], since))[load].state is State.DEAD
        await advance_runs(connection, [run])
        assert await flows.phase(connection, run) == "BLOCKED"


async def test_a_node_that_moves_to_history_between_the_two_looks_is_seen(url: str, connection: Platform):
    """Live rows are read first: a row that is not there any more is in history by then."""
    async with make.scope(url) as scope:
        run = await flows.start(scope, connection, await flows.workflow(scope))
        load = await flows.instance_of(connection, run, "load")
        (claimed,) = await make.claim(connection, await make.node(connection))
        other = await connect(url, "horai test")
        async with connection.transaction():
            held = await run_store.lock_runs(connection, [run])
            await claims.finish_if_free(other, [(claimed.held, Complete('{"n": 1}'))])
            seen = await run_store.states_of(connection, [load], held[0].created_at)
        other.terminate()

        assert seen[load].state is State.SUCCESS


async def test_the_first_recorded_end_of_a_node_stays(url: str, connection: Platform):
    async with make.scope(url) as scope:
        run = await flows.start(scope, connection, await flows.workflow(scope))
        load = await flows.instance_of(connection, run, "load")
        await run_store.note_ends(connection, {load: NodeEnd(State.SUCCESS, chosen=("left",))})
        await run_store.note_ends(connection, {load: NodeEnd(State.CANCELLED, NodeCause.ITSELF)})

        (node,) = [node for node in await run_store.nodes_of_runs(connection, [run]) if node.name == "load"]
        assert (node.ended, node.cause, node.chosen) == (State.SUCCESS, None, ("left",))


async def test_a_second_decider_passes_over_a_run_that_is_held(url: str, connection: Platform):
    async with make.scope(url) as scope:
        run = await flows.start(scope, connection, await flows.workflow(scope))
        other = await connect(url, "horai test")
        async with connection.transaction():
            await run_store.lock_runs(connection, [run])
            advanced = await advance_runs(other, [run])
        other.terminate()

        assert (advanced.busy, advanced.woken) == ({run}, [])


async def test_a_run_that_is_over_is_left_alone(url: str, connection: Platform):
    async with make.scope(url) as scope:
        run = await flows.start(scope, connection, await flows.workflow(scope, {"only": ()}))
        only = await flows.instance_of(connection, run, "only")
        await instances.cancel_live(connection, [only], instances.CancelReason.USER, running=True)
        await advance_runs(connection, [run])
        assert await flows.phase(connection, run) == "CANCELLED"

        again = await advance_runs(connection, [run])

        assert (again.busy, again.running, again.woken) == (set(), set(), [])
        assert await run_store.stuck_runs(connection, 0, 10, range(32)) == []


async def test_two_attempts_of_one_tick_at_once_start_one_run(url: str, connection: Platform):
    async with make.scope(url) as scope:
        made = await flows.workflow(scope)
        other = await connect(url, "horai test")
        tick = RunStart(10**6, made.job.created_at + timedelta(minutes=1), None)
        async with connection.transaction():
            first = await start_run(connection, made.job.id, tick)
            second = other.fetchval("select 1")
            assert await second == 1
        assert await start_run(other, made.job.id, tick) == []
        other.terminate()

        assert first is not None
        assert await connection.fetchval("select count(*) from horai.workflow_node") == 4


async def test_I13_verify_reports_a_child_that_was_unblocked_before_its_parents_ended(url: str, connection: Platform):
    async with make.scope(url) as scope:
        run = await flows.start(scope, connection, await flows.workflow(scope))
        assert [finding for finding in await verify(connection) if not finding.holds] == []
        await run_store.unblock(connection, [Unblock(await flows.instance_of(connection, run, "report"), run)])

        (found,) = [finding for finding in await verify(connection) if not finding.holds]
        assert (found.invariant, found.violations) == ("I13", 2)
        assert "node report" in found.examples[0]
