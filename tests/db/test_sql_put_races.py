"""Seed 000 by SQL: what the function makes of a key that others change at the same time."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import make
import pytest
import rows

from horai.core.outcome import Complete
from horai.core.states import CancelReason
from horai.db import claims
from horai.db import instances as plans
from horai.db.claims import ClaimedRow
from horai.db.pool import Platform
from horai.db.verify import verify

NOW = datetime.now(UTC).replace(microsecond=0)
PAST, SOON, LATER = NOW - timedelta(hours=1), NOW + timedelta(hours=1), NOW + timedelta(hours=2)
KEY = "article:42"
CALL = "select * from horai.put_instance($1, $2, $3, $4, $5, $6)"

Change = Callable[[Platform, ClaimedRow], Awaitable[object]]


async def put(connection: Platform, at: datetime = LATER, **arguments: Any) -> Any:
    return await connection.fetchrow(
        CALL, "publish", KEY, at, None, arguments.get("version"), arguments.get("again", False)
    )


async def put_while(url: str, change: Change, *, running: bool) -> tuple[Any, ClaimedRow]:
    """A put that has to wait for `change`, which commits while the put waits."""
    async with make.scope(url) as scope, rows.connections(url, 3) as (watching, changing, putting):
        await make.job(scope)
        await make.put(scope, KEY)
        node = await make.node(watching)
        claimed = (await make.claim(watching, node)) if running else []
        async with changing.transaction():
            if not running:
                claimed = await make.claim(changing, node)
            await change(changing, claimed[0])
            answer = asyncio.create_task(put(putting))
            await rows.until_blocked(watching, putting)
        return await answer, claimed[0]


async def nothing(connection: Platform, claimed: ClaimedRow) -> None:
    """The claim itself is the change."""


async def succeed(connection: Platform, claimed: ClaimedRow) -> None:
    assert await claims.finish_if_running(connection, claimed.held.node, [(claimed.held, Complete())])


async def cancel(connection: Platform, claimed: ClaimedRow) -> None:
    assert await plans.cancel_live(connection, [claimed.held.id], CancelReason.USER, running=True)


async def vanish(connection: Platform, claimed: ClaimedRow) -> None:
    await connection.execute("delete from horai.instance_live where id = $1", claimed.held.id)


async def live(connection: Platform) -> list[Any]:
    return await connection.fetch("select * from horai.instance_live order by id")


async def test_A12_a_put_supersedes_an_instance_that_is_claimed_during_the_put(url: str, connection: Platform):
    answer, claimed = await put_while(url, nothing, running=False)

    (row,) = await live(connection)
    assert (answer["decision"], answer["instance_id"]) == ("SUPERSEDED", row["id"])
    assert (row["supersedes"], row["execute_time"], row["fence"]) == (claimed.held.id, LATER, claimed.held.fence)


async def test_A10_A12_a_put_is_ignored_if_the_instance_succeeds_during_the_put(url: str, connection: Platform):
    answer, claimed = await put_while(url, succeed, running=True)

    assert (answer["decision"], answer["instance_id"], answer["state"]) == ("IGNORED", claimed.held.id, "SUCCESS")
    assert await live(connection) == []


@pytest.mark.parametrize("change", [cancel, vanish])
async def test_A12_a_put_inserts_an_instance_if_the_old_one_is_cancelled_or_vanishes_during_the_put(
    url: str, connection: Platform, change: Change
):
    answer, claimed = await put_while(url, change, running=True)

    (row,) = await live(connection)
    assert (answer["decision"], answer["instance_id"]) == ("INSERTED", row["id"])
    assert row["id"] != claimed.held.id


@pytest.mark.parametrize("commits", [True, False])
async def test_A12_a_key_inserted_meanwhile_is_decided_again(url: str, connection: Platform, commits: bool):
    async with make.scope(url) as scope, rows.connections(url, 2) as (first, second):
        await make.job(scope)
        transaction = first.transaction()
        await transaction.start()
        made = await put(first, SOON)
        waiting = asyncio.create_task(put(second))
        await rows.until_blocked(connection, second)
        await (transaction.commit() if commits else transaction.rollback())
        answer = await waiting

        (row,) = await live(connection)
        assert row["execute_time"] == LATER, "the last intent is not lost"
        assert answer["decision"] == ("UPDATED" if commits else "INSERTED")
        assert (answer["instance_id"] == made["instance_id"]) == commits


async def test_A2_concurrent_creates_of_one_key_make_one_live_row(url: str, connection: Platform):
    async with make.scope(url) as scope, rows.connections(url, 20) as callers:
        await make.job(scope)

        answers = await asyncio.gather(*(put(each, SOON + timedelta(seconds=n)) for n, each in enumerate(callers)))

        (row,) = await live(connection)
        assert sorted(answer["decision"] for answer in answers) == ["INSERTED"] + ["UPDATED"] * 19
        assert {answer["instance_id"] for answer in answers} == {row["id"]}


async def test_A9_cancel_and_insert_are_one(url: str, connection: Platform):
    """Outside a transaction too: a function call is one statement."""
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.running(scope, connection)
        before = await rows.everything(connection)
        await connection.execute(
            "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$;"
            "create trigger refuse before insert on horai.instance_live for each row execute function refuse()"
        )
        with pytest.raises(Exception, match="no"):
            await put(connection)

        assert await rows.everything(connection) == before


async def test_I10_I11_verify_finds_no_violation_after_sql_puts_claims_and_a_cancel(url: str, connection: Platform):
    """As `horai db verify` asks it."""
    async with make.scope(url) as scope:
        await make.job(scope)
        node = await make.node(connection)
        for n in range(12):
            await put(connection, PAST if n % 3 else LATER, version=n)
            await make.claim(connection, node)
        await connection.fetch("select horai.cancel_instance('publish', $1)", KEY)

        assert [finding for finding in await verify(connection) if finding.examples] == []
