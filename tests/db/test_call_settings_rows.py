"""The settings of a call in the database: claims of every kind pass expired rows, and the functions of SQL clients."""

import asyncio
from datetime import UTC, datetime, timedelta

import asyncpg
import clients
import make
import pytest
from databases import Superuser
from stages import workbench

from horai.core.call_settings import CallExpiry, CallSettings
from horai.core.job import Priority
from horai.core.limits import SHARDS
from horai.core.queue import QueueSettings
from horai.core.wakes import ExpiriesWake, from_text
from horai.db import call_settings, claims, concurrency_keys, queues
from horai.db.claims import ClaimedBy, Position
from horai.db.pool import Platform, connect
from horai.engine.expirer import OFTEN, Expirer
from horai.operations import queues as setting
from horai.operations.call_settings import place_calls

SPAN = CallSettings(expiry=CallExpiry(after=timedelta(milliseconds=1)))


async def positions(connection: Platform) -> list[Position]:
    return [
        Position(shard, lane, make.LONG_AGO, -1) for lane in await make.lanes(connection) for shard in range(SHARDS)
    ]


async def expired(connection: Platform, url: str) -> tuple[int, int]:
    """Add an instance that has expired and one that has not; return their ids."""
    async with make.scope(url) as scope:
        await make.job(scope)
        gone, kept = await make.many(scope, 2)
        async with scope.write() as own:
            await place_calls(own, {gone: SPAN}, are_new=False)
    await connection.execute("update horai.instance_live set expires_at = clock_timestamp() where id = $1", gone)
    return gone, kept


async def test_every_kind_of_claim_passes_an_expired_row(url: str, connection: Superuser) -> None:
    _, kept = await expired(connection, url)
    node, scans = await make.node(connection), await positions(connection)
    by = ClaimedBy(node, 1, datetime.now(UTC))

    ahead = await claims.next_due(connection, scans, 10)
    keyed = await concurrency_keys.claim_keyed(connection, by, scans, [10] * len(scans))
    await connection.execute("update horai.instance_live set state = 0, node = null, claim = null, claimed_at = null")
    plain = await make.claim(connection, node, 10, 2)

    assert sum(len(times) for _, _, times in ahead) == 1
    assert ([row.held.id for row in keyed], [row.held.id for row in plain]) == ([kept], [kept])


async def test_a_claim_of_a_limited_queue_passes_expired_rows_and_gives_no_permit_away(
    url: str, connection: Superuser
) -> None:
    _, kept = await expired(connection, url)
    async with make.scope(url) as scope:
        await setting.set_queue(scope, "default", QueueSettings(max_concurrency=1))
    node, scans = await make.node(connection), await positions(connection)
    queue = await connection.fetchval("select id from horai.queue where name = 'default'")

    claimed = await queues.claim_limited(connection, ClaimedBy(node, 1, datetime.now(UTC)), queue, scans, 1)

    assert [row.held.id for row in claimed] == [kept]


async def test_the_expirer_ends_what_does_not_run_and_leaves_what_runs(url: str, connection: Superuser) -> None:
    gone, kept = await expired(connection, url)
    await make.claim(connection, await make.node(connection))
    await connection.execute("update horai.instance_live set expires_at = clock_timestamp()")

    assert (await call_settings.expire_waiting(connection, 10)).ids == [gone]
    left = await call_settings.expire_waiting(connection, 10)
    assert (left.ids, left.next_at is None) == ([], False)
    ended = await connection.fetchrow("select state, reason, expires_at is null from horai.instance_history")
    assert ended is not None
    assert tuple(ended) == (5, 7, False)
    assert await make.state(connection, kept) == "RUNNING"


async def test_the_expirer_rests_until_the_next_expiry(url: str, connection: Superuser) -> None:
    _, kept = await expired(connection, url)
    async with workbench(url) as bench:
        expirer, now = Expirer(bench.line("expirer"), bench.scope.wakeups, bench.settings), bench.clock.now()
        assert await expirer.step(now) == now + bench.settings.sweep  # one has gone, and the other never expires

        soon = now + timedelta(seconds=7)
        await connection.execute("update horai.instance_live set expires_at = $1 where id = $2", soon, kept)
        assert await expirer.step(now) == soon

        await make.claim(connection, await make.node(connection))
        await connection.execute("update horai.instance_live set expires_at = clock_timestamp() where id = $1", kept)
        assert await expirer.step(now + timedelta(minutes=1)) == now + timedelta(minutes=1) + OFTEN


@pytest.mark.parametrize("given", [SPAN, CallSettings(expiry=CallExpiry(at=datetime(2099, 1, 1, tzinfo=UTC)))])
async def test_a_call_with_an_expiry_wakes_the_expirers_of_all_processes(
    url: str, connection: Superuser, given: CallSettings
) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()
    async with make.scope(url) as scope:
        await make.job(scope)
        (made,) = await make.many(scope, 1)
        await connection.add_listener("horai_wake", lambda *told: heard.put_nowait(str(told[3])))
        async with scope.write() as own:
            await place_calls(own, {made: given}, are_new=False)
        async with asyncio.timeout(10):
            while ExpiriesWake() not in from_text(await heard.get()):
                pass


async def test_an_expirer_and_a_claim_at_once_give_an_instance_one_fate(url: str, connection: Superuser) -> None:
    gone, _ = await expired(connection, url)
    node = await make.node(connection)
    other = await connect(url, "horai test")
    try:
        async with connection.transaction():
            await connection.execute("select from horai.instance_live where id = $1 for update", gone)
            assert (await call_settings.expire_waiting(other, 10)).ids == []
        ended, claimed = await asyncio.gather(call_settings.expire_waiting(other, 10), make.claim(connection, node, 10))
    finally:
        await other.close()
    assert ended.ids == [gone]
    assert gone not in [row.held.id for row in claimed]


async def test_two_calls_at_once_make_one_lane(url: str, connection: Platform) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        await setting.set_queue(scope, "bulk", QueueSettings())
        ids = await make.many(scope, 20)

        async def place(instance_id: int) -> None:
            async with scope.write() as own:
                settings = CallSettings(queue="bulk", priority=Priority.low)
                await place_calls(own, {instance_id: settings}, are_new=False)

        await asyncio.gather(*map(place, ids))
    assert await connection.fetchval("select count(*) from horai.lane where queue = 'bulk'") == 1
    assert await connection.fetchval("select count(distinct lane) from horai.instance_live") == 1


async def test_an_sql_client_adds_an_instance_with_its_settings(url: str, connection: Superuser) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        await setting.set_queue(scope, "bulk", QueueSettings())
    async with clients.role(connection, url) as (_, session):
        await session.execute(
            "select horai.enqueue_with('publish', '{}'::json, queue => 'bulk', priority => 'low', expires => '1 hour', "
            "concurrency_key => 'a')"
        )
        await session.execute(
            "select horai.set_call_options('publish', array[instance_id], priority => 'core', are_new => true) "
            "from horai.put_instance('publish', 'k', clock_timestamp() + interval '1 hour')"
        )
    found = await connection.fetch(
        "select key, lane.queue, lane.priority, expires_at - fire_time as life, concurrency_key "
        "from horai.instance_live live join horai.lane on lane.id = live.lane order by key nulls first"
    )
    assert [tuple(row) for row in found] == [
        (None, "bulk", 3, timedelta(hours=1), "a"),
        ("k", "default", 0, None, None),
    ]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("queue => 'nowhere'", "queue: 'nowhere' does not exist"),
        ("queue => '*'", r"queue: '\*' does not exist"),
        ("priority => 'urgent'", "priority: 'urgent' is not one of"),
        ("expires => '0'", "expires: is not between"),
        ("expires => '366 days'", "expires: is not between"),
        ("expires_at => '2001-01-01Z'", "expires_at: is not after"),
        ("expires => '1 hour', expires_at => '2036-01-01Z'", "cannot be combined"),
    ],
)
async def test_an_sql_client_cannot_give_a_wrong_setting(url: str, connection: Platform, given: str, told: str) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
    with pytest.raises(asyncpg.PostgresError, match=told):
        await connection.execute(f"select horai.enqueue_with('publish', null::json, {given})")
    assert await connection.fetchval("select count(*) from horai.instance_live") == 0
