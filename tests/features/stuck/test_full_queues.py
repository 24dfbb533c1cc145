"""Full queues with their holders, and what waits behind a stuck run, on a real PostgreSQL. The time of the question is an argument."""

from datetime import datetime, timedelta

import flows
import make
from databases import Superuser
from long_runs import MINUTE, claimed_at, past
from orchestra import Orchestra
from queue_press import QUEUE, press
from stages import workbench

from horai.core.stuck import SAMPLES, UNKNOWN
from horai.db import queues
from horai.db.pool import acquire
from horai.features.overview import needs_attention
from horai.operations import full_queues, stuck
from horai.operations.full_queues import HOLDERS_NAMED, JammedQueues
from horai.operations.queues import set_queue
from horai.operations.scope import Scope

SECOND = timedelta(seconds=1)
CHAIN = {"load": (), "clean": ("load",), "report": ("clean",), "beside": ()}


async def jammed(scope: Scope, now: datetime, limit: int = 10) -> JammedQueues:
    """Return the clogged and the full queues as a request of the tenant gets them."""
    async with scope.read() as connection:
        return await full_queues.jammed_queues(connection, scope.tenant_id, now, now - MINUTE, limit)


async def test_a_queue_at_its_limit_names_its_holders_once_an_instance_has_waited_too_long(
    url: str, connection: Superuser
) -> None:
    async with press(url, connection) as queue:
        await queue.limit(3)
        node = await make.node(connection)
        first = await queue.claim(connection, node, 2)
        oldest = await connection.fetchval("select min(due) from horai.instance_live where state = 0")
        later = oldest + MINUTE + SECOND
        assert (await jammed(queue.scope, later)).full == (), "one slot is free"
        (last,) = await queue.claim(connection, node, 5)
        oldest = await connection.fetchval("select min(due) from horai.instance_live where state = 0")
        assert (await jammed(queue.scope, oldest + MINUTE)).full == (), "no instance is late yet"

        (found,) = (await jammed(queue.scope, oldest + MINUTE + SECOND)).full

    assert (found.name, found.slots, found.since, found.waiting) == (QUEUE, 3, oldest, 47)
    assert [one.id for one in found.holders] == [row.held.id for row in (*first, last)]
    assert {one.job for one in found.holders} == {"publish"}


async def test_a_full_queue_names_its_longest_holders_and_is_not_listed_while_no_instance_waits_or_it_is_paused(
    url: str, connection: Superuser
) -> None:
    async with press(url, connection, instances=8) as queue:
        await queue.limit(7)
        node = await make.node(connection)
        claimed = [row for number in range(7) for row in await queue.claim(connection, node, 1, number + 1)]
        later = await claimed_at(connection, claimed[-1].held.id) + 5 * MINUTE
        (found,) = (await jammed(queue.scope, later)).full
        await queue.limit(7, paused=True)
        paused = await jammed(queue.scope, later)
        await queue.limit(7)
        await connection.execute("delete from horai.instance_live where state = 0")
        idle = await jammed(queue.scope, later)

    assert [one.id for one in found.holders] == [row.held.id for row in claimed[:HOLDERS_NAMED]]
    assert (found.waiting, paused.full, idle.full) == (1, (), ())


async def test_calls_of_cancelled_instances_fill_a_queue_and_hide_no_run_that_holds_a_slot(
    url: str, connection: Superuser
) -> None:
    async with press(url, connection) as queue:
        await queue.limit(HOLDERS_NAMED + 1)
        node = await make.node(connection)
        claimed = [
            row.held.id for n in range(HOLDERS_NAMED + 1) for row in await queue.claim(connection, node, 1, n + 1)
        ]
        later = await claimed_at(connection, claimed[-1]) + 5 * MINUTE
        await connection.execute("delete from horai.instance_live where id = any ($1)", claimed[:-1])
        (some,) = (await jammed(queue.scope, later)).full
        await connection.execute("delete from horai.instance_live where id = $1", claimed[-1])
        (none,) = (await jammed(queue.scope, later)).full

    assert ([one.id for one in some.holders], none.holders) == (claimed[-1:], ())


async def test_a_clogged_queue_is_not_listed_as_a_full_one_too(url: str, connection: Superuser) -> None:
    async with press(url, connection) as queue:
        await queue.limit(1)
        (claimed,) = await queue.claim(connection, await make.node(connection), 5)
        began = await claimed_at(connection, claimed.held.id)

        before = await jammed(queue.scope, began + UNKNOWN)
        after = await jammed(queue.scope, began + UNKNOWN + SECOND)

    assert ([one.name for one in before.clogged], [one.name for one in before.full]) == ([], [QUEUE])
    assert ([one.name for one in after.clogged], [one.name for one in after.full]) == ([QUEUE], [])
    assert (before.full[0].waiting, after.clogged[0].waiting, before.ids) == (49, 49, after.ids)


async def test_instances_of_a_full_queue_are_not_told_a_second_time_as_late(url: str, connection: Superuser) -> None:
    async with press(url, connection) as queue:
        await queue.limit(1)
        await queue.claim(connection, await make.node(connection), 1)
        free = await make.job(queue.scope, "free")
        [elsewhere] = await make.many(queue.scope, 1, job=free.name)
        await connection.execute(
            "update horai.instance_live set fire_time = now() - interval '1 hour', due = now() - interval '1 hour'"
        )
        now = await connection.fetchval("select clock_timestamp()")
        found = await jammed(queue.scope, now)
        async with queue.scope.read() as own:
            late = await needs_attention.late_instances(own, 1, now - MINUTE, found.ids, 10)

    assert [one.name for one in found.full] == [QUEUE]
    assert [one.id for one in late] == [elsewhere]


async def test_the_queue_that_has_waited_longest_comes_first_and_the_number_has_a_limit(
    url: str, connection: Superuser
) -> None:
    async with make.scope(url) as scope:
        node = await make.node(connection)
        for name in ("a", "b", "c"):
            await make.job(scope, f"job-{name}", queue=name)
            [waits] = await make.many(scope, 1, job=f"job-{name}")
            await set_queue(scope, name, queues.QueueSettings(max_concurrency=1))
            await connection.execute(
                """update horai.queue_slot set instance_id = $1, fence = 1, node = $2, taken_at = now()
                   where queue_id = (select id from horai.queue where name = $3)""",
                *(waits, node, name),
            )
        await connection.execute("update horai.instance_live set due = due - interval '1 hour' where id = $1", waits)
        now = await connection.fetchval("select clock_timestamp()") + timedelta(hours=1)
        found = await jammed(scope, now, limit=2)

    assert [one.name for one in found.full] == ["c", "a"]


async def test_another_tenant_sees_no_full_queue_and_nothing_behind_a_stuck_run(
    url: str, connection: Superuser
) -> None:
    other = await connection.fetchval("insert into horai.tenant (name) values ('shop') returning id")
    async with press(url, connection) as queue:
        theirs = make.of_tenant(queue.scope, other, "shop")
        await queue.limit(1)
        (claimed,) = await queue.claim(connection, await make.node(connection), 5)
        later = await claimed_at(connection, claimed.held.id) + 10 * MINUTE

        assert (await jammed(queue.scope, later)).ids != []
        assert (await jammed(theirs, later)).ids == []
        async with acquire(make.platform(queue.scope)) as every:  # without row-level security, the statements decide
            assert (await full_queues.jammed_queues(every, other, later, later - MINUTE, 10)).ids == []
            found = await stuck.stuck_runs(every, 1, later + UNKNOWN, 10)
            (own,) = await full_queues.with_followers(every, 1, found)
            (foreign,) = await full_queues.with_followers(every, other, found)

    assert (own.waiting, foreign.waiting) == (49, 0)


async def test_a_stuck_run_is_told_with_the_instances_that_wait_in_its_queue_if_it_is_full(
    url: str, connection: Superuser
) -> None:
    async with press(url, connection) as queue:
        job = await connection.fetchval("select id from horai.job where name = 'publish'")
        await past(connection, job, SAMPLES, SECOND)
        await queue.limit(2)
        (claimed,) = await queue.claim(connection, await make.node(connection), 1)
        later = await claimed_at(connection, claimed.held.id) + 10 * MINUTE

        async def followers() -> list[tuple[int, int, int]]:
            async with queue.scope.read() as own:
                runs = await stuck.stuck_runs(own, 1, later, 10)
                found = await full_queues.with_followers(own, 1, runs)
            return [(one.stuck.run.id, one.waiting, one.blocks) for one in found]

        roomy = await followers()
        await queue.limit(1)

        assert (roomy, await followers()) == ([(claimed.held.id, 0, 0)], [(claimed.held.id, 49, 0)])


async def test_a_stuck_node_is_told_with_the_nodes_that_wait_for_it_directly_or_not(url: str) -> None:
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope, CHAIN), Orchestra(bench)
        band.answer("beside")
        run = await flows.start(bench.scope, bench.connection, made)
        load, clean = [await flows.instance_of(bench.connection, run, name) for name in ("load", "clean")]
        async with bench.scope.read() as connection:
            found = await full_queues.stuck_store.nodes_behind(connection, [load, clean, 1])

    assert found == {load: 2, clean: 1}
