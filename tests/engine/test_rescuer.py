"""The rescuer, step by step: what dead nodes held is tried again, with one more loss and no more failures."""

from datetime import timedelta

import make
import rows
from collector import Sent
from stages import workbench

from faults.outside import violations
from horai.core.limits import SHARDS
from horai.core.outcome import Complete
from horai.core.trace_context import InstanceTraces
from horai.core.wakes import QueueWake
from horai.db import nodes
from horai.engine.settler import Settlement
from horai.operations.traces import Traces


async def test_B17_instances_of_a_dead_node_fail_and_are_due_again(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 3)
        await make.claim(bench.connection, await make.node(bench.connection, timedelta(seconds=0.05)))
        await rows.until(
            lambda: bench.connection.fetchval("select exists (select from horai.node where lease_until < now())")
        )

        await bench.rescuer().step(bench.clock.now())

        assert await bench.states() == {"FAIL": 3}
        found = await bench.connection.fetchrow(
            "select retry_count, lost, error_code, node, due > now() as later from horai.instance_live"
        )
        assert found is not None
        assert tuple(found) == (0, 1, "NODE_LOST", None, True)
        told = await bench.connection.fetch("select outcome, error_code from horai.attempt")
        assert [tuple(row) for row in told] == [("LOST", "NODE_LOST")] * 3
        assert await violations(bench.connection) == []


async def test_a_lost_attempt_is_settled_in_its_trace(url: str):
    sent, ids = Sent(), InstanceTraces(b"c" * 16)
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 1)
        node = await make.node(bench.connection)
        (held,) = await make.claim(bench.connection, node)
        await bench.connection.execute("update horai.node set lease_until = now() where incarnation = $1", node)
        rescuer = bench.rescuer()
        rescuer.traces = Traces(ids, sent.queue)

        await rescuer.step(bench.clock.now())

    (settled,) = sent.all()
    assert settled.parent == ids.root(held.held.id)
    assert settled.attributes["horai.state"] == "FAIL"
    assert settled.attributes["error.type"] == "NODE_LOST"


async def test_B17_an_instance_that_is_lost_more_often_than_maxLost_becomes_a_dead_letter(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope, retry={"maxRetry": 0, "maxLost": 5})
        await make.many(bench.scope, 1)
        rescuer = bench.rescuer()
        for loss in range(1, 7):
            await bench.connection.execute("update horai.instance_live set due = clock_timestamp()")
            node = await make.node(bench.connection)
            assert len(await make.claim(bench.connection, node)) == 1
            await bench.connection.execute("update horai.node set lease_until = now() where incarnation = $1", node)

            await rescuer.step(bench.clock.now())

            assert await bench.states() == {"FAIL" if loss < 6 else "DEAD": 1}
        letter = await bench.connection.fetchrow("select error_code, tags from horai.dead_letter")
        assert letter is not None
        assert (letter["error_code"], letter["tags"]) == ("NODE_LOST", ["transient_error", "crash_loop"])
        assert await bench.connection.fetchval("select retry_count from horai.instance_history") == 0
        assert await bench.connection.fetchval("select count(*) from horai.attempt where outcome = 'LOST'") == 6


async def test_B17_more_than_a_page_is_rescued_in_one_step(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 1203)
        node = await make.node(bench.connection)
        assert len(await make.claim(bench.connection, node)) == 1203
        await nodes.stop_node(bench.connection, node)

        await bench.rescuer().step(bench.clock.now())

        assert await bench.states() == {"FAIL": 1203}
        assert await bench.connection.fetchval(
            "select rescued_at is not null from horai.node where incarnation = $1", node
        )
        assert await rows.nodes_to_rescue(bench.connection) == []


async def test_a_row_locked_by_another_transaction_is_rescued_by_a_later_step(url: str):
    async with workbench(url) as bench, rows.connections(url, 1) as (holder,):
        await make.job(bench.scope)
        ids = await make.many(bench.scope, 3)
        node = await make.node(bench.connection)
        await make.claim(bench.connection, node)
        await nodes.stop_node(bench.connection, node)
        rescuer = bench.rescuer()
        async with holder.transaction():
            await holder.execute("select from horai.instance_live where id = $1 for update", ids[1])
            await rescuer.step(bench.clock.now())
            assert await bench.states() == {"FAIL": 2, "RUNNING": 1}
            assert await rows.nodes_to_rescue(bench.connection) == [node]

        await rescuer.step(bench.clock.now())

        assert await bench.states() == {"FAIL": 3}
        assert await rows.nodes_to_rescue(bench.connection) == []


async def test_a_live_node_is_left_alone_and_so_is_our_own(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 2)
        alive = await make.node(bench.connection)
        await make.claim(bench.connection, alive)
        await bench.connection.execute(
            "update horai.node set lease_until = now() where incarnation = $1", bench.lease.incarnation
        )

        await bench.rescuer().step(bench.clock.now())

        assert await bench.states() == {"RUNNING": 2}
        assert await rows.nodes_to_rescue(bench.connection) == []


async def test_X17_the_word_of_a_rescued_node_is_kept_as_late(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 1)
        paused = await make.node(bench.connection)
        (old,) = await make.claim(bench.connection, paused)
        await bench.connection.execute("update horai.node set lease_until = now() where incarnation = $1", paused)
        await bench.rescuer().step(bench.clock.now())
        await bench.connection.execute("update horai.instance_live set due = clock_timestamp()")
        (new,) = await make.claim(bench.connection, await make.node(bench.connection))

        bench.settler.submit(Settlement(old.held, Complete()))
        await bench.settler.step(bench.clock.now())

        assert await bench.states() == {"RUNNING": 1}
        assert (new.held.attempt, new.held.fence) == (2, 2)
        assert bench.health.late_results == 1
        assert await make.claim(bench.connection, paused) == [], "nor does it claim any more"


# Ownership


async def test_every_node_fences_but_only_the_owner_of_its_shard_rescues(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 3)
        dead = await make.node(bench.connection)
        await make.claim(bench.connection, dead)
        await bench.connection.execute("update horai.node set lease_until = now() where incarnation = $1", dead)
        everything = bench.lease.owned

        bench.lease.owned = everything - {dead % SHARDS}
        await bench.rescuer().step(bench.clock.now())
        assert await bench.states() == {"RUNNING": 3}
        assert await rows.nodes_to_rescue(bench.connection) == [dead], "fenced: it claims nothing more"

        bench.lease.owned = frozenset({dead % SHARDS})
        await bench.rescuer().step(bench.clock.now())
        assert await bench.states() == {"FAIL": 3}
        assert await rows.nodes_to_rescue(bench.connection) == []


async def test_fencing_wakes_the_others_as_one_of_them_may_have_to_rescue(url: str):
    async with workbench(url) as bench, rows.connections(url, 1) as (listening,):
        heard: list[str] = []
        await listening.add_listener("horai_wake", lambda *said: heard.append(str(said[3])))
        rescuer = bench.rescuer()
        await rescuer.step(bench.clock.now())
        dead = await make.node(bench.connection)
        await rows.until(lambda: _has(heard, "n"))
        heard.clear()
        await bench.connection.execute("update horai.node set lease_until = now() where incarnation = $1", dead)

        await rescuer.step(bench.clock.now())

        await rows.until(lambda: _has(heard, "n"))


async def _has(heard: list[str], word: str) -> bool:
    return word in heard


async def test_nothing_is_asked_again_before_the_sweep_unless_something_is_left(url: str):
    async with workbench(url) as bench, rows.connections(url, 1) as (holder,):
        rescuer = bench.rescuer()
        now = bench.clock.now()
        assert await rescuer.step(now) == now + bench.settings.sweep

        await make.job(bench.scope)
        (locked,) = await make.many(bench.scope, 1)
        node = await make.node(bench.connection)
        await make.claim(bench.connection, node)
        await nodes.stop_node(bench.connection, node)
        async with holder.transaction():
            await holder.execute("select from horai.instance_live where id = $1 for update", locked)
            assert await rescuer.step(now) == now + bench.settings.rescue

        assert await rescuer.step(now) == now + bench.settings.sweep


async def test_the_slots_of_a_dead_node_are_free_after_its_rescue_and_their_queues_hear_of_it(url: str):
    async with workbench(url) as bench:
        queue = await bench.connection.fetchval(
            "insert into horai.queue (tenant_id, name, max_concurrency) values (1, 'mail', 1) returning id"
        )
        dead = await make.node(bench.connection)
        await bench.connection.execute(
            "insert into horai.queue_slot (tenant_id, queue_id, n, instance_id, fence, node, version) values (1, $1, 1, 7, 1, $2, 0)",
            queue,
            dead,
        )
        changed: list[int] = []
        bench.scope.wakeups.subscribe(QueueWake, lambda wake: changed.append(wake.queue_id))
        await nodes.stop_node(bench.connection, dead)

        await bench.rescuer().step(bench.clock.now())

        assert changed == [queue]
        assert await bench.connection.fetchval("select count(*) from horai.queue_slot where node is not null") == 0
