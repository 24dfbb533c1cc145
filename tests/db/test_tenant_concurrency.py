"""The quota `concurrency`: no more instances of a tenant run at once, over all queues, nodes and changes."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import make
import pytest
import rows
from databases import Superuser
from queue_press import ended, give_back
from tenant_press import TenantPress, tenant_press

from horai.db import queues
from horai.db.claims import ClaimedRow
from horai.db.tenants import insert_tenant
from horai.db.verify import verify
from horai.features.tenants.service import pause_tenant, resume_tenant

STATEMENTS = 200


async def free(connection: Superuser, claimed: Sequence[ClaimedRow], node: int) -> set[int]:
    return await queues.free_slots(connection, ended(claimed), node)


async def broken(connection: Superuser) -> list[str]:
    """Examples of broken limits."""
    found = [finding for finding in await verify(connection, timedelta(0)) if finding.invariant == "I14"]
    return [example for finding in found if not finding.holds for example in finding.examples]


async def test_C2b_two_queues_one_of_them_limited_run_no_more_than_the_quota(url: str, connection: Superuser):
    async with tenant_press(url, connection) as tenant:
        await tenant.quota(5)
        await tenant.limit("narrow", 2)
        node, other = await make.node(connection), await make.node(connection, name="other")

        narrow = await tenant.claim(connection, node, "narrow")
        wide = await tenant.claim(connection, other, "wide")

        assert (len(narrow), len(wide)) == (2, 3)
        assert all(row.held.has_slot for row in [*narrow, *wide])
        assert await tenant.claim(connection, node, "wide") == []
        assert await tenant.claim_freely(connection, node, "wide") == []
        assert (await tenant.pool()).running == 5
        assert await broken(connection) == []

        freed = await free(connection, narrow[:1], node)
        assert freed == {tenant.ids["narrow"], (await tenant.pool()).id}, "both permits, and both are told"
        assert len(await tenant.claim(connection, other, "wide")) == 1
        assert await tenant.claim(connection, node, "narrow") == [], "its own permit is free, that of the tenant is not"


async def test_C2b_a_limited_queue_keeps_its_own_limit_below_the_quota(url: str, connection: Superuser):
    async with tenant_press(url, connection) as tenant:
        await tenant.limit("narrow", 2)
        await tenant.quota(5)

        assert len(await tenant.claim(connection, await make.node(connection), "narrow")) == 2
        assert (await tenant.pool()).running == 2


async def test_C2b_instances_that_run_when_the_quota_is_set_count(url: str, connection: Superuser):
    async with tenant_press(url, connection, instances=3) as tenant:
        await tenant.limit("narrow", 2)
        node = await make.node(connection)
        running = [
            *await tenant.claim_freely(connection, node, "wide"),
            *await tenant.claim(connection, node, "narrow"),
        ]
        assert len(running) == 5

        settings = await tenant.quota(6)

        assert settings.usage.running == 5
        assert (await tenant.pool()).running == 5
        await tenant.add("late", 9)
        assert len(await tenant.claim(connection, node, "late")) == 1, "a queue that appears later obeys too"
        assert await broken(connection) == []


async def test_C2b_lowering_the_quota_below_what_runs_starts_nothing_until_enough_ended(
    url: str, connection: Superuser
):
    async with tenant_press(url, connection) as tenant:
        await tenant.quota(5)
        node = await make.node(connection)
        running = [*await tenant.claim(connection, node, "wide", 3), *await tenant.claim(connection, node, "narrow", 2)]

        await tenant.quota(2)

        for row in running[:3]:
            await free(connection, [row], node)
            assert await tenant.claim(connection, node, "wide") == []
            assert await tenant.claim(connection, node, "narrow") == []
        await free(connection, running[3:4], node)
        assert len(await tenant.claim(connection, node, "narrow")) == 1
        assert (await tenant.pool()).running == 2


async def test_C2b_raising_the_quota_makes_room_at_once(url: str, connection: Superuser):
    async with tenant_press(url, connection) as tenant:
        await tenant.quota(2)
        node = await make.node(connection)
        assert len(await tenant.claim(connection, node, "wide")) == 2

        await tenant.quota(5)

        assert len(await tenant.claim(connection, node, "narrow")) == 3


async def test_C2b_without_the_quota_the_queues_are_claimed_without_permits_again(url: str, connection: Superuser):
    async with tenant_press(url, connection, instances=9) as tenant:
        await tenant.quota(2)
        node = await make.node(connection)
        running = await tenant.claim(connection, node, "wide")

        removed = await tenant.quota(None)

        assert removed.quotas.concurrency is None
        assert len(await tenant.claim_freely(connection, node, "wide")) == 7
        assert await tenant.claim(connection, node, "narrow") == [], "such a claim gives no permits"
        assert await broken(connection) == []
        await tenant.quota(12)
        assert (await tenant.pool()).running == 9, "each instance counts once"
        assert len(await tenant.claim(connection, node, "narrow")) == 3
        await tenant.quota(None)
        await free(connection, running, node)
        assert await tenant.permits() == [(True, True)] * 10


async def test_a_first_limit_of_a_queue_counts_what_runs_with_a_permit_of_the_tenant(url: str, connection: Superuser):
    async with tenant_press(url, connection) as tenant:
        await tenant.quota(5)
        node = await make.node(connection)
        assert len(await tenant.claim(connection, node, "wide", 3)) == 3

        await tenant.limit("wide", 4)

        assert len(await tenant.claim(connection, node, "wide")) == 1
        assert await broken(connection) == []


async def test_the_permits_of_a_dead_node_come_back(url: str, connection: Superuser):
    async with tenant_press(url, connection) as tenant:
        await tenant.quota(3)
        dead, alive = await make.node(connection), await make.node(connection, name="alive")
        await tenant.claim(connection, dead, "wide", 2)
        await tenant.claim(connection, alive, "narrow")

        assert await queues.free_slots_of_node(connection, dead) == {(await tenant.pool()).id}

        assert await tenant.permits() == [(False, False), (False, False), (True, False)]


async def test_a_pause_of_the_tenant_holds_its_queues_under_the_quota(url: str, connection: Superuser):
    async with tenant_press(url, connection) as tenant:
        await tenant.quota(3)
        node, platform = await make.node(connection), make.platform_scope(tenant.scope)
        await pause_tenant(platform, "default")
        await tenant.add("late", 5)
        for queue in ("wide", "late"):
            assert await tenant.claim(connection, node, queue) == []
        await resume_tenant(platform, "default")
        assert len(await tenant.claim(connection, node, "late")) == 3


async def test_a_tenant_without_the_quota_has_open_lanes_beside_one_that_has_it(url: str, connection: Superuser):
    async with tenant_press(url, connection) as tenant:
        made = await insert_tenant(connection, "second")
        assert made is not None
        second = make.of_tenant(tenant.scope, made.id, "second")
        free_lane = (await make.job(second, "free")).lane_id
        await tenant.quota(3)

        lanes = [*tenant.lanes.values(), free_lane]

        assert await connection.fetchval("select horai.open_lanes($1)", lanes) == [free_lane]
        await tenant.quota(None)
        assert sorted(await connection.fetchval("select horai.open_lanes($1)", lanes)) == sorted(lanes)


async def test_the_pool_of_a_tenant_is_no_queue(url: str, connection: Superuser):
    async with tenant_press(url, connection, instances=0) as tenant:
        await tenant.quota(3)
        assert {queue.name for queue in await queues.list_queues(connection, 1, 0, 9)} == {"wide", "narrow"}
        assert await queues.find_queue(connection, 1, "*") is None
        assert await queues.lock_queue(connection, 1, "*") is None


# Claims that began before a change: their statement waits for the row of its node, and goes on after the change


@pytest.mark.parametrize(
    "change", ["the quota", "a limit of the queue", "a pause of the queue", "a pause of the tenant"]
)
async def test_C2b_a_claim_that_began_before_a_change_starts_nothing_against_it(
    url: str, connection: Superuser, change: str
):
    async with tenant_press(url, connection) as tenant, rows.connections(url, 2) as (holder, claimer):
        node = await make.node(connection)
        if change == "the quota":
            await tenant.limit("narrow", 9)
            queue = "narrow"
        else:
            await tenant.quota(9)
            queue = "wide"
        async with holder.transaction():
            await holder.execute("select from horai.node for update")
            claim = asyncio.create_task(tenant.claim(claimer, node, queue))
            await rows.until_blocked(connection, claimer)
            if change == "the quota":
                await tenant.quota(1)
            elif change == "a pause of the tenant":
                await pause_tenant(make.platform_scope(tenant.scope), "default")
            else:
                await tenant.limit(queue, 1, paused="pause" in change)

        assert await claim == []
        assert await broken(connection) == []


async def test_no_claim_enters_a_queue_whose_limit_is_being_changed(url: str, connection: Superuser):
    async with tenant_press(url, connection) as tenant, rows.connections(url, 1) as (holder,):
        node = await make.node(connection)
        await tenant.limit("narrow", 9)
        async with holder.transaction():
            await holder.execute("select horai.shut_queue(id) from horai.queue where name = 'narrow'")
            assert await tenant.claim(connection, node, "narrow") == []

        assert await tenant.claim(connection, node, "narrow") != []


# Load


@dataclass
class Strain:
    """Claimers in two queues under a quota and a limit that change, and what a watcher has seen."""

    tenant: TenantPress
    dice: random.Random
    statements: int = 0
    started: int = 0
    is_over: bool = False
    seen: list[str] = field(default_factory=list[str])

    async def work(self, connection: Superuser) -> None:
        """Claims with permits or, as one that has not heard of the quota, without; ends calls at random."""
        node, running, number = await make.node(connection), list[ClaimedRow](), 0
        while not self.is_over:
            number += 1
            queue = self.dice.choice(["wide", "narrow"])
            if self.dice.random() < 0.5 or len(running) > 6:
                self.dice.shuffle(running)
                done, running = running[:2], running[2:]
                await give_back(connection, done, node)
            elif self.dice.random() < 0.8:
                running += await self.tenant.claim(connection, node, queue, self.dice.randint(1, 4), number)
            else:
                running += (claimed := await self.tenant.claim_freely(connection, node, queue, number))
                while len(claimed) > 6 and len(running) > 6:  # without limits it gets a row of each shard
                    await give_back(connection, running[6:], node)
                    running = running[:6]
            self.statements += 1
            self.started += len(running)
        await give_back(connection, running, node)

    async def watch(self, connection: Superuser) -> None:
        """Every look is one snapshot: not more than the quota, unless it was lowered; then never rising."""
        before: tuple[int, int] = (0, 0)
        while not self.is_over:
            row = await connection.fetchrow(WATCH)
            assert row is not None
            version, limit, taken, unseated = row
            if limit is not None:
                bound = before[1] if before[0] == version else 10_000
                if taken > limit and taken > bound:
                    self.seen.append(f"{before[1]} -> {taken} calls under a quota of {limit}")
                if unseated:
                    self.seen.append(f"{unseated} run without a permit under a quota of {limit}")
            before = (version, taken)
            for finding in await verify(connection, timedelta(0)) if self.dice.random() < 0.05 else ():
                if finding.invariant == "I14" and not finding.holds:
                    self.seen += finding.examples

    async def change(self, quotas: Sequence[int | None]) -> None:
        for most in quotas:
            await self.tenant.quota(most)
            await self.tenant.limit("narrow", self.dice.choice([None, 1, 3]))
            after = self.statements + STATEMENTS
            await rows.until(lambda after=after: _is(self.statements >= after), within=60)


async def _is(holds: bool) -> bool:
    return holds


WATCH = """
select pool.version, pool.max_concurrency,
    (select count(*) from horai.queue_slot slot where slot.queue_id = pool.id and slot.instance_id is not null) as taken,
    (select count(*) from horai.instance_live live where live.state = 1 and not exists (
        select from horai.queue_slot slot where slot.queue_id = pool.id and slot.instance_id = live.id and slot.fence = live.fence)) as unseated
from horai.queue pool where pool.is_pool
"""


@pytest.mark.parametrize("seed", [1, 2])
async def test_I14_no_quota_is_ever_exceeded_while_quotas_and_limits_change_and_six_claim(
    url: str, connection: Superuser, seed: int
):
    async with tenant_press(url, connection, instances=100) as tenant, rows.connections(url, 7) as (watcher, *workers):
        strain = Strain(tenant, random.Random(seed))
        await tenant.quota(5)
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
        await tenant.limit("narrow", 3)
        assert await tenant.permits() == [(False, False)] * 4, "no permit is left behind"
        assert [finding for finding in await verify(connection) if not finding.holds] == []


async def test_I14_an_instance_without_a_permit_of_its_tenant_is_found(url: str, connection: Superuser):
    async with tenant_press(url, connection) as tenant:
        await tenant.quota(3)
        (claimed,) = await tenant.claim(connection, await make.node(connection), "wide", 1)
        await connection.execute("update horai.queue_slot set instance_id = null, fence = null, node = null")

        assert await broken(connection) == [
            f"instance {claimed.held.id} runs in the queue wide without a slot of its tenant"
        ]


@pytest.mark.parametrize("is_full", [True, False])
async def test_I5_instances_that_wait_for_a_full_tenant_are_not_overdue(url: str, connection: Superuser, is_full: bool):
    async with tenant_press(url, connection) as tenant:
        node = await make.node(connection, timedelta(days=1))
        await tenant.quota(3)
        if is_full:
            await tenant.claim(connection, node, "wide")
        await connection.execute(LONG_SINCE)

        found = {finding.invariant for finding in await verify(connection) if not finding.holds}

        assert ("I5" in found) != is_full


LONG_SINCE = """
update horai.instance_live set due = due - interval '1 day', execute_time = execute_time - interval '1 day' where state = 0;
update horai.queue_slot set taken_at = taken_at - interval '1 day';
update horai.node set started_at = started_at - interval '2 days';
update horai.queue set updated_at = updated_at - interval '2 days', refilled_at = refilled_at - interval '2 days';
"""
