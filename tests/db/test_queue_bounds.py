"""Limits and rates of queues under load: none is exceeded, and what exceeds one is found."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import make
import pytest
import rows
from queue_press import QUEUE, Press, give_back, press

from horai.core.queue import QueueSettings, Rate, parse_rate
from horai.db import nodes, queues
from horai.db.claims import ClaimedRow
from horai.db.pool import Platform
from horai.db.verify import verify
from horai.operations import queues as setting

STATEMENTS = 200


@dataclass
class Strain:
    """Claimers under a limit that changes, and what a watcher has seen."""

    queue: Press
    dice: random.Random
    statements: int = 0
    started: int = 0
    is_over: bool = False
    seen: list[str] = field(default_factory=list[str])

    async def work(self, connection: Platform) -> None:
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

    async def watch(self, connection: Platform) -> None:
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
    url: str, connection: Platform, seed: int
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


async def test_the_bucket_never_gives_more_than_its_rate_and_one_burst(url: str, connection: Platform) -> None:
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


async def test_grants_every_50_ms_hand_out_the_whole_rate(url: str, connection: Platform) -> None:
    step = timedelta(milliseconds=50)
    async with press(url, connection, instances=0) as queue:
        await queue.limit(None, rate=parse_rate("999/s"))
        total = 0
        for _ in range(40):
            await connection.execute("update horai.queue set refilled_at = refilled_at - $1::interval", step)
            total += (await queues.grant(connection, queue.queue_id, 10_000)).granted

        assert total >= 999 * 2


async def test_an_empty_bucket_says_when_it_has_a_token_again(url: str, connection: Platform) -> None:
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


async def test_a_queue_without_a_rate_grants_all_that_is_wanted(url: str, connection: Platform) -> None:
    async with press(url, connection, instances=0) as queue:
        assert await queues.grant(connection, queue.queue_id, 7) == queues.Grant(7, timedelta(0))


async def test_many_at_once_get_no_more_tokens_than_there_are(url: str, connection: Platform) -> None:
    async with press(url, connection, instances=0) as queue, rows.connections(url, 8) as others:
        await queue.limit(None, rate=parse_rate("1/h"))

        grants = await asyncio.gather(*(queues.grant(other, queue.queue_id, 3) for other in others))

        assert sum(grant.granted for grant in grants) == 1


async def broken(connection: Platform, statement: str) -> dict[str, str]:
    """An example of each invariant that `statement` breaks."""
    await connection.execute(statement)
    return {found.invariant: found.examples[0] for found in await verify(connection) if not found.holds}


async def test_I14_a_slot_too_many_is_found(url: str, connection: Platform) -> None:
    async with press(url, connection) as queue:
        await queue.limit(2)
        await queue.claim(connection, await make.node(connection), 1)
        assert await broken(connection, "select 1") == {}

        found = await broken(
            connection,
            "insert into horai.queue_slot (tenant_id, queue_id, n, version) select tenant_id, id, 99, version from horai.queue",
        )

        assert found["I14"].startswith("queue press has a limit of 2, 3 slots and 1 taken")


async def test_I14_a_slot_taken_after_the_limit_was_lowered_below_what_ran_is_found(
    url: str, connection: Platform
) -> None:
    async with press(url, connection) as queue:
        await queue.limit(3)
        await queue.claim(connection, await make.node(connection), 3)
        await queue.limit(1)
        assert await broken(connection, "select 1") == {}

        found = await broken(connection, "update horai.queue_slot set taken_at = clock_timestamp()")

        assert found["I14"].startswith("queue press has a limit of 1, 1 slots and 3 taken")


async def test_I14_verify_reports_an_instance_that_runs_in_a_limited_queue_without_a_permit(
    url: str, connection: Platform
) -> None:
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
async def test_I5_verify_reports_overdue_instances_unless_their_queue_is_paused(
    url: str, connection: Platform, held_back: bool, settings: QueueSettings
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
async def test_I5_a_queue_whose_slots_are_in_use_is_not_overdue(url: str, connection: Platform, lately: str) -> None:
    async with press(url, connection) as queue:
        await make.node(connection, timedelta(days=1))
        await queue.limit(3)

        assert "I5" not in await broken(connection, LONG_SINCE + lately)


async def test_I5_a_rate_that_has_just_run_dry_is_not_overdue(url: str, connection: Platform) -> None:
    async with press(url, connection) as queue:
        await make.node(connection, timedelta(days=1))
        await queue.limit(None, rate=parse_rate("1/h"))

        just_now = "update horai.queue set tokens = 0.9, refilled_at = clock_timestamp()"

        assert "I5" not in await broken(connection, LONG_SINCE + just_now)
