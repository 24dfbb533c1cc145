"""Slots, tokens and lanes of queues, on a real PostgreSQL with many claimers at once."""

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import make
import pytest
import rows
from databases import fresh_database

from horai.core.errors import PreconditionFailed
from horai.core.job import Priority
from horai.core.outcome import Release
from horai.core.queue import QueueSettings, Rate, parse_rate
from horai.core.settings import SHARDS
from horai.db import claims, jobs, nodes, queues
from horai.db.claims import ClaimedBy, ClaimedRow, Position
from horai.db.migrate import migrations
from horai.db.pool import Connection, Dedicated, connect
from horai.db.verify import verify
from horai.embedded import EmbeddedPostgres
from horai.operations import jobs as accepting
from horai.operations import queues as setting
from horai.operations.scope import Scope

QUEUE = "press"
STATEMENTS = 200


@dataclass
class Press:
    """A queue with due work in it."""

    scope: Scope
    connection: Dedicated
    queue_id: int
    lane: int

    async def limit(self, limit: int | None, **more: Any) -> queues.QueueRow:
        return await setting.set_queue(self.scope, QUEUE, QueueSettings(max_concurrency=limit, **more))

    def positions(self) -> list[Position]:
        return [Position(shard, self.lane, make.LONG_AGO, -1) for shard in range(SHARDS)]

    async def claim(self, connection: Connection, node: int, limit: int, number: int = 1) -> list[ClaimedRow]:
        by = ClaimedBy(node, number, datetime.now(UTC))
        return await queues.claim_limited(connection, by, self.queue_id, self.positions(), limit)

    async def claim_freely(self, connection: Connection, node: int, each: int = 1, number: int = 1) -> list[ClaimedRow]:
        """As a dispatcher does that knows of no limit."""
        by = ClaimedBy(node, number, datetime.now(UTC))
        return await claims.claim_due(connection, by, self.positions(), [each] * SHARDS)

    async def slots(self) -> list[tuple[bool, bool]]:
        """(taken, retired) of every slot, by number."""
        found = await self.connection.fetch(
            "select instance_id is not null, retired from horai.queue_slot where queue_id = $1 order by n",
            self.queue_id,
        )
        return [(row[0], row[1]) for row in found]

    async def taken(self) -> int:
        return sum(taken for taken, _ in await self.slots())


@asynccontextmanager
async def press(url: str, connection: Dedicated, instances: int = 50) -> AsyncGenerator[Press]:
    async with make.scope(url) as scope:
        job = await make.job(scope, queue=QUEUE)
        await make.many(scope, instances)
        queue = await setting.read_queue(scope, QUEUE)
        yield Press(scope, connection, queue.id, job.lane_id)


def ended(claimed: Sequence[ClaimedRow]) -> list[tuple[int, int]]:
    return [(row.held.id, row.held.fence) for row in claimed]


async def give_back(connection: Connection, claimed: Sequence[ClaimedRow], node: int) -> None:
    """The calls have ended: each row waits again, and its slot is free, in one transaction."""
    left = list(claimed)
    while left:  # what somebody has locked was passed over
        async with connection.transaction():
            released = await claims.release_if_running(connection, [(row.held, Release()) for row in left])
            ids = {woken.id for woken in released}
            await queues.free_slots(connection, ended([row for row in left if row.held.id in ids]), node)
        left = [row for row in left if row.held.id not in ids]


async def test_I14_a_claim_takes_as_many_rows_as_there_are_free_slots(url: str, connection: Dedicated) -> None:
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


async def test_a_claim_of_a_limited_queue_takes_what_has_been_due_longest(url: str, connection: Dedicated) -> None:
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


async def test_freeing_gives_room_and_names_the_queue(url: str, connection: Dedicated) -> None:
    async with press(url, connection) as queue:
        await queue.limit(2)
        node = await make.node(connection)
        claimed = await queue.claim(connection, node, 2)

        assert await queues.free_slots(connection, ended(claimed[:1]), node + 1) == set(), "not another node's to free"
        assert await queues.free_slots(connection, [(claimed[0].held.id, claimed[0].held.fence + 1)], node) == set()
        assert await queues.free_slots(connection, ended(claimed[:1]), node) == {queue.queue_id}
        assert await queues.free_slots(connection, ended(claimed[:1]), node) == set()

        assert len(await queue.claim(connection, node, 5)) == 1


async def test_a_fenced_node_takes_no_slot(url: str, connection: Dedicated) -> None:
    async with press(url, connection) as queue:
        await queue.limit(2)
        node = await make.node(connection)
        await connection.execute("update horai.node set fenced_at = clock_timestamp() where incarnation = $1", node)

        assert await queue.claim(connection, node, 5) == []
        assert await queue.taken() == 0


async def test_a_dead_nodes_slots_are_freed(url: str, connection: Dedicated) -> None:
    async with press(url, connection) as queue:
        await queue.limit(4)
        dead, alive = await make.node(connection), await make.node(connection)
        await queue.claim(connection, dead, 3)
        await queue.claim(connection, alive, 1)

        assert await queues.free_slots_of_node(connection, dead) == {queue.queue_id}

        assert await queue.taken() == 1
        assert await queues.free_slots_adrift(connection) == set()


async def test_a_slot_that_came_after_its_nodes_rescue_is_freed_and_found(url: str, connection: Dedicated) -> None:
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


async def test_lowering_a_limit_lets_nothing_start_until_less_runs(url: str, connection: Dedicated) -> None:
    async with press(url, connection) as queue:
        await queue.limit(5)
        node = await make.node(connection)
        claimed = await queue.claim(connection, node, 5)

        lowered = await queue.limit(2)

        assert lowered.running == 5
        for row in claimed[:3]:  # whichever ends first, kept or retired
            await queues.free_slots(connection, ended([row]), node)
            assert await queue.claim(connection, node, 5) == []
        await queues.free_slots(connection, ended(claimed[3:4]), node)
        assert len(await queue.claim(connection, node, 5)) == 1
        assert await queue.taken() == 2


async def test_lowering_drops_free_slots_first_and_raising_brings_retired_ones_back(
    url: str, connection: Dedicated
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


async def test_a_first_limit_counts_what_already_runs(url: str, connection: Dedicated) -> None:
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


async def test_a_first_limit_waits_for_the_claims_under_way(url: str, connection: Dedicated) -> None:
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


async def _is_waited_for(watcher: Dedicated, blocker: Dedicated) -> bool:
    return await watcher.fetchval(
        "select exists (select from pg_stat_activity where $1 = any (pg_blocking_pids(pid)))", blocker.get_server_pid()
    )


async def test_a_claim_without_slots_gets_nothing_from_a_limited_or_paused_queue(
    url: str, connection: Dedicated
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
    url: str, connection: Dedicated
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


@dataclass
class Strain:
    """Claimers under a limit that changes, and what a watcher has seen."""

    queue: Press
    dice: random.Random
    statements: int = 0
    started: int = 0
    is_over: bool = False
    seen: list[str] = field(default_factory=list[str])

    async def work(self, connection: Dedicated) -> None:
        """Claims with slots or, as one that has not heard of the limit, without; ends calls at random."""
        node, running, number = await make.node(connection), list[ClaimedRow](), 0
        while not self.is_over:
            number += 1
            if self.dice.random() < 0.5 or len(running) > 6:
                self.dice.shuffle(running)
                done, running = running[:2], running[2:]
                await give_back(connection, done, node)
            else:
                limited = self.dice.random() < 0.7
                claim = self.queue.claim if limited else self.queue.claim_freely
                claimed = await claim(connection, node, self.dice.randint(1, 4) if limited else 1, number)
                self.started += len(claimed)
                running += claimed
            self.statements += 1
        await give_back(connection, running, node)

    async def watch(self, connection: Dedicated) -> None:
        """Every look is one snapshot: not more than the limit, unless it was lowered; then never rising."""
        before = (0, 0)
        while not self.is_over:
            row = await connection.fetchrow(WATCH, self.queue.queue_id)
            assert row is not None
            version, limit, taken, running, unseated = row
            if limit is not None:
                bound = before[1] if before[0] == version else max(before[1], 10_000)
                if taken > limit and taken > bound:
                    self.seen.append(f"{before[1]} -> {taken} calls under a limit of {limit}")
                if unseated:
                    self.seen.append(f"{unseated} of {running} run without a slot under a limit of {limit}")
            for finding in await verify(connection, timedelta(0)) if self.dice.random() < 0.05 else ():
                if finding.invariant == "I14" and not finding.holds:
                    self.seen += finding.examples
            before = (version, taken)

    async def change(self, limits: Sequence[int | None]) -> None:
        for limit in limits:
            await self.queue.limit(limit)
            after = self.statements + STATEMENTS
            await rows.until(lambda after=after: _is(self.statements >= after), within=60)


async def _is(holds: bool) -> bool:
    return holds


WATCH = """
select queue.version, queue.max_concurrency,
    (select count(*) from horai.queue_slot slot where slot.queue_id = queue.id and slot.instance_id is not null) as taken,
    count(live.id) as running,
    count(live.id) filter (where not exists (
        select from horai.queue_slot slot where slot.instance_id = live.id and slot.fence = live.fence)) as unseated
from horai.queue left join horai.lane on lane.queue_id = queue.id
left join horai.instance_live live on live.lane = lane.id and live.state = 1
where queue.id = $1 group by queue.id
"""


@pytest.mark.parametrize("seed", [1, 2])
async def test_I14_no_limit_is_ever_exceeded_while_limits_change_and_eight_claim(
    url: str, connection: Dedicated, seed: int
) -> None:
    async with press(url, connection, instances=200) as queue, rows.connections(url, 9) as (watcher, *workers):
        strain = Strain(queue, random.Random(seed))
        await queue.limit(5)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(strain.watch(watcher))
            for worker in workers:
                tasks.create_task(strain.work(worker))
            try:
                await strain.change([2, 8, None, 3, 1, 5, None, 2, 4])
            finally:
                strain.is_over = True

        assert strain.seen == []
        assert strain.started > 100
        assert await queue.slots() == [(False, False)] * 4, "no slot is left behind"
        assert [finding for finding in await verify(connection) if not finding.holds] == []


async def test_the_bucket_never_gives_more_than_its_rate_and_one_burst(url: str, connection: Dedicated) -> None:
    """Time is the database's, moved on by hand."""
    dice = random.Random(7)
    async with press(url, connection, instances=0) as queue:
        for rate in map(parse_rate, ("100/s", "5000/s", "30/m", "1000/h")):
            begun = await nodes.database_time(connection)
            await queue.limit(None, rate=rate)
            total, passed = 0, timedelta(0)
            while passed < timedelta(seconds=10):
                step = timedelta(milliseconds=dice.choice([0, 1, 20, 150, 700]))
                await connection.execute("update horai.queue set refilled_at = refilled_at - $1::interval", step)
                passed += step
                total += (await queues.grant(connection, queue.queue_id, dice.choice([1, 10, 10_000]))).granted
            real = await nodes.database_time(connection) - begun
            assert total <= rate.per_second * (passed + real).total_seconds() + rate.burst


async def test_whoever_asks_in_time_gets_the_whole_rate(url: str, connection: Dedicated) -> None:
    step = timedelta(milliseconds=50)
    async with press(url, connection, instances=0) as queue:
        await queue.limit(None, rate=parse_rate("999/s"))
        total = 0
        for _ in range(40):
            await connection.execute("update horai.queue set refilled_at = refilled_at - $1::interval", step)
            total += (await queues.grant(connection, queue.queue_id, 10_000)).granted

        assert total >= 999 * 2


async def test_an_empty_bucket_says_when_it_has_a_token_again(url: str, connection: Dedicated) -> None:
    async with press(url, connection, instances=0) as queue:
        await queue.limit(None, rate=parse_rate("30/m"))

        first = await queues.grant(connection, queue.queue_id, 5)
        second = await queues.grant(connection, queue.queue_id, 5)

        assert (first.granted, first.wait) == (1, timedelta(0))
        assert second.granted == 0
        assert timedelta(seconds=1) < second.wait <= timedelta(seconds=2, milliseconds=1)
        await connection.execute("update horai.queue set refilled_at = refilled_at - $1::interval", second.wait)
        assert (await queues.grant(connection, queue.queue_id, 5)).granted == 1

        await queues.return_tokens(connection, queue.queue_id, 1)
        assert (await queues.grant(connection, queue.queue_id, 5)).granted == 1


async def test_a_queue_without_a_rate_grants_all_that_is_wanted(url: str, connection: Dedicated) -> None:
    async with press(url, connection, instances=0) as queue:
        assert await queues.grant(connection, queue.queue_id, 7) == queues.Grant(7, timedelta(0))


async def test_many_at_once_get_no_more_tokens_than_there_are(url: str, connection: Dedicated) -> None:
    async with press(url, connection, instances=0) as queue, rows.connections(url, 8) as others:
        await queue.limit(None, rate=parse_rate("1/h"))

        grants = await asyncio.gather(*(queues.grant(other, queue.queue_id, 3) for other in others))

        assert sum(grant.granted for grant in grants) == 1


async def test_jobs_without_a_priority_follow_their_queue_and_no_row_moves(url: str, connection: Dedicated) -> None:
    async with press(url, connection) as queue:
        stated = await make.job(queue.scope, "stated", queue=QUEUE, priority="low")
        before = await connection.fetch("select id, lane, due from horai.instance_live order by id")

        await queue.limit(None, priority=Priority.core)
        late = await make.job(queue.scope, "late", queue=QUEUE, target={"type": "worker", "handler": "h"})

        priorities = {row.name: row.priority for row in await _all_jobs(queue.scope, connection)}
        assert priorities == {"publish": Priority.core, "stated": Priority.low, "late": Priority.core}
        found = {lane.id: lane.priority for lane in await jobs.lanes(connection)}
        assert (found[queue.lane], found[stated.lane_id], found[late.lane_id]) == (
            Priority.core, Priority.low, Priority.core,
        )  # fmt: skip
        assert await connection.fetch("select id, lane, due from horai.instance_live order by id") == before

        await queue.limit(None)
        assert {lane.priority for lane in await jobs.lanes(connection)} == {Priority.normal, Priority.low}


async def _all_jobs(scope: Scope, connection: Dedicated) -> list[jobs.JobRow]:
    return await jobs.list_jobs(connection, scope.tenant_id, 0, 100, jobs.JobFilter())


async def test_a_job_that_states_its_priority_leaves_its_queues_lane_and_comes_back(
    url: str, connection: Dedicated
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


async def _lanes_of_rows(connection: Dedicated) -> set[int]:
    return {row["lane"] for row in await connection.fetch("select lane from horai.instance_live")}


async def test_a_lane_that_is_made_while_its_queue_changes_has_the_new_priority(
    url: str, connection: Dedicated
) -> None:
    async with press(url, connection) as queue, rows.connections(url, 1) as (changer,):
        async with changer.transaction():
            await queues.lock_queue(changer, 1, QUEUE)
            making = asyncio.create_task(make.job(queue.scope, "new", queue=QUEUE, target={"type": "worker"}))
            await rows.until(lambda: _is_waited_for(connection, changer))
            await queues.write_queue(changer, queue.queue_id, QueueSettings(priority=Priority.core))

        assert (await making).priority is Priority.core


async def test_two_jobs_that_open_a_queue_at_once_share_it(url: str, connection: Dedicated) -> None:
    async with make.scope(url) as scope:
        made = await asyncio.gather(*(make.job(scope, f"job-{n}", queue="fresh") for n in range(8)))

        assert len({job.lane_id for job in made}) == 1
        assert await connection.fetchval("select count(*) from horai.queue") == 1


async def test_a_change_is_told_in_its_transaction_and_an_old_version_changes_nothing(
    url: str, connection: Dedicated
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


async def test_weights_of_tenants_are_one_unless_set(connection: Dedicated) -> None:
    assert await connection.fetchval("select weight from horai.tenant where name = 'default'") == 1


async def broken(connection: Dedicated, statement: str) -> dict[str, str]:
    """An example of each invariant that `statement` breaks."""
    await connection.execute(statement)
    return {found.invariant: found.examples[0] for found in await verify(connection) if not found.holds}


async def test_I14_a_slot_too_many_is_found(url: str, connection: Dedicated) -> None:
    async with press(url, connection) as queue:
        await queue.limit(2)
        await queue.claim(connection, await make.node(connection), 1)
        assert await broken(connection, "select 1") == {}

        found = await broken(
            connection, "insert into horai.queue_slot (queue_id, n, version) select id, 99, version from horai.queue"
        )

        assert found["I14"].startswith("queue press has a limit of 2, 3 slots and 1 taken")


async def test_I14_a_slot_taken_after_the_limit_was_lowered_below_what_ran_is_found(
    url: str, connection: Dedicated
) -> None:
    async with press(url, connection) as queue:
        await queue.limit(3)
        await queue.claim(connection, await make.node(connection), 3)
        await queue.limit(1)
        assert await broken(connection, "select 1") == {}

        found = await broken(connection, "update horai.queue_slot set taken_at = clock_timestamp()")

        assert found["I14"].startswith("queue press has a limit of 1, 1 slots and 3 taken")


async def test_I14_what_runs_in_a_limited_queue_without_a_slot_is_found(url: str, connection: Dedicated) -> None:
    async with press(url, connection) as queue:
        await queue.limit(3)
        (claimed,) = await queue.claim(connection, await make.node(connection), 1)
        await connection.execute(
            "update horai.instance_live set claimed_at = claimed_at - interval '1 hour' where state = 1"
        )

        found = await broken(connection, "update horai.queue_slot set instance_id = null, fence = null, node = null")

        assert found["I14"] == f"instance {claimed.held.id} runs in the limited queue press without a slot"


@pytest.mark.parametrize(
    ("held_back", "settings"),
    [
        (False, QueueSettings()),
        (True, QueueSettings(paused=True)),
        (False, QueueSettings(max_concurrency=3)),
        (False, QueueSettings(rate=Rate(1, timedelta(minutes=1)))),
    ],
)
async def test_I5_what_a_queue_holds_back_is_not_overdue(
    url: str, connection: Dedicated, held_back: bool, settings: QueueSettings
) -> None:
    async with press(url, connection) as queue:
        await make.node(connection, timedelta(days=1))
        await setting.set_queue(queue.scope, QUEUE, settings)

        found = await broken(connection, LONG_SINCE)

        assert ("I5" in found) != held_back


LONG_SINCE = """
update horai.instance_live set due = due - interval '1 day', execute_time = execute_time - interval '1 day';
update horai.node set started_at = started_at - interval '2 days';
update horai.queue set updated_at = updated_at - interval '2 days', refilled_at = refilled_at - interval '2 days';
"""


@pytest.mark.parametrize(
    "lately",
    [
        "update horai.queue_slot set taken_at = clock_timestamp() where n = 1",
        "update horai.queue_slot set instance_id = n, fence = 1, node = 1, taken_at = clock_timestamp() - interval '1 day'",
    ],
)
async def test_I5_a_queue_whose_slots_are_in_use_is_not_overdue(url: str, connection: Dedicated, lately: str) -> None:
    async with press(url, connection) as queue:
        await make.node(connection, timedelta(days=1))
        await queue.limit(3)

        assert "I5" not in await broken(connection, LONG_SINCE + lately)


async def test_I5_a_rate_that_has_just_run_dry_is_not_overdue(url: str, connection: Dedicated) -> None:
    async with press(url, connection) as queue:
        await make.node(connection, timedelta(days=1))
        await queue.limit(None, rate=parse_rate("1/h"))

        just_now = "update horai.queue set tokens = 0.9, refilled_at = clock_timestamp()"

        assert "I5" not in await broken(connection, LONG_SINCE + just_now)


def test_a_store_from_before_queues_keeps_its_lanes_and_its_priorities(postgres: EmbeddedPostgres) -> None:
    """Then every definition had a priority written down: what was `normal` counts as not stated."""

    async def grow(url: str) -> None:
        connection = await connect(url, "horai test")
        await connection.execute("create schema horai")
        for migration in migrations():
            if migration.name == "queues":
                await connection.execute(BEFORE_QUEUES)
            await connection.execute(migration.text)
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
