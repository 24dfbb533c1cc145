"""Concurrency keys in the database: claims that race, rows that wait, releases, and the functions of SQL clients."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import asyncpg
import clients
import make
import pytest
import rows
from databases import Superuser
from keyed_claims import JOB, add, claim, positions

from horai.core.limits import SHARDS
from horai.core.outcome import Complete, RetryAt
from horai.core.queue import QueueSettings
from horai.core.states import CancelReason
from horai.db import claim_lanes, claims, concurrency_keys, instances, queues
from horai.db.claims import ClaimedBy, ClaimedRow, Position
from horai.db.concurrency_keys import FIRST_KEY
from horai.db.pool import Platform, connect
from horai.db.verify import verify
from horai.operations import jobs as accepted
from horai.operations import queues as setting

SOME_TIME = timedelta(minutes=5)


async def finish(connection: Platform, claimed: Sequence[ClaimedRow]) -> None:
    for row in claimed:
        await claims.finish_if_running(connection, row.held.node, [(row.held, Complete())])


async def waiting(connection: Platform) -> list[int]:
    return [r["id"] for r in await connection.fetch("select id from horai.instance_live where lane = 0 order by id")]


async def test_a_claim_takes_one_row_of_a_key_and_parks_the_others_oldest_first(url: str, connection: Platform) -> None:
    async with make.scope(url) as scope:
        job = await make.job(scope)
        made = await add(scope, "a", "a", "b", "a")
        plain = await make.many(scope, 3)
        node = await make.node(connection)

        claimed = await claim(connection, node)

        assert sorted(row.held.id for row in claimed) == sorted([made[0], made[2], *plain])
        keys = {row.held.id: row.held.concurrency_key for row in claimed}
        assert (keys[made[0]], keys[made[2]], keys[plain[0]]) == ("a", "b", None)
        assert (await waiting(connection), sum(claimed.parked.values())) == ([made[1], made[3]], 2)
        assert await concurrency_keys.parked_keys(connection, FIRST_KEY, 10) == [(job.id, "a")]
        assert await concurrency_keys.release_keys(connection, [(job.id, "a")]) == []
        await finish(connection, claimed)
        (released,) = await concurrency_keys.release_keys(connection, [(job.id, "a"), (job.id, "b"), (job.id, "c")])
        assert (released.id, await waiting(connection)) == (made[1], [made[3]])
        assert await concurrency_keys.release_keys(connection, [(job.id, "a")]) == [], "the released row has the place"
        assert [row.held.id for row in await claim(connection, node, 2)] == [made[1]]


async def test_rows_of_a_lane_with_keys_are_claimed_only_by_claims_that_check_them(
    url: str, connection: Platform
) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.job(scope, "other", queue="other")
        await add(scope, "a", "a")
        await make.many(scope, 2, job="other")
        node = await make.node(connection)

        assert len(await make.claim(connection, node)) == 2
        assert {lane.queue: lane.is_keyed for lane in await claim_lanes.lanes(connection)} == {
            "default": True,
            "other": False,
        }
        assert len(await claim(connection, node, 2)) == 1


async def test_claims_of_four_connections_never_run_more_than_the_limit(url: str, connection: Superuser) -> None:
    async with make.scope(url) as scope:
        job = await make.job(scope, concurrencyPerKey=2)
        await add(scope, *(f"key-{number % 3}" for number in range(120)))
        nodes = [await make.node(connection, name=f"node-{number}") for number in range(4)]
        most: list[int] = []

        async def work(node: int) -> int:
            mine = await connect(url, "horai test")
            done = 0
            try:
                for number in range(1, 200):
                    claimed = await claim(mine, node, number, each=1)
                    counts = await mine.fetch(
                        "select count(*) as n from horai.instance_live where state = 1 group by concurrency_key"
                    )
                    most.extend(row["n"] for row in counts)
                    await finish(mine, claimed)
                    keys = {(row.held.job_id, row.held.concurrency_key or "") for row in claimed}
                    await concurrency_keys.release_keys(mine, keys)
                    done += len(claimed)
                    if not claimed and not await mine.fetchval("select exists (select from horai.instance_live)"):
                        break
            finally:
                mine.terminate()
            return done

        ended = await asyncio.gather(*(work(node) for node in nodes))

        assert (sum(ended), max(most)) == (120, 2)
        assert await concurrency_keys.parked_keys(connection, FIRST_KEY, 10) == []
        assert all(finding.holds for finding in await verify(connection)), job.id


async def test_a_release_waits_for_a_claim_that_is_about_to_park_and_sees_its_row(
    url: str, connection: Platform
) -> None:
    async with make.scope(url) as scope:
        job = await make.job(scope)
        first, second = await add(scope, "a", "a")
        node = await make.node(connection)
        scans = [Position(first % SHARDS, p.lane, p.due, p.id) for p in (await positions(connection))[:1]]
        by = ClaimedBy(node, 1, datetime.now(UTC))
        held = await concurrency_keys.claim_keyed(connection, by, scans, [1])
        assert [row.held.id for row in held] == [first]

        claimer, gate = await connect(url, "horai test"), await connect(url, "horai test")
        try:
            async with claimer.transaction():
                assert (await claim(claimer, node, 2)).parked
                await finish(connection, held)
                releasing = asyncio.create_task(concurrency_keys.release_keys(gate, [(job.id, "a")]))
                await rows.until_blocked(connection, gate)
            assert [row.id for row in await releasing] == [second]
        finally:
            claimer.terminate()
            gate.terminate()


async def test_a_claim_that_is_about_to_park_is_asked_about_its_key(url: str, connection: Platform) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        await add(scope, "a", "a")
        node = await make.node(connection)
        assert not await concurrency_keys.may_keys_wait(connection)

        claimer = await connect(url, "horai test")
        try:
            async with claimer.transaction():
                assert (await claim(claimer, node)).parked
                assert await concurrency_keys.may_keys_wait(connection), "the row is not visible yet"
            assert await concurrency_keys.may_keys_wait(connection)
        finally:
            claimer.terminate()


async def test_a_claim_parks_no_row_whose_holder_ended_before_no_key_was_waited_for(
    url: str, connection: Platform
) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        await add(scope, "a")
        node = await make.node(connection)
        held = await claim(connection, node)
        (second,) = await add(scope, "a")

        claimer, gate = await connect(url, "horai test"), await connect(url, "horai test")
        try:
            async with gate.transaction():
                await finish(gate, held)
                assert not await concurrency_keys.may_keys_wait(gate)
                claiming = asyncio.create_task(claim(claimer, node, 2))
                await rows.until_blocked(connection, claimer)
            assert [row.held.id for row in await claiming] == [second]
        finally:
            claimer.terminate()
            gate.terminate()


async def test_a_limited_queue_counts_no_permit_for_a_row_that_is_parked(url: str, connection: Platform) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        queue = await setting.set_queue(scope, "default", QueueSettings(max_concurrency=3))
        await add(scope, "a", "a", "b", "b", "c")
        node = await make.node(connection)

        by = ClaimedBy(node, 1, datetime.now(UTC))
        claimed = await queues.claim_limited(connection, by, queue.id, await positions(connection), 10)
        again = await queues.claim_limited(
            connection, ClaimedBy(node, 2, by.at), queue.id, await positions(connection), 10
        )

        keys = sorted(row.held.concurrency_key or "" for row in [*claimed, *again])
        assert keys == ["a", "b", "c"][: len(keys)]
        taken = "select count(*) from horai.queue_slot where instance_id is not null"
        assert await connection.fetchval(taken) == len(keys)
        assert all(row.held.has_slot for row in claimed)


async def test_an_older_node_claims_nothing_of_a_limited_queue_with_keys(url: str, connection: Platform) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        queue = await setting.set_queue(scope, "default", QueueSettings(max_concurrency=3))
        assert await connection.fetchval("select count(*) from horai.enter_queue($1)", queue.id) == 1
        await add(scope, "a")
        assert await connection.fetchval("select count(*) from horai.enter_queue($1)", queue.id) == 0


async def test_a_retry_and_a_lost_claim_free_the_place_of_their_key(url: str, connection: Platform) -> None:
    async with make.scope(url) as scope:
        job = await make.job(scope)
        first, second = await add(scope, "a", "a")
        node = await make.node(connection)
        (row,) = await claim(connection, node)

        await claims.fail_if_running(connection, [(row.held, RetryAt(SOME_TIME, "E", "failed"))])
        (released,) = await concurrency_keys.release_keys(connection, [(job.id, "a")])
        assert (row.held.id, released.id) == (first, second)
        (running,) = await claims.running_of_node(connection, node, 0, 10) or await claim_again(connection, node)
        assert running.held.id == second


async def claim_again(connection: Platform, node: int) -> Sequence[claims.RunningRow]:
    await claim(connection, node, 2)
    found = await claims.running_of_node(connection, node, 0, 10)
    assert [row.held.concurrency_key for row in found] == ["a"]
    return found


async def test_waiting_rows_stay_parked_while_their_job_is_paused_and_are_cancelled_with_it(
    url: str, connection: Platform
) -> None:
    async with make.scope(url) as scope:
        job = await make.job(scope)
        await add(scope, "a", "a", "b")
        node = await make.node(connection)
        claimed = await claim(connection, node)
        await accepted.pause_job(scope, JOB, None)
        await finish(connection, claimed)
        await add(scope, "c")
        assert len(await waiting(connection)) == 2
        assert await concurrency_keys.release_keys(connection, [(job.id, "a"), (job.id, "c")]) == []
        await accepted.resume_job(scope, JOB, None)
        assert len(await waiting(connection)) == 2, "the key gate releases them, as many as there are places"
        assert len(await concurrency_keys.release_keys(connection, [(job.id, "a"), (job.id, "c")])) == 2
        await accepted.delete_job(scope, JOB)
        assert await connection.fetchval("select count(*) from horai.instance_live") == 0


async def test_a_job_that_changes_its_queue_marks_the_new_lane(url: str, connection: Platform) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        await add(scope, "a", "a")
        node = await make.node(connection)
        await accepted.change_job(scope, JOB, accepted.JobChange({"queue": "other"}))
        assert {lane.queue: lane.is_keyed for lane in await claim_lanes.lanes(connection)} == {
            "default": True,
            "other": True,
        }
        assert await make.claim(connection, node) == []
        assert len(await claim(connection, node, 2)) == 1


async def test_a_row_that_was_moved_to_a_later_time_while_it_waited_takes_no_place(
    url: str, connection: Platform
) -> None:
    async with make.scope(url) as scope:
        job = await make.job(scope)
        first, second, third = await add(scope, "a", "a", "a")
        claimed = await claim(connection, await make.node(connection))
        later = datetime.now(UTC) + SOME_TIME
        await connection.execute("update horai.instance_live set due = $1 where id = $2", later, second)
        await finish(connection, claimed)

        released = await concurrency_keys.release_keys(connection, [(job.id, "a")])

        assert ({row.id for row in released}, [row.held.id for row in claimed]) == ({second, third}, [first])


async def test_a_cancelled_row_leaves_no_trace_of_its_key(url: str, connection: Platform) -> None:
    async with make.scope(url) as scope:
        job = await make.job(scope)
        first, second = await add(scope, "a", "a")
        await claim(connection, await make.node(connection))
        await instances.cancel_live(connection, [first], CancelReason.USER, running=True)
        assert [row.id for row in await concurrency_keys.release_keys(connection, [(job.id, "a")])] == [second]


async def test_more_running_instances_than_the_limit_are_found_by_verify(url: str, connection: Superuser) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        await add(scope, "a", "b")
        await claim(connection, await make.node(connection))
        assert all(finding.holds for finding in await verify(connection))
        await connection.execute("update horai.instance_live set concurrency_key = 'a'")
        (found,) = [finding for finding in await verify(connection) if not finding.holds]
        assert "2 instances" in found.examples[0]
        assert found.invariant == "I14"


async def test_the_keys_of_many_waiting_rows_are_read_one_index_entry_each(url: str, connection: Superuser) -> None:
    async with make.scope(url) as scope:
        job = await make.job(scope)
        await add(scope, *(f"key-{number % 5}" for number in range(50)))
        await claim(connection, await make.node(connection))
        pages = [
            await concurrency_keys.parked_keys(connection, FIRST_KEY, 3),
            await concurrency_keys.parked_keys(connection, (job.id, "key-2"), 3),
        ]
        assert [key for page in pages for _, key in page] == [f"key-{number}" for number in range(5)]


# SQL clients


async def test_an_sql_client_adds_instances_with_a_key(url: str, connection: Platform) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        made = await connection.fetchval("select horai.enqueue_keyed('publish', '{}'::json, 'customer-7')")
        stored = await connection.fetchrow("select concurrency_key, lane from horai.instance_live where id = $1", made)
        assert stored is not None
        assert stored["concurrency_key"] == "customer-7"
        assert len(await claim(connection, await make.node(connection))) == 1


@pytest.mark.parametrize("key", ["null", "''", "repeat('x', 513)"])
async def test_an_sql_client_cannot_give_a_key_that_is_empty_or_too_long(
    url: str, connection: Platform, key: str
) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
    with pytest.raises(asyncpg.PostgresError, match="between 1 and 512"):
        await connection.execute(f"select horai.enqueue_keyed('publish', null::json, {key})")
    assert await connection.fetchval("select count(*) from horai.instance_live") == 0


async def test_an_sql_client_changes_only_keys_of_its_own_job_before_they_start(url: str, connection: Platform) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.job(scope, "other")
        (foreign,) = await make.many(scope, 1, job="other", at=datetime.now(UTC) + SOME_TIME)
        (running,) = await add(scope, "a")
        await claim(connection, await make.node(connection), each=1)
        (waiting_id,) = await make.many(scope, 1, at=datetime.now(UTC) + SOME_TIME)
        changed = await connection.fetchval(
            "select horai.set_concurrency_keys('publish', $1::bigint[], array['x', 'x', 'x'])",
            [foreign, running, waiting_id],
        )
        found = {
            row["id"]: row["concurrency_key"]
            for row in await connection.fetch("select id, concurrency_key from horai.instance_live")
        }
        assert (changed, found) == (1, {foreign: None, running: "a", waiting_id: "x"})


async def test_a_client_role_may_use_the_functions(url: str, connection: Superuser) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
    async with clients.role(connection, url) as (_, session):
        await session.execute("select horai.enqueue_keyed('publish', null::json, 'a')")
    assert await connection.fetchval("select concurrency_key from horai.instance_live") == "a"
