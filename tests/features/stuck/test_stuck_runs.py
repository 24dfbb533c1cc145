"""Stuck runs and clogged queues on a real PostgreSQL. The time of the question is an argument, so no test waits."""

from datetime import datetime, timedelta

import make
from databases import Superuser
from long_runs import MINUTE, claimed_at, past
from queue_press import QUEUE, press

from horai.core.stuck import LEAST_OF_FEW, SAMPLES, UNKNOWN, StuckRun
from horai.db.pool import acquire
from horai.operations import stuck
from horai.operations.scope import Scope

P95 = timedelta(minutes=2)
SECOND = timedelta(seconds=1)


async def asked(scope: Scope, now: datetime, limit: int = 100) -> list[StuckRun]:
    """Return the stuck runs as a request of the tenant gets them."""
    async with scope.read() as connection:
        return await stuck.stuck_runs(connection, scope.tenant_id, now, limit)


async def test_a_run_is_stuck_after_three_times_the_p95_of_its_own_job(url: str, connection: Superuser) -> None:
    async with make.scope(url) as scope:
        slow, fast = await make.job(scope, "slow"), await make.job(scope, "fast")
        await past(connection, slow.id, SAMPLES, P95)
        await past(connection, fast.id, SAMPLES, SECOND)
        (of_slow,) = await make.many(scope, 1, job="slow")
        (of_fast,) = await make.many(scope, 1, job="fast")
        await make.claim(connection, await make.node(connection))
        began = await claimed_at(connection, of_slow)

        after_a_minute = await asked(scope, began + MINUTE + SECOND)
        before = await asked(scope, began + 3 * P95 - SECOND)
        after = await asked(scope, began + 3 * P95 + SECOND)

    assert [one.run.id for one in after_a_minute] == [of_fast]
    assert [one.run.id for one in before] == [of_fast]
    assert {one.run.id for one in after} == {of_slow, of_fast}
    found = next(one for one in after if one.run.id == of_slow)
    assert (found.p95, found.stuck_at, found.run.job, found.run.node) == (P95, began + 3 * P95, "slow", "test-node")


async def test_with_few_short_successes_a_run_is_stuck_after_ten_minutes_however_many_runs_failed(
    url: str, connection: Superuser
) -> None:
    async with make.scope(url) as scope:
        job = await make.job(scope)
        await past(connection, job.id, SAMPLES - 2, SECOND)
        await past(connection, job.id, 1, 2 * MINUTE)
        await past(connection, job.id, SAMPLES, timedelta(hours=2), final=4)
        claimed = await make.running(scope, connection)
        began = await claimed_at(connection, claimed.held.id)
        before = await asked(scope, began + LEAST_OF_FEW)
        [few] = await asked(scope, began + LEAST_OF_FEW + SECOND)
        await past(connection, job.id, 1, SECOND)

        [enough] = await asked(scope, began + LEAST_OF_FEW + SECOND)

    assert before == []
    assert (few.run.id, few.stuck_at, few.p95, few.longest) == (
        claimed.held.id,
        began + LEAST_OF_FEW,
        None,
        2 * MINUTE,
    )
    assert (enough.stuck_at, enough.p95, enough.longest) == (began + MINUTE, SECOND, None)


async def test_the_first_run_of_a_job_is_stuck_after_half_an_hour(url: str, connection: Superuser) -> None:
    async with make.scope(url) as scope:
        job = await make.job(scope)
        await past(connection, job.id, SAMPLES, SECOND, final=4)
        claimed = await make.running(scope, connection)
        began = await claimed_at(connection, claimed.held.id)

        assert await asked(scope, began + UNKNOWN) == []
        [found] = await asked(scope, began + UNKNOWN + SECOND)

    assert (found.run.id, found.stuck_at, found.usual) == (claimed.held.id, began + UNKNOWN, None)


async def test_successes_of_older_days_say_nothing(url: str, connection: Superuser) -> None:
    async with make.scope(url) as scope:
        job = await make.job(scope)
        await past(connection, job.id, SAMPLES, SECOND, ago=timedelta(days=6))
        claimed = await make.running(scope, connection)
        began = await claimed_at(connection, claimed.held.id)

        assert [one.p95 for one in await asked(scope, began + timedelta(hours=1))] == [SECOND]
        assert [one.usual for one in await asked(scope, began + timedelta(days=3))] == [None]


async def test_one_slow_success_in_twenty_does_not_stretch_the_p95_and_two_do(url: str, connection: Superuser) -> None:
    async with make.scope(url) as scope:
        job = await make.job(scope)
        await past(connection, job.id, 19, SECOND)
        await past(connection, job.id, 1, timedelta(hours=1))
        claimed = await make.running(scope, connection)
        later = await claimed_at(connection, claimed.held.id) + 10 * MINUTE
        one_slow = await asked(scope, later)
        await past(connection, job.id, 1, timedelta(hours=1))

        assert (len(one_slow), await asked(scope, later)) == (1, [])


async def test_waiting_and_ended_instances_are_never_stuck(url: str, connection: Superuser) -> None:
    async with make.scope(url) as scope:
        job = await make.job(scope)
        await past(connection, job.id, SAMPLES, SECOND)
        await make.many(scope, 5)
        now = await connection.fetchval("select clock_timestamp()")

        assert await asked(scope, now + timedelta(days=1)) == []


async def test_another_tenant_sees_no_stuck_run_and_no_clogged_queue(url: str, connection: Superuser) -> None:
    other = await connection.fetchval("insert into horai.tenant (name) values ('shop') returning id")
    async with press(url, connection) as queue:
        theirs = make.of_tenant(queue.scope, other, "shop")
        await past(connection, await job_of(connection), SAMPLES, SECOND)
        await queue.limit(1)
        (claimed,) = await queue.claim(connection, await make.node(connection), 5)
        later = await claimed_at(connection, claimed.held.id) + 10 * MINUTE

        assert [one.run.id for one in await asked(queue.scope, later)] == [claimed.held.id]
        assert await asked(theirs, later) == []
        async with theirs.read() as own:
            assert await stuck.clogged_queues(own, other, later, 10) == []
        async with acquire(make.platform(queue.scope)) as every:  # without row-level security, the statements decide
            assert await stuck.stuck_runs(every, other, later, 10) == []
            assert await stuck.clogged_queues(every, other, later, 10) == []
            assert await stuck.clogged_queues(every, other, later, 10, name=QUEUE) == []
            assert await stuck.stuck_run(every, other, claimed.held.id, later) is None
            assert await stuck.stuck_run(every, 1, claimed.held.id, later) is not None


async def job_of(connection: Superuser) -> int:
    """Return the id of the one job."""
    return await connection.fetchval("select id from horai.job where name = 'publish'")


async def test_a_queue_is_clogged_only_when_stuck_runs_hold_all_of_its_slots(url: str, connection: Superuser) -> None:
    async with press(url, connection) as queue:
        await past(connection, await job_of(connection), SAMPLES, P95)
        await queue.limit(3)
        node = await make.node(connection)
        first = await queue.claim(connection, node, 2)
        began = await claimed_at(connection, first[0].held.id)

        async def clogged(now: datetime) -> list[stuck.CloggedQueue]:
            async with queue.scope.read() as own:
                return await stuck.clogged_queues(own, 1, now, 10)

        later = began + timedelta(hours=1)
        assert await clogged(later) == [], "one slot is free"
        (last,) = await queue.claim(connection, node, 5)
        ids = [row.held.id for row in (*first, last)]
        last_began = await claimed_at(connection, last.held.id)
        assert await clogged(last_began + 3 * P95) == [], "the last one is not stuck yet"
        (found,) = await clogged(later)

    assert (found.name, found.slots, found.since) == (QUEUE, 3, last_began + 3 * P95)
    assert sorted(one.run.id for one in found.holders) == sorted(ids)
    assert found.waiting == 47


async def test_a_queue_with_a_quick_run_among_the_stuck_is_not_clogged(url: str, connection: Superuser) -> None:
    async with press(url, connection) as queue:
        await make.job(queue.scope, "quick", queue=QUEUE)  # with few successes, its runs may take ten minutes
        await past(connection, await job_of(connection), SAMPLES, SECOND)
        await queue.limit(2)
        claimed = await queue.claim(connection, await make.node(connection), 5)
        quick = await connection.fetchval("select id from horai.job where name = 'quick'")
        await connection.execute("update horai.instance_live set job_id = $2 where id = $1", claimed[0].held.id, quick)
        await past(connection, quick, 1, SECOND)
        later = await claimed_at(connection, claimed[0].held.id) + LEAST_OF_FEW

        async with queue.scope.read() as own:
            assert len(await stuck.stuck_runs(own, 1, later, 10)) == 1
            assert await stuck.clogged_queues(own, 1, later, 10) == []
            await past(connection, quick, SAMPLES, SECOND)
            assert len(await stuck.clogged_queues(own, 1, later, 10)) == 1


async def test_lists_have_a_limit_and_go_on_after_a_position(url: str, connection: Superuser) -> None:
    async with make.scope(url) as scope:
        job = await make.job(scope)
        await past(connection, job.id, SAMPLES, SECOND)
        ids = await make.many(scope, 5)
        await make.claim(connection, await make.node(connection))
        later = await claimed_at(connection, ids[0]) + timedelta(hours=1)

        async with scope.read() as own:
            every = await stuck.stuck_runs(own, 1, later, 100)
            first = await stuck.stuck_runs(own, 1, later, 2)
            place = (first[-1].run.claimed_at, first[-1].run.id)
            rest = await stuck.stuck_runs(own, 1, later, 100, place)

    assert [one.run.id for one in (*first, *rest)] == [one.run.id for one in every]
    assert sorted(one.run.id for one in every) == sorted(ids)
