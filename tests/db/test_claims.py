"""Claims as PostgreSQL carries them out: which rows they take, and which nodes may claim."""

import asyncio
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import asyncpg
import make
import pytest
import rows

from horai.core.outcome import Release, RetryAt
from horai.core.queue import QueueSettings
from horai.core.states import CLAIMABLE, State
from horai.db import claims, nodes
from horai.db.claims import ClaimedBy, Position
from horai.db.pool import Platform
from horai.operations import queues

LATER = timedelta(seconds=30)


def claimed_by(node: int, claim: int = 1) -> ClaimedBy:
    return ClaimedBy(node, claim, datetime.now(UTC))


# Which rows a claim takes


async def four_lanes(connection: Platform) -> None:
    """Lanes 1 to 4, each of a queue of its own."""
    await connection.execute(
        "insert into horai.lane (tenant_id, queue, priority, handler) select 1, 'q' || n, 2, '' from generate_series(1, 4) n"
    )
    assert await make.lanes(connection) == [1, 2, 3, 4]


async def scatter(connection: Platform, dice: random.Random, count: int) -> None:
    """Rows over states, shards, lanes and times, some with an equal due."""
    moments = [timedelta(seconds=dice.choice([-900, -60, -60, -5, -1, 600, 90_000])) for _ in range(count)]
    states = [dice.choice([State.INIT, State.INIT, State.FAIL, State.RUNNING, State.BLOCKED]) for _ in range(count)]
    await connection.execute(
        """
        insert into horai.instance_live (id, job_id, due, fire_time, execute_time, born_for, slot, tenant_id, lane, shard, state,
            node, claim, claimed_at, retry_count)
        select nextval('horai.instance_id'), 1, date_trunc('second', now()) + moment, now(), now(), now(), -n, 1, lane, shard, state,
            case when state = 1 then 7 end, case when state = 1 then 7 end, case when state = 1 then now() end, 1
        from unnest($1::interval[], $2::smallint[], $3::integer[], $4::smallint[]) with ordinality as r(moment, state, lane, shard, n)
        """,
        moments,
        [int(state) for state in states],
        [dice.randrange(5) for _ in range(count)],
        [dice.randrange(3) for _ in range(count)],
    )


def expected(
    found: Sequence[asyncpg.Record], positions: Sequence[Position], limits: Sequence[int], now: datetime
) -> set[int]:
    """Return the ids that the requirement asks for, computed row by row."""
    taken: set[int] = set()
    for position, limit in zip(positions, limits, strict=True):
        head = sorted(
            (row["due"], row["id"])
            for row in found
            if (row["shard"], row["lane"]) == (position.shard, position.lane)
            and State(row["state"]) in CLAIMABLE
            and row["due"] <= now
            and (row["due"], row["id"]) > (position.due, position.id)
        )
        taken |= {instance_id for _, instance_id in head[:limit]}
    return taken


@pytest.mark.parametrize("seed", range(4))
async def test_B2_a_claim_takes_exactly_what_waits_or_failed_and_is_due(connection: Platform, seed: int):
    dice = random.Random(seed)
    node = await make.node(connection)
    await four_lanes(connection)
    await connection.execute("update horai.queue set paused = true where name = 'q4'")
    await scatter(connection, dice, 300)
    for _ in range(8):
        found = await connection.fetch("select id, due, shard, lane, state from horai.instance_live")
        now = await nodes.database_time(connection)
        places = dice.sample([(shard, lane) for shard in range(3) for lane in range(1, 5)], dice.randrange(1, 12))
        cursors = [dice.choice([(make.LONG_AGO, -1), *((r["due"], r["id"]) for r in found)]) for _ in places]
        positions = [Position(*place, *cursor) for place, cursor in zip(places, cursors, strict=True)]
        limits = [dice.choice([1, 3, 1000]) for _ in places]
        open_to = [limit if position.lane != 4 else 0 for position, limit in zip(positions, limits, strict=True)]

        claimed = await claims.claim_due(connection, claimed_by(node), positions, limits)

        assert {row.held.id for row in claimed} == expected(found, positions, open_to, now)
        before = {row["id"]: row for row in found}
        assert all((row.due, row.lane) == (before[row.held.id]["due"], before[row.held.id]["lane"]) for row in claimed)


@pytest.mark.parametrize("seed", range(2))
async def test_the_next_due_times_of_a_scan_are_the_earliest_claimable_ones_after_its_cursor(
    connection: Platform, seed: int
):
    dice = random.Random(seed)
    await scatter(connection, dice, 200)
    found = await connection.fetch("select id, due, shard, lane, state from horai.instance_live")
    cursors = [dice.choice([(make.LONG_AGO, -1), *((r["due"], r["id"]) for r in found)]) for _ in range(9)]
    places = [(shard, lane) for shard in range(3) for lane in range(1, 4)]
    positions = [Position(*place, *cursor) for place, cursor in zip(places, cursors, strict=True)]
    positions.append(Position(7, 1, make.LONG_AGO, -1))  # where nothing is

    upcoming = await claims.next_due(connection, positions, 3)

    due = {row["id"]: row["due"] for row in found}
    far = datetime(9999, 1, 1, tzinfo=UTC)
    heads = {(p.shard, p.lane): sorted(due[i] for i in expected(found, [p], [3], far)) for p in positions}
    assert sorted(upcoming) == sorted((*place, coming) for place, coming in heads.items() if coming)
    assert len(upcoming) > 0


async def test_B2_nothing_is_claimed_before_its_time(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.many(scope, 3, at=datetime.now(UTC) + timedelta(minutes=5))

        assert await make.claim(connection, await make.node(connection)) == []


async def test_each_scan_gives_as_many_rows_as_it_is_asked_for_the_longest_due_first(connection: Platform):
    await four_lanes(connection)
    ids = {lane: [(await rows.instance(connection, State.INIT, lane=lane)).id for _ in range(3)] for lane in (1, 2, 3)}
    positions = [Position(0, lane, make.LONG_AGO, -1) for lane in (1, 2, 3)]

    claimed = await claims.claim_due(connection, claimed_by(await make.node(connection)), positions, [2, 0, 5])

    assert sorted(row.held.id for row in claimed) == sorted([*ids[1][:2], *ids[3]])


async def test_one_claim_over_many_queues_passes_over_those_that_are_limited_or_paused(url: str, connection: Platform):
    async with make.scope(url) as scope:
        jobs = {name: await make.job(scope, name, queue=name) for name in ("open", "limited", "paused")}
        for name in jobs:
            await make.many(scope, 5, job=name)
        await queues.set_queue(scope, "limited", QueueSettings(max_concurrency=3))
        await queues.set_queue(scope, "paused", QueueSettings(paused=True))

        claimed = await make.claim(connection, await make.node(connection))

        assert {row.lane for row in claimed} == {jobs["open"].lane_id}
        assert len(claimed) == 5
        assert not any(row.held.has_slot for row in claimed)


async def test_a_claim_brings_the_row_as_it_is(url: str, connection: Platform):
    """Its three times are one when it is born; a reschedule and a retry tell them apart."""
    async with make.scope(url) as scope:
        await make.job(scope)
        node = await make.node(connection)
        for minutes in (3, 2):
            await make.put(scope, "article:42", datetime.now(UTC) - timedelta(minutes=minutes), payload={"n": 1})
        (first,) = await make.claim(connection, node)
        await claims.fail_if_running(connection, [(first.held, RetryAt(timedelta(0), "X", "x"))])
        (claimed,) = await make.claim(connection, node)

        row = await connection.fetchrow("select * from horai.instance_live")
        assert row is not None
        for name in ("lane", "due", "slot", "key", "fire_time", "execute_time", "born_for", "payload"):
            assert getattr(claimed, name) == row[name], name
        for name in ("id", "job_id", "attempt", "fence", "node", "retry_count"):
            assert getattr(claimed.held, name) == row[name], name
        assert len({claimed.born_for, claimed.fire_time, claimed.execute_time}) == 3
        assert claimed.shard == row["shard"]
        assert claimed.has_large_payload is False


async def test_a_claim_counts_the_attempt_and_raises_the_fence(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope)
        claimed = await make.running(scope, connection)
        await claims.release_if_running(connection, [(claimed.held, Release())])
        (again,) = await make.claim(connection, claimed.held.node)

        assert (claimed.held.attempt, claimed.held.fence) == (1, 1)
        assert (again.held.attempt, again.held.fence) == (1, 2), "a claim that started no call is no attempt"
        assert again.held.retry_count == 0
        assert (again.born_for, again.slot) == (claimed.born_for, claimed.slot), "what its idempotency key is made of"


async def test_B3_eight_concurrent_claimers_share_the_rows_and_wait_for_no_lock(url: str, connection: Platform):
    async with make.scope(url) as scope, rows.connections(url, 8, lock_timeout=2) as claimers:
        await make.job(scope)
        ids = set(await make.many(scope, 2000))
        held = set(random.Random(1).sample(sorted(ids), 500))
        node = await make.node(connection)
        async with connection.transaction():
            await connection.execute(
                "select from horai.instance_live where id = any($1::bigint[]) for update", list(held)
            )

            taken = await asyncio.gather(*(_drain(each, node, number) for number, each in enumerate(claimers)))

        flat = [instance_id for each in taken for instance_id in each]
        assert len(flat) == len(set(flat)), "a row was claimed twice"
        assert set(flat) == ids - held
        assert {row.held.id for row in await make.claim(connection, node)} == held


async def _drain(connection: Platform, node: int, number: int) -> list[int]:
    found: list[int] = []
    while claimed := await make.claim(connection, node, per_lane=3, claim_id=number):
        found += [row.held.id for row in claimed]
    return found


async def test_B4_a_claimed_row_is_running_at_commit_and_not_before(url: str, connection: Platform):
    async with make.scope(url) as scope, rows.connections(url, 1) as (other,):
        await make.job(scope)
        (instance,) = await make.many(scope, 1)
        node = await make.node(connection)
        async with other.transaction():
            assert len(await make.claim(other, node)) == 1
            assert await make.state(connection, instance) == "INIT"
        assert await make.state(connection, instance) == "RUNNING"
        owner = await connection.fetchrow("select node, claim, claimed_at, attempt, fence from horai.instance_live")
        assert owner is not None
        assert (owner["node"], owner["claim"], owner["attempt"], owner["fence"]) == (node, 1, 1, 1)
        assert owner["claimed_at"] is not None


async def test_B4_a_crash_before_the_commit_has_claimed_nothing(url: str, connection: Platform):
    async with make.scope(url) as scope, rows.connections(url, 1) as (doomed,):
        await make.job(scope)
        await make.many(scope, 5)
        node = await make.node(connection)
        before = await rows.everything(connection)
        await doomed.execute("begin")
        assert len(await make.claim(doomed, node)) == 5
        await connection.execute("select pg_terminate_backend($1)", doomed.get_server_pid())

        await rows.until(
            lambda: connection.fetchval(
                "select count(*) = 5 from (select from horai.instance_live for update skip locked) r"
            )
        )

        assert await rows.everything(connection) == before


# The node's right to claim


async def due_instance(url: str) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.many(scope, 1)


@pytest.mark.parametrize("column", ["fenced_at", "stopped_at"])
async def test_a_fenced_or_stopped_node_claims_nothing(url: str, connection: Platform, column: str):
    await due_instance(url)
    node = await make.node(connection)
    await connection.execute(f"update horai.node set {column} = now() where incarnation = $1", node)

    assert await make.claim(connection, node) == []
    assert await make.claim(connection, node + 1) == [], "nor does one that never registered"
    assert len(await make.claim(connection, await make.node(connection))) == 1


async def test_a_fence_under_way_makes_the_claim_wait_and_claim_nothing(url: str, connection: Platform):
    await due_instance(url)
    node = await make.node(connection, lease=timedelta(0))
    async with rows.connections(url, 2) as (fencing, claiming):
        async with fencing.transaction():
            assert (await nodes.find_lost_nodes(fencing, 0)).fenced == [node]
            claim = asyncio.create_task(make.claim(claiming, node))
            await rows.until_blocked(connection, claiming)

        assert await claim == []


async def test_a_claim_under_way_is_not_fenced_before_it_is_visible(url: str, connection: Platform):
    await due_instance(url)
    node = await make.node(connection, lease=timedelta(0))
    async with rows.connections(url, 1) as (claiming,):
        async with claiming.transaction():
            assert len(await make.claim(claiming, node)) == 1
            assert (await nodes.find_lost_nodes(connection, 0)).fenced == []

        assert (await nodes.find_lost_nodes(connection, 0)).fenced == [node]
        assert len(await claims.running_of_node(connection, node, 0, 10)) == 1


async def test_a_node_does_not_stop_under_its_own_claim(url: str, connection: Platform):
    """Otherwise a rescue between stop and claim would find nothing, and never look again."""
    await due_instance(url)
    node = await make.node(connection)
    async with rows.connections(url, 2) as (claiming, stopping):
        async with claiming.transaction():
            assert len(await make.claim(claiming, node)) == 1
            stop = asyncio.create_task(nodes.stop_node(stopping, node))
            await rows.until_blocked(connection, stopping)
        await stop

        assert await rows.nodes_to_rescue(connection) == [node]
        assert len(await claims.running_of_node(connection, node, 0, 10)) == 1


async def test_a_renewal_does_not_wait_for_a_claim(url: str, connection: Platform):
    await due_instance(url)
    node = await make.node(connection)
    async with rows.connections(url, 2, lock_timeout=2) as (claiming, renewing):
        async with claiming.transaction():
            await make.claim(claiming, node)

            assert await nodes.renew_node(renewing, node, LATER) is not None


async def test_a_fenced_or_stopped_node_cannot_renew(connection: Platform):
    fenced, stopped = await make.node(connection, lease=timedelta(0)), await make.node(connection)
    await nodes.find_lost_nodes(connection, 0)
    await nodes.stop_node(connection, stopped)

    assert await nodes.renew_node(connection, fenced, LATER) is None
    assert await nodes.renew_node(connection, stopped, LATER) is None
    assert sorted(await rows.nodes_to_rescue(connection)) == [fenced, stopped]
    assert await nodes.live_nodes(connection) == []


async def test_a_node_fences_everyone_late_but_itself(connection: Platform):
    own, late, alive = [await make.node(connection, lease=timedelta(seconds=s)) for s in (0, 0, 60)]

    assert (await nodes.find_lost_nodes(connection, own)).fenced == [late]
    assert [node.incarnation for node in await nodes.live_nodes(connection)] == [alive]
