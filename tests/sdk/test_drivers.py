"""`conn=`: each kind of connection takes instances into its owner's transaction, and leaves it theirs."""

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import make
import psycopg
import pytest
import rows
import sqlalchemy
from callers import KINDS, Caller, django_opened
from django.db import connection as django_connection
from ears import Ear, ear
from sqlalchemy.ext.asyncio import create_async_engine

from horai.core.errors import Forbidden, HoraiError, Invalid, NotFound, TooLarge
from horai.core.limits import PAYLOAD_LIMIT, SHARDS
from horai.core.put import PutDecision, PutOptions
from horai.core.states import State
from horai.core.wakes import LaneWake
from horai.db import caller_transaction
from horai.db.pool import GONE, Platform
from horai.sdk import drivers

HOUR = timedelta(hours=1)
SYNC = {"psycopg", "psycopg_raw", "django_proxy", "django_wrapper"} | {
    f"sqlalchemy_{kind}" for kind in ("connection", "session", "scoped_session")
}


@pytest.fixture
def lane(url: str, runner: asyncio.Runner) -> int:
    """The lane of a job `publish`."""

    async def made() -> int:
        async with make.scope(url) as scope:
            return (await make.job(scope, payload={"of": "the job"})).lane_id

    return runner.run(made())


@pytest.fixture
def listening(url: str, runner: asyncio.Runner) -> Iterator[Ear]:
    opened = ear(url)
    yield runner.run(opened.__aenter__())
    runner.run(opened.__aexit__(None, None, None))


@pytest.fixture(params=KINDS)
def caller(request: pytest.FixtureRequest, url: str, lane: int, runner: asyncio.Runner) -> Iterator[Caller]:
    with KINDS[request.param](url, runner) as opened:
        yield opened


def live(connection: Platform, runner: asyncio.Runner) -> list[Any]:
    return runner.run(connection.fetch("select * from horai.instance_live order by id"))


def test_E2_E3_an_instance_is_there_and_its_wake_sent_with_the_callers_commit(
    caller: Caller, lane: int, listening: Ear, connection: Platform, runner: asyncio.Runner
):
    caller.begin()
    made = caller.ask(caller_transaction.enqueue("publish", (None, None)))
    assert live(connection, runner) == []
    assert runner.run(listening.heard()) == []

    caller.commit()

    (row,) = live(connection, runner)
    assert (row["id"], row["execute_time"]) == (made.instance_id, made.execute_time)
    assert json.loads(row["payload"]) == {"of": "the job"}
    assert runner.run(listening.wakes()) == [LaneWake(made.instance_id % SHARDS, lane, row["due"])]


def test_E2_E3_a_rolled_back_transaction_leaves_no_row_and_sends_no_wake(
    caller: Caller, listening: Ear, connection: Platform, runner: asyncio.Runner
):
    caller.begin()
    caller.ask(caller_transaction.enqueue("publish", (None, "1")))
    caller.ask(caller_transaction.enqueue_many("publish", [(None, "1"), (None, None)]))
    caller.ask(caller_transaction.put("publish", "article:42", None, None, PutOptions()))
    caller.rollback()

    assert live(connection, runner) == []
    assert runner.run(listening.heard()) == []


def test_E2_every_verb_says_in_the_callers_transaction_what_it_says_elsewhere(
    caller: Caller, connection: Platform, runner: asyncio.Runner
):
    at = datetime(2050, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    caller.begin()
    first = caller.ask(caller_transaction.put("publish", "artículo:42", at, '{"n": 1}', PutOptions(version=7)))
    again = caller.ask(caller_transaction.put("publish", "artículo:42", at + HOUR, None, PutOptions(version=8)))
    older = caller.ask(caller_transaction.put("publish", "artículo:42", at, None, PutOptions(version=6, again=True)))
    ids = caller.ask(
        caller_transaction.enqueue_many("publish", [(at, '"a"'), (None, None), (None, '{"b": [1, "ü%:x$1"]}')])
    )
    none = caller.ask(caller_transaction.enqueue_many("publish", []))
    gone = caller.ask(caller_transaction.cancel("publish", "artículo:42"))
    nobody = caller.ask(caller_transaction.cancel("publish", "artículo:42"))
    caller.commit()

    assert first == caller_transaction.PutAnswer(PutDecision.INSERTED, first.instance_id, State.INIT, at)
    assert again == caller_transaction.PutAnswer(PutDecision.UPDATED, first.instance_id, State.INIT, at + HOUR)
    assert older == caller_transaction.PutAnswer(PutDecision.IGNORED, first.instance_id, State.INIT, at + HOUR)
    assert gone == caller_transaction.CancelAnswer(first.instance_id, State.INIT)
    assert (none, nobody) == ([], None)
    stored = {row["id"]: json.loads(row["payload"]) for row in live(connection, runner)}
    assert [stored[id_] for id_ in ids] == ["a", {"of": "the job"}, {"b": [1, "ü%:x$1"]}]


REFUSED: list[tuple[caller_transaction.Query[Any], type[HoraiError], str | None]] = [
    (caller_transaction.enqueue("nobody", (None, None)), NotFound, "job"),
    (caller_transaction.put("publish", "k" * 513, None, None, PutOptions()), Invalid, "key"),
    (caller_transaction.enqueue("publish", (datetime(9001, 1, 1, tzinfo=UTC), None)), Invalid, "execute_time"),
    (caller_transaction.enqueue("publish", (None, json.dumps("x" * PAYLOAD_LIMIT))), TooLarge, "payload"),
]


def test_E2_a_refused_call_leaves_the_callers_transaction_as_it_was(
    caller: Caller, connection: Platform, runner: asyncio.Runner
):
    caller.begin()
    first = caller.ask(caller_transaction.enqueue("publish", (None, None)))
    for question, refusal, field in REFUSED:
        with pytest.raises(refusal) as told:
            caller.ask(question)
        assert told.value.hint
        assert [error.field for error in told.value.errors] == [field]
    with pytest.raises(Exception, match="invalid input syntax for type json"):
        caller.ask(caller_transaction.enqueue("publish", (None, "this is no json")))
    caller.execute("create table theirs ()")
    last = caller.ask(caller_transaction.enqueue("publish", (None, None)))
    caller.commit()

    assert [row["id"] for row in live(connection, runner)] == [first.instance_id, last.instance_id]
    assert runner.run(connection.fetchval("select to_regclass('theirs') is not null"))


def test_E2_another_isolation_is_refused_with_a_clear_word(caller: Caller):
    caller.begin()
    caller.execute("set transaction isolation level repeatable read")
    with pytest.raises(Invalid, match=r"REPEATABLE READ.*READ COMMITTED only"):
        caller.ask(caller_transaction.enqueue("publish", (None, None)))
    caller.execute("select 1")
    caller.rollback()


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_says_whether_it_blocks(kind: str, url: str, runner: asyncio.Runner):
    with KINDS[kind](url, runner) as caller:
        assert drivers.is_sync(caller.conn) == (kind in SYNC)


@pytest.mark.parametrize("kind", sorted(set(KINDS) - SYNC))
def test_a_call_that_cannot_wait_refuses_what_must_be_waited_for(kind: str, url: str, runner: asyncio.Runner):
    with KINDS[kind](url, runner) as caller, pytest.raises(Invalid, match="asynchronous"):
        drivers.fetch_now(caller.conn, caller_transaction.cancel("publish", "article:42"))


@pytest.mark.parametrize("kind", sorted(SYNC - {"django_proxy", "django_wrapper"}))
def test_a_call_that_waits_takes_a_connection_that_blocks(
    kind: str, url: str, lane: int, connection: Platform, runner: asyncio.Runner
):
    """Django's own refuses to be used where a loop runs."""
    with KINDS[kind](url, runner) as caller:
        runner.run(drivers.fetch(caller.conn, caller_transaction.enqueue("publish", (None, None))))
        caller.commit()

    assert len(live(connection, runner)) == 1


# Without a transaction

QUESTION = caller_transaction.enqueue("publish", (None, None))
MISSING = "no open transaction"


def test_E2_without_a_transaction_asyncpg_adds_nothing(
    url: str, lane: int, connection: Platform, runner: asyncio.Runner
):
    with pytest.raises(Invalid, match=MISSING) as refused:
        runner.run(drivers.fetch(connection, QUESTION))

    assert "conn=" in str(refused.value.hint)
    assert live(connection, runner) == []


def test_E2_without_a_transaction_psycopg_adds_nothing(
    url: str, lane: int, connection: Platform, runner: asyncio.Runner
):
    with psycopg.connect(url, autocommit=True) as conn:
        with pytest.raises(Invalid, match=MISSING):
            drivers.fetch_now(conn, QUESTION)
        assert live(connection, runner) == []

        with conn.transaction():
            drivers.fetch_now(conn, QUESTION)
    assert len(live(connection, runner)) == 1


def test_E2_without_a_transaction_sqlalchemy_adds_nothing(
    url: str, lane: int, connection: Platform, runner: asyncio.Runner
):
    address = sqlalchemy.make_url(url)
    engine = sqlalchemy.create_engine(address.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with engine.connect() as conn, pytest.raises(Invalid, match=MISSING):
        drivers.fetch_now(conn, QUESTION)
    engine.dispose()

    async def asynchronously() -> None:
        engine = create_async_engine(address.set(drivername="postgresql+asyncpg"), isolation_level="AUTOCOMMIT")
        async with engine.connect() as conn:
            with pytest.raises(Invalid, match=MISSING):
                await drivers.fetch(conn, QUESTION)
        await engine.dispose()

    runner.run(asynchronously())
    assert live(connection, runner) == []


def test_E2_without_a_transaction_django_adds_nothing(
    url: str, lane: int, connection: Platform, runner: asyncio.Runner
):
    with django_opened(url), pytest.raises(Invalid, match=MISSING):
        drivers.fetch_now(django_connection, QUESTION)

    assert live(connection, runner) == []


# What is no connection to a Horai


@pytest.mark.parametrize("conn", [None, "postgresql://", object()], ids=["none", "url", "object"])
def test_an_object_that_is_not_a_database_connection_is_refused_with_a_hint(conn: object):
    with pytest.raises(Invalid, match="conn: must be a database connection, not") as refused:
        drivers.is_sync(conn)

    assert "psycopg" in str(refused.value.hint)


def test_an_engine_or_a_pool_is_no_connection(url: str, runner: asyncio.Runner):
    engine = sqlalchemy.create_engine(sqlalchemy.make_url(url).set(drivername="postgresql+psycopg"))
    with pytest.raises(Invalid, match=r"sqlalchemy.engine.base.Engine"):
        drivers.fetch_now(engine, QUESTION)


async def test_a_database_without_horai_is_told_apart(connection: Platform):
    async with connection.transaction():
        await connection.execute("alter schema horai rename to elsewhere")
        with pytest.raises(Invalid, match="does not have this version of Horai"):
            await drivers.fetch(connection, QUESTION)
        assert await connection.fetchval("select 1") == 1


async def test_a_role_that_was_granted_nothing_is_told_who_can_help(connection: Platform, lane: int):
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute("create role stranger; set local role stranger")
    with pytest.raises(Forbidden) as refused:
        await drivers.fetch(connection, QUESTION)
    await transaction.rollback()

    assert "grant_client" in str(refused.value.hint)


async def test_E2_a_connection_that_decodes_json_itself_will_do(connection: Platform, lane: int):
    await connection.set_type_codec("json", schema="pg_catalog", encoder=json.dumps, decoder=json.loads)
    async with connection.transaction():
        await drivers.fetch(connection, caller_transaction.enqueue("publish", (None, '{"a": 1}')))

    assert await connection.fetchval("select payload::text from horai.instance_live") == '{"a": 1}'


async def test_E2_a_cancelled_call_leaves_the_callers_transaction_as_it_was(url: str, connection: Platform, lane: int):
    put = caller_transaction.put("publish", "article:42", None, None, PutOptions())
    async with rows.connections(url, 1) as (other,):
        async with other.transaction(), connection.transaction():
            await drivers.fetch(other, put)
            waiting = asyncio.create_task(drivers.fetch(connection, put))
            await rows.until_blocked(other, connection)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await drivers.fetch(connection, caller_transaction.put("publish", "article:43", None, None, PutOptions()))

        assert await connection.fetch("select key from horai.instance_live order by key") == [
            ("article:42",),
            ("article:43",),
        ]


async def test_a_lost_connection_is_told_in_the_drivers_words(url: str, connection: Platform, lane: int):
    async with rows.connections(url, 1) as (conn,):
        await conn.execute("begin")
        await connection.execute("select pg_terminate_backend($1)", conn.get_server_pid())

        with pytest.raises((asyncpg.PostgresError, *GONE)):
            await drivers.fetch(conn, QUESTION)


def test_a_time_without_a_zone_is_refused():
    with pytest.raises(Invalid, match="at: has no time zone"):
        caller_transaction.enqueue("publish", (datetime(2050, 1, 1), None))  # noqa: DTZ001 — that is the point


@pytest.mark.parametrize("key", ["a\x00b", "\ud800"])
def test_a_key_that_no_text_can_hold_is_refused_at_once(key: str):
    with pytest.raises(Invalid, match="key: a string contains"):
        caller_transaction.cancel("publish", key)
