"""Unique and debounced calls by SQL: decisions, races, rights, and rows that no longer count."""

import asyncio
from datetime import timedelta
from typing import Any

import asyncpg
import clients
import make
import pytest
import rows

from horai.core.outcome import Complete
from horai.db import claims, unique_calls
from horai.db.pool import Platform
from horai.db.unique_calls import prune_unique_calls
from horai.db.verify import verify

UNIQUE = "select decision, instance_id from horai.enqueue_unique('publish', $1::json, $2::interval)"
DEBOUNCED = "select decision, instance_id from horai.enqueue_debounced('publish', $1::json, $2::interval)"
NO_TIME, HOUR = timedelta(0), timedelta(hours=1)


@pytest.fixture(autouse=True)
def publish(url: str, runner: asyncio.Runner) -> None:
    """A job to call."""

    async def made() -> None:
        async with make.scope(url) as scope:
            await make.job(scope, payload={"of": "the job"})

    runner.run(made())


async def unique(connection: Platform, payload: str | None = "[1]", within: timedelta = NO_TIME) -> tuple[str, int]:
    row = await connection.fetchrow(UNIQUE, payload, within)
    assert row is not None
    return row["decision"], row["instance_id"]


async def debounced(connection: Platform, payload: str | None = "[1]", after: timedelta = HOUR) -> tuple[str, int]:
    row = await connection.fetchrow(DEBOUNCED, payload, after)
    assert row is not None
    return row["decision"], row["instance_id"]


async def finish(connection: Platform) -> int:
    """Claim and finish the due instances; return how many there were."""
    node = await make.node(connection)
    claimed = await make.claim(connection, node)
    await claims.finish_if_running(connection, node, [(row.held, Complete()) for row in claimed])
    return len(claimed)


async def count(connection: Platform, table: str = "instance_live") -> int:
    return await connection.fetchval(f"select count(*) from horai.{table}")


# Decisions


async def test_a_unique_call_gets_the_live_instance_of_the_same_arguments(connection: Platform) -> None:
    first = await unique(connection, '{"a": 1, "b": 2}')

    assert first[0] == "INSERTED"
    assert await unique(connection, '{"b":2,  "a":1}') == ("IGNORED", first[1])
    assert await unique(connection, '{"a": 1, "b": 3}') != ("IGNORED", first[1])
    assert (await unique(connection, None))[0] == "INSERTED"
    assert (await unique(connection, None))[0] == "IGNORED"
    assert await count(connection) == 3
    assert await finish(connection) == 3
    again = await unique(connection, '{"a": 1, "b": 2}')
    assert (again[0], again[1] > first[1]) == ("INSERTED", True)
    assert [finding for finding in await verify(connection) if finding.violations] == []


async def test_a_window_counts_from_the_first_call_also_after_its_end(connection: Platform) -> None:
    first = await unique(connection, within=HOUR)
    assert await finish(connection) == 1

    assert await unique(connection, within=HOUR) == ("IGNORED", first[1])
    assert await unique(connection) == ("IGNORED", first[1]), "the window of the first call counts"
    await connection.execute("update horai.unique_call set held_until = now() - interval '1 ms'")
    assert (await unique(connection, within=HOUR))[0] == "INSERTED"
    await connection.execute("update horai.unique_call set held_until = now() - interval '1 ms'")
    assert (await unique(connection, within=HOUR))[0] == "IGNORED", "its instance is live"


async def test_a_debounced_call_moves_the_instance_that_has_not_started(connection: Platform) -> None:
    first = await debounced(connection, after=HOUR)
    moved = await debounced(connection, after=2 * HOUR)

    assert (first[0], moved) == ("INSERTED", ("UPDATED", first[1]))
    live = await connection.fetchrow("select *, execute_time - now() as ahead from horai.instance_live")
    assert live is not None
    assert timedelta(minutes=119) < live["ahead"] < timedelta(hours=2, minutes=1)
    assert live["due"] >= live["execute_time"] == live["fire_time"]
    told = await connection.fetchrow("select kind, seq, data ->> 'was' as was from horai.event where seq is not null")
    assert told is not None
    assert (told["kind"], told["seq"], live["events"]) == ("INSTANCE_RESCHEDULED", 1, 1)
    assert [finding for finding in await verify(connection) if finding.violations] == []


async def test_a_debounced_call_leaves_an_instance_that_has_started_alone(connection: Platform) -> None:
    first = await debounced(connection)
    await connection.execute("update horai.instance_live set due = now()")
    node = await make.node(connection)
    (claimed,) = await make.claim(connection, node)

    second = await debounced(connection)

    assert (second[0], second[1] == first[1]) == ("INSERTED", False)
    assert await debounced(connection) == ("UPDATED", second[1])
    assert await claims.finish_if_running(connection, node, [(claimed.held, Complete())])
    assert await debounced(connection) == ("UPDATED", second[1])


async def test_unique_and_debounced_calls_do_not_see_each_other(connection: Platform) -> None:
    assert (await unique(connection))[0] == "INSERTED"
    assert (await debounced(connection))[0] == "INSERTED"


# Races


@pytest.mark.parametrize("call", [unique, debounced])
async def test_of_two_calls_at_once_the_second_waits_for_the_first(url: str, connection: Platform, call: Any) -> None:
    async with rows.connections(url, 2) as (first, second):
        async with first.transaction():
            made = await call(first)
            waiting = asyncio.create_task(call(second))
            await rows.until_blocked(connection, second)
        decision, instance = await waiting

    assert (made[0], instance) == ("INSERTED", made[1])
    assert decision == ("IGNORED" if call is unique else "UPDATED")
    assert await count(connection) == 1


async def test_a_call_that_is_rolled_back_makes_room_for_the_one_that_waits(url: str, connection: Platform) -> None:
    async with rows.connections(url, 2) as (first, second):
        transaction = first.transaction()
        await transaction.start()
        made = await unique(first)
        waiting = asyncio.create_task(unique(second))
        await rows.until_blocked(connection, second)
        await transaction.rollback()
        decision, instance = await waiting

    assert (decision, instance == made[1]) == ("INSERTED", False)
    assert await count(connection) == await count(connection, "unique_call") == 1


async def test_a_call_that_waited_sees_the_instance_that_took_the_place_of_an_ended_one(
    url: str, connection: Platform
) -> None:
    """The row exists, and its instance has ended: a look at both in one snapshot would miss the new instance."""
    await unique(connection)
    assert await finish(connection) == 1
    async with rows.connections(url, 2) as (first, second):
        async with first.transaction():
            made = await unique(first)
            waiting = asyncio.create_task(unique(second))
            await rows.until_blocked(connection, second)
        assert await waiting == ("IGNORED", made[1])

    assert await count(connection) == 1


async def test_a_debounced_call_that_waits_for_a_claim_adds_another_instance(url: str, connection: Platform) -> None:
    first = await debounced(connection)
    await connection.execute("update horai.instance_live set due = now()")
    node = await make.node(connection)
    async with rows.connections(url, 2) as (claiming, calling):
        async with claiming.transaction():
            assert len(await make.claim(claiming, node)) == 1
            waiting = asyncio.create_task(debounced(calling))
            await rows.until_blocked(connection, calling)
        decision, instance = await waiting

    assert (decision, instance == first[1]) == ("INSERTED", False)


async def test_batches_in_other_orders_do_not_wait_for_each_other_for_ever(url: str, connection: Platform) -> None:
    job, lane = await connection.fetchrow("select id, lane_id from horai.job") or (0, 0)
    payloads = [f"[{n}]" for n in range(50)]
    call = (
        "select ordinal, verdict, chosen from horai.add_calls($1, 1, $2, null, false, array_fill(1::smallint, array[50]),"
        " array_fill(null::bytea, array[50]), array_fill(null::timestamptz, array[50]), $3::json[],"
        " array_fill(interval '0', array[50])) order by ordinal"
    )
    async with rows.connections(url, 6) as callers:
        answers = await asyncio.gather(
            *(
                caller.fetch(call, job, lane, payloads if number % 2 else payloads[::-1])
                for number, caller in enumerate(callers)
            )
        )

    forward = {
        tuple(row["chosen"] for row in answer[:: 1 if number % 2 else -1]) for number, answer in enumerate(answers)
    }
    assert len(forward) == 1
    assert await count(connection) == 50


# Rows that no longer count


async def test_calls_are_forgotten_when_the_window_is_over_and_the_instance_has_ended(connection: Platform) -> None:
    for payload, within in (("1", NO_TIME), ("2", HOUR), ("3", NO_TIME)):
        await unique(connection, payload, within)
    await finish(connection)
    await unique(connection, "4")  # live

    position = unique_calls.BEGINNING
    while (position := await prune_unique_calls(connection, position, 1)) != unique_calls.BEGINNING:
        pass

    kept = await connection.fetch("select held_until > now() as is_open from horai.unique_call order by 1")
    assert [row["is_open"] for row in kept] == [False, True]
    assert (await unique(connection, "4"))[0] == "IGNORED"
    assert (await unique(connection, "2", HOUR))[0] == "IGNORED"


async def test_a_call_that_gets_another_instance_meanwhile_is_not_forgotten(url: str, connection: Platform) -> None:
    await unique(connection)
    await finish(connection)
    async with rows.connections(url, 1) as (calling,):
        async with calling.transaction():
            made = await unique(calling)
            assert await prune_unique_calls(connection, unique_calls.BEGINNING, 10) == unique_calls.BEGINNING
    assert await prune_unique_calls(connection, unique_calls.BEGINNING, 10) == unique_calls.BEGINNING
    assert await unique(connection) == ("IGNORED", made[1])


# Refusals and rights


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("horai.enqueue_unique('publish', '1', interval '8 days')", "within: is not between 0s and 7d"),
        ("horai.enqueue_unique('publish', '1', interval '-1 s')", "within: is not between 0s and 7d"),
        ("horai.enqueue_unique('publish', '1', null)", "within: is not between 0s and 7d"),
        ("horai.enqueue_debounced('publish', '1')", "debounce: is not between 1ms and 7d"),
        ("horai.enqueue_debounced('publish', '1', interval '0')", "debounce: is not between 1ms and 7d"),
        ("horai.enqueue_unique('nothing')", "There is no job"),
        ("horai.enqueue_unique('publish', 'x')", "payload: is not JSON"),
    ],
)
async def test_wrong_arguments_are_refused(connection: Platform, call: str, said: str) -> None:
    with pytest.raises(asyncpg.PostgresError, match=said):
        await connection.fetch(f"select * from {call}")
    assert await count(connection, "unique_call") == 0


async def test_a_client_may_call_them_and_nothing_below_them(url: str, connection: Platform) -> None:
    async with clients.role(connection, url) as (_, session):
        made = await session.fetchrow("select * from horai.enqueue_unique('publish', '{\"n\": 1}')")
        assert made is not None
        assert made["decision"] == "INSERTED"
        assert (
            await session.fetchval("select decision from horai.enqueue_debounced('publish', '1', '1 h')") == "INSERTED"
        )
        for statement in ("select * from horai.unique_call", "select horai.call_digest('1')"):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await session.fetch(statement)
    async with clients.role(connection, url, granted=False) as (_, session):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await session.fetch("select * from horai.enqueue_unique('publish')")


async def test_a_wake_follows_the_commit_of_a_new_or_moved_instance_only(url: str, connection: Platform) -> None:
    heard: list[str] = []
    async with rows.connections(url, 1) as (listening,):
        await listening.add_listener("horai_wake", lambda *told: heard.append(str(told[-1])))
        for call in (unique, unique):
            await call(connection)
        await debounced(connection, after=timedelta(seconds=5))
        await debounced(connection, after=timedelta(seconds=1))
        await connection.execute("select pg_notify('horai_wake', 'end')")

        async def has_ended() -> bool:
            await listening.execute("select 1")
            return "end" in heard

        await rows.until(has_ended)

    assert len([each for each in heard if each.startswith("w:")]) == 3
