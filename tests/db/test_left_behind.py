"""Rows behind the cursors as a sweep sees them: claimable rows, and the rows that run for its own node."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import make
import pytest
import rows

from horai.core.outcome import RetryAt
from horai.core.states import LIVE, State
from horai.db import claims, nodes
from horai.db.claims import Claim, LeftBehind, Position
from horai.db.pool import Platform

SINCE = datetime(1970, 1, 1, tzinfo=UTC)
EVERYTHING = 1000


def scan(shard: int = 0, lane: int = 1, due: datetime = SINCE, after: int = -1) -> Position:
    return Position(shard, lane, due, after)


def ids(found: Sequence[LeftBehind]) -> list[int]:
    return [row.held.id for row in found]


async def test_left_behind_returns_due_waiting_and_failed_rows_without_a_claim(connection: Platform):
    waiting = await rows.instance(connection, State.INIT)
    failed = await rows.instance(connection, State.FAIL)

    found = await claims.left_behind(connection, [scan()], rows.NODE, EVERYTHING)

    assert ids(found) == [waiting.id, failed.id]
    assert {row.claim for row in found} == {None}
    assert {(row.shard, row.lane) for row in found} == {(0, 1)}


async def test_left_behind_returns_a_running_row_with_its_claim_to_its_own_node_only(connection: Platform):
    mine = await rows.instance(connection, State.RUNNING)
    await rows.instance(connection, State.RUNNING, node=rows.NODE + 1)

    (seen,) = await claims.left_behind(connection, [scan()], rows.NODE, EVERYTHING)

    assert seen.held == mine, "it can be given back by what was seen"
    assert seen.claim == rows.CLAIM
    assert await claims.left_behind(connection, [scan()], None, EVERYTHING) == [], "a straggler pass looks for none"


async def test_neither_the_future_nor_what_is_blocked_nor_another_lane_or_shard_is_seen(connection: Platform):
    later = await rows.instance(connection, State.INIT)
    await connection.execute("update horai.instance_live set due = now() + interval '1 minute' where id = $1", later.id)
    await rows.instance(connection, State.BLOCKED)
    await rows.instance(connection, State.INIT, lane=2)
    await rows.instance(connection, State.INIT, shard=1)

    assert await claims.left_behind(connection, [scan()], rows.NODE, EVERYTHING) == []


async def test_a_look_begins_where_it_is_told_to(connection: Platform):
    await connection.execute("begin")  # one now() for all of them
    first, *others = [await rows.instance(connection, State.INIT) for _ in range(3)]
    due = await connection.fetchval("select due from horai.instance_live limit 1")

    assert ids(await claims.left_behind(connection, [scan(due=due, after=first.id)], None, EVERYTHING)) == [
        held.id for held in others
    ]
    just_before = due - timedelta(microseconds=1)
    assert len(await claims.left_behind(connection, [scan(due=just_before)], None, EVERYTHING)) == 3


async def test_every_scan_gets_its_own_page_and_goes_on_behind_it(connection: Platform):
    places = [(0, 1), (1, 1), (0, 2)]
    all_ids = {
        place: [
            (await rows.instance(connection, State.RUNNING, shard=place[0], lane=place[1])).id for _ in range(count)
        ]
        for place, count in zip(places, (5, 2, 4), strict=True)
    }

    seen: dict[tuple[int, int], list[int]] = {place: [] for place in places}
    scans = [scan(*place) for place in places]
    pages = 0
    while scans:
        found = await claims.left_behind(connection, scans, rows.NODE, 2)
        ends: dict[tuple[int, int], Position] = {}
        for row in found:
            seen[row.shard, row.lane].append(row.held.id)
            ends[row.shard, row.lane] = Position(row.shard, row.lane, row.due, row.held.id)
        scans = list(ends.values())
        pages += 1

    assert seen == all_ids
    assert pages == 4, "three pages of the longest, and one that is empty"


async def test_left_behind_does_not_wait_for_a_locked_row(url: str, connection: Platform):
    held = await rows.instance(connection, State.INIT)
    async with rows.connections(url, 1) as (holder,), holder.transaction():
        await holder.execute("select from horai.instance_live where id = $1 for update", held.id)

        assert ids(await claims.left_behind(connection, [scan()], None, EVERYTHING)) == [held.id]


async def test_left_behind_finds_a_row_that_was_committed_late_behind_the_cursor_of_the_claimer(
    url: str, connection: Platform
):
    """The one thing a cursor can miss, and what the look is for."""
    async with make.scope(url) as scope, rows.connections(url, 1) as (slow,):
        job = await make.job(scope)
        node = await make.node(connection)
        async with slow.transaction():
            late = await rows.instance(slow, State.INIT, job_id=job.id, lane=job.lane_id)
            await make.many(scope, 64)
            claimed = await make.claim(connection, node)
        cursors = {row.shard: (row.due, row.held.id) for row in sorted(claimed, key=lambda row: (row.due, row.held.id))}

        by = claims.ClaimedBy(node, 2, datetime.now(UTC))
        positions = [Position(shard, job.lane_id, *cursor) for shard, cursor in cursors.items()]
        assert await claims.claim_due(connection, by, positions, [10] * len(positions)) == []
        assert ids(await claims.left_behind(connection, [scan(0, job.lane_id)], None, 1)) == [late.id]


async def test_left_behind_finds_a_failed_row_when_its_retry_is_due(connection: Platform):
    held = await rows.instance(connection, State.RUNNING)
    await claims.fail_if_running(connection, [(held, RetryAt(timedelta(0), "X", "x"))])

    (seen,) = await claims.left_behind(connection, [scan()], rows.NODE, EVERYTHING)

    assert (seen.claim, seen.held.retry_count) == (None, held.retry_count + 1)


@pytest.mark.parametrize("seed", range(3))
async def test_a_look_sees_exactly_what_its_words_say(connection: Platform, seed: int):
    dice = random.Random(seed)
    held: dict[int, tuple[Claim, State, int]] = {}
    for _ in range(150):
        state, node = dice.choice(sorted(LIVE)), dice.choice([rows.NODE, rows.NODE + 1])
        place = {"shard": dice.randrange(2), "lane": dice.randrange(1, 3)}
        made = await rows.instance(connection, state, node=node, **place)
        held[made.id] = (made, state, node)
    await connection.execute(
        "update horai.instance_live set due = date_trunc('second', now()) + (id % 7 - 5) * interval '1 minute'"
    )
    table = await connection.fetch("select id, shard, lane, due from horai.instance_live order by due, id")
    now = await nodes.database_time(connection)
    for _ in range(10):
        asking, limit = dice.choice([None, rows.NODE]), dice.choice([1, 5, EVERYTHING])
        start = dice.choice([(SINCE, -1), *((row["due"], row["id"]) for row in table)])
        scans = [Position(shard, lane, *start) for shard in range(2) for lane in range(1, 3)]

        found = await claims.left_behind(connection, scans, asking, limit)

        for position in scans:
            wanted = [
                row["id"]
                for row in table
                if (row["shard"], row["lane"]) == (position.shard, position.lane)
                and start < (row["due"], row["id"])
                and row["due"] <= now
                and (
                    held[row["id"]][1] in (State.INIT, State.FAIL)
                    or (held[row["id"]][1] is State.RUNNING and held[row["id"]][2] == asking)
                )
            ]
            assert ids([r for r in found if (r.shard, r.lane) == (position.shard, position.lane)]) == wanted[:limit]
