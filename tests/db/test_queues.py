"""Slots and lanes of queues, on a real PostgreSQL with many claimers at once."""

import asyncio
from datetime import UTC, datetime, timedelta

import make
import pytest
import rows
from databases import Superuser, fresh_database, superuser
from queue_press import QUEUE, ended, give_back, press

from horai.core.errors import PreconditionFailed
from horai.core.job import Priority
from horai.core.queue import QueueSettings, Rate
from horai.db import claim_lanes, job_lists, jobs, nodes, queues
from horai.db.isolation import isolate
from horai.db.migrate import migrations
from horai.db.verify import verify
from horai.embedded import EmbeddedPostgres
from horai.operations import jobs as accepting
from horai.operations import queues as setting
from horai.operations.scope import Scope


async def test_I14_a_claim_takes_as_many_rows_as_there_are_free_slots(url: str, connection: Superuser) -> None:
    async with press(url, connection) as queue:
        await queue.limit(5)
        node = await make.node(connection)

        first = await queue.claim(connection, node, 3)
        second = await queue.claim(connection, node, 10)
        third = await queue.claim(connection, node, 10)

        assert (len(first), len(second), third) == (3, 2, [])
        assert all(row.held.has_slot for row in first)
        held = await queues.held_slots(connection, node)
        assert sorted((i, fence) for _, i, fence in held) == sorted(ended([*first, *second]))
        states = await connection.fetchval("select count(*) from horai.instance_live where state = 1")
        assert states == 5


async def test_a_claim_of_a_limited_queue_takes_what_has_been_due_longest(url: str, connection: Superuser) -> None:
    async with press(url, connection, instances=0) as queue:
        now = datetime.now(UTC)
        ids = await make.many(queue.scope, 40, at=now - timedelta(hours=1))
        oldest = ids[-6:]
        await connection.execute(
            "update horai.instance_live set due = due - interval '1 hour' where id = any ($1::bigint[])", oldest
        )
        await queue.limit(5)

        claimed = await queue.claim(connection, await make.node(connection), 10)

        assert {row.held.id for row in claimed} < set(oldest)


async def test_freeing_gives_room_and_names_the_queue(url: str, connection: Superuser) -> None:
    async with press(url, connection) as queue:
        await queue.limit(2)
        node = await make.node(connection)
        claimed = await queue.claim(connection, node, 2)

        assert await queues.free_slots(connection, ended(claimed[:1]), node + 1) == set(), "not another node's to free"
        assert await queues.free_slots(connection, [(claimed[0].held.id, claimed[0].held.fence + 1)], node) == set()
        assert await queues.free_slots(connection, ended(claimed[:1]), node) == {queue.queue_id}
        assert await queues.free_slots(connection, ended(claimed[:1]), node) == set()

        assert len(await queue.claim(connection, node, 5)) == 1


async def test_a_fenced_node_takes_no_slot(url: str, connection: Superuser) -> None:
    async with press(url, connection) as queue:
        await queue.limit(2)
        node = await make.node(connection)
        await connection.execute("update horai.node set fenced_at = clock_timestamp() where incarnation = $1", node)

        assert await queue.claim(connection, node, 5) == []
        assert await queue.taken() == 0


async def test_a_dead_nodes_slots_are_freed(url: str, connection: Superuser) -> None:
    async with press(url, connection) as queue:
        await queue.limit(4)
        dead, alive = await make.node(connection), await make.node(connection)
        await queue.claim(connection, dead, 3)
        await queue.claim(connection, alive, 1)

        assert await queues.free_slots_of_node(connection, dead) == {queue.queue_id}

        assert await queue.taken() == 1
        assert await queues.free_slots_adrift(connection) == set()


async def test_a_slot_that_came_after_its_nodes_rescue_is_freed_and_found(url: str, connection: Superuser) -> None:
    async with press(url, connection) as queue:
        await queue.limit(4)
        dead = await make.node(connection)
        await queue.claim(connection, dead, 3)
        await nodes.stop_node(connection, dead)
        await nodes.mark_rescued(connection, dead)
        await connection.execute("update horai.queue_slot set taken_at = taken_at - interval '1 hour'")

        assert "S5" in {finding.invariant for finding in await verify(connection) if not finding.holds}
        assert await queues.free_slots_adrift(connection) == {queue.queue_id}

        assert await queue.taken() == 0


async def test_lowering_a_limit_lets_nothing_start_until_less_runs(url: str, connection: Superuser) -> None:
    async with press(url, connection) as queue:
        await queue.limit(5)
        node = await make.node(connection)
        claimed = await queue.claim(connection, node, 5)

        lowered = await queue.limit(2)

        assert lowered.running == 5
        for row in claimed[:3]:  # in the order in which they end, kept or retired
            await queues.free_slots(connection, ended([row]), node)
            assert await queue.claim(connection, node, 5) == []
        await queues.free_slots(connection, ended(claimed[3:4]), node)
        assert len(await queue.claim(connection, node, 5)) == 1
        assert await queue.taken() == 2


async def test_lowering_drops_free_slots_first_and_raising_brings_retired_ones_back(
    url: str, connection: Superuser
) -> None:
    async with press(url, connection) as queue:
        await queue.limit(6)
        claimed = await queue.claim(connection, await make.node(connection), 3)

        await queue.limit(2)
        assert sorted(await queue.slots()) == [(True, False), (True, False), (True, True)]

        await queue.limit(4)
        assert sorted(await queue.slots()) == [(False, False), (True, False), (True, False), (True, False)]

        await queue.limit(None)
        assert await queue.slots() == [(True, True)] * 3
        await queues.free_slots(connection, ended(claimed), claimed[0].held.node)
        assert await queue.slots() == []


async def test_a_first_limit_counts_what_already_runs(url: str, connection: Superuser) -> None:
    async with press(url, connection) as queue:
        node = await make.node(connection)
        claimed = await queue.claim_freely(connection, node)
        assert len(claimed) > 5

        limited = await queue.limit(3)

        assert limited.running == len(claimed)
        assert await queue.claim(connection, node, 5) == []
        for count, row in enumerate(claimed, start=1):
            await give_back(connection, [row], node)
            started = await queue.claim(connection, node, 5)
            assert bool(started) == (len(claimed) - count < 3)
            if started:
                break
        assert await queue.taken() == 3


async def test_a_first_limit_waits_for_the_claims_under_way(url: str, connection: Superuser) -> None:
    """A claim that began without a limit ends before the limit holds: what it made RUNNING is counted."""
    async with press(url, connection) as queue, rows.connections(url, 1) as (other,):
        node = await make.node(connection)
        claiming = other.transaction()
        await claiming.start()
        claimed = await queue.claim_freely(other, node)

        limiting = asyncio.create_task(queue.limit(3))
        await rows.until(lambda: _is_waited_for(connection, other))
        assert await queue.claim_freely(connection, node) == [], "nothing goes in behind its back"
        await claiming.commit()

        assert (await limiting).running == len(claimed)


async def _is_waited_for(watcher: Superuser, blocker: Superuser) -> bool:
    return await watcher.fetchval(
        "select exists (select from pg_stat_activity where $1 = any (pg_blocking_pids(pid)))", blocker.get_server_pid()
    )


async def test_a_claim_without_slots_gets_nothing_from_a_limited_or_paused_queue(
    url: str, connection: Superuser
) -> None:
    async with press(url, connection) as queue:
        node = await make.node(connection)
        await queue.limit(3)
        assert await queue.claim_freely(connection, node) == []

        await queue.limit(3, paused=True)
        assert await queue.claim(connection, node, 5) == []

        await queue.limit(None, paused=True)
        assert await queue.claim_freely(connection, node) == []

        await queue.limit(None)
        assert await queue.claim_freely(connection, node) != []


async def test_a_claim_that_read_the_queue_before_its_change_takes_no_slot_after_it(
    url: str, connection: Superuser
) -> None:
    """Such a claim is held up between its look at the queue and its look at the slots: by the lock on its node."""
    async with press(url, connection) as queue, rows.connections(url, 2) as (fencer, claimer):
        await queue.limit(5)
        node = await make.node(connection)
        async with fencer.transaction():
            await fencer.execute("select from horai.node where incarnation = $1 for update", node)
            claiming = asyncio.create_task(queue.claim(claimer, node, 5))
            await rows.until_blocked(connection, claimer)
            await queue.limit(2)

        assert await claiming == []
        assert len(await queue.claim(connection, node, 5)) == 2


async def test_jobs_without_a_priority_follow_their_queue_and_no_row_moves(url: str, connection: Superuser) -> None:
    async with press(url, connection) as queue:
        stated = await make.job(queue.scope, "stated", queue=QUEUE, priority="low")
        before = await connection.fetch("select id, lane, due from horai.instance_live order by id")

        await queue.limit(None, priority=Priority.core)
        late = await make.job(queue.scope, "late", queue=QUEUE, target={"type": "worker", "handler": "h"})

        priorities = {row.name: row.priority for row in await _all_jobs(queue.scope, connection)}
        assert priorities == {"publish": Priority.core, "stated": Priority.low, "late": Priority.core}
        found = {lane.id: lane.priority for lane in await claim_lanes.lanes(connection)}
        assert (found[queue.lane], found[stated.lane_id], found[late.lane_id]) == (
            Priority.core, Priority.low, Priority.core,
        )  # fmt: skip
        assert await connection.fetch("select id, lane, due from horai.instance_live order by id") == before

        await queue.limit(None)
        assert {lane.priority for lane in await claim_lanes.lanes(connection)} == {Priority.normal, Priority.low}


async def _all_jobs(scope: Scope, connection: Superuser) -> list[jobs.JobRow]:
    return await job_lists.list_jobs(connection, scope.tenant_id, 0, 100, job_lists.JobFilter())


async def test_a_job_that_states_its_priority_leaves_its_queues_lane_and_comes_back(
    url: str, connection: Superuser
) -> None:
    async with press(url, connection, instances=3) as queue:
        await queue.limit(None, priority=Priority.high)

        stated = await accepting.change_job(queue.scope, "publish", accepting.JobChange({"priority": "high"}))
        assert stated.lane_id != queue.lane
        assert await _lanes_of_rows(connection) == {stated.lane_id}

        paused = await accepting.pause_job(queue.scope, "publish", None)
        assert (paused.document["priority"], paused.priority) == ("high", Priority.high)
        await accepting.resume_job(queue.scope, "publish", None)

        unstated = await accepting.change_job(queue.scope, "publish", accepting.JobChange({"priority": None}))
        assert "priority" not in unstated.document
        assert await _lanes_of_rows(connection) == {queue.lane}


async def _lanes_of_rows(connection: Superuser) -> set[int]:
    return {row["lane"] for row in await connection.fetch("select lane from horai.instance_live")}


async def test_a_lane_that_is_made_while_its_queue_changes_has_the_new_priority(
    url: str, connection: Superuser
) -> None:
    async with press(url, connection) as queue, rows.connections(url, 1) as (changer,):
        async with changer.transaction():
            await queues.lock_queue(changer, 1, QUEUE)
            making = asyncio.create_task(make.job(queue.scope, "new", queue=QUEUE, target={"type": "worker"}))
            await rows.until(lambda: _is_waited_for(connection, changer))
            await queues.write_queue(changer, queue.queue_id, QueueSettings(priority=Priority.core))

        assert (await making).priority is Priority.core


async def test_two_jobs_that_open_a_queue_at_once_share_it(url: str, connection: Superuser) -> None:
    async with make.scope(url) as scope:
        made = await asyncio.gather(*(make.job(scope, f"job-{n}", queue="fresh") for n in range(8)))

        assert len({job.lane_id for job in made}) == 1
        assert await connection.fetchval("select count(*) from horai.queue") == 1


async def test_a_change_is_told_in_its_transaction_and_an_old_version_changes_nothing(
    url: str, connection: Superuser
) -> None:
    async with make.scope(url) as scope:
        first = await setting.set_queue(
            scope, "fresh", QueueSettings(max_concurrency=3, rate=Rate(5, timedelta(hours=1)))
        )
        assert first.version == 1

        with pytest.raises(PreconditionFailed, match="has version 1, not 0"):
            await setting.set_queue(scope, "fresh", QueueSettings(), if_version=0)

        told = await connection.fetch("select kind, data::text from horai.event where job_id is null")
        assert [(row["kind"], row["data"]) for row in told] == [
            (
                "QUEUE_CHANGED",
                '{"name": "fresh", "priority": "normal", "maxConcurrency": 3, "rate": "5/h", "paused": false, "version": 1}',
            )
        ]
        assert (await setting.read_queue(scope, "fresh")).settings == first.settings


async def test_weights_of_tenants_are_one_unless_set(connection: Superuser) -> None:
    assert await connection.fetchval("select weight from horai.tenant where name = 'default'") == 1


def test_a_store_from_before_queues_keeps_its_lanes_and_its_priorities(postgres: EmbeddedPostgres) -> None:
    """Then every definition had a priority written down: what was `normal` counts as not stated."""

    async def grow(url: str) -> None:
        connection = await superuser(url)
        await connection.execute("create schema horai")
        for migration in migrations():
            if migration.name == "queues":
                await connection.execute(BEFORE_QUEUES)
            whole = [migration.text] if migration.in_transaction else [each.text for each in migration.statements()]
            for text in whole:
                await connection.execute(text)
        await isolate(connection)
        async with make.scope(url) as scope:
            found = {row.name: (row.lane_id, row.priority.name) for row in await _all_jobs(scope, connection)}
            assert found == {"a": (1, "normal"), "b": (2, "core")}
            again = await make.job(scope, "c", queue="old")
            await setting.set_queue(scope, "old", QueueSettings(priority=Priority.high))
            found = {row.name: row.priority.name for row in await _all_jobs(scope, connection)}
        assert again.lane_id == 1
        assert found == {"a": "high", "b": "core", "c": "high"}
        await connection.close()

    with fresh_database(postgres, "template1") as url:
        asyncio.run(grow(url))


BEFORE_QUEUES = """
insert into horai.lane (tenant_id, queue, priority, handler) values (1, 'old', 2, ''), (1, 'old', 0, '');
insert into horai.job (tenant_id, name, lane_id, definition) values
    (1, 'a', 1, '{"name": "a", "queue": "old", "priority": "normal"}'),
    (1, 'b', 2, '{"name": "b", "queue": "old", "priority": "core"}');
"""
