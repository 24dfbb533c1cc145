"""The SQL functions: what they take, and what they refuse."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import make
import pytest
import rows

from horai.core.limits import KEY_LIMIT, NESTING_LIMIT, PAYLOAD_LIMIT, SHARDS
from horai.core.states import State
from horai.db.pool import Platform
from horai.operations import jobs

NOT_FOUND, TOO_LARGE, INVALID = "HR404", "HR413", "HR422"


@pytest.fixture(autouse=True)
def publish(url: str, runner: asyncio.Runner) -> None:
    """A job to add instances to."""

    async def made() -> None:
        async with make.scope(url) as scope:
            await make.job(scope, payload={"of": "the job"})

    runner.run(made())


async def refused(connection: Platform, statement: str, *arguments: object) -> asyncpg.PostgresError:
    """The error of a call that is refused in our words."""
    with pytest.raises(asyncpg.PostgresError, match=r"\.") as told:
        await connection.fetch(statement, *arguments)
    return told.value


async def enqueue(connection: Platform, payload: str | None, at: datetime | None = None) -> Any:
    return await connection.fetchrow("select * from horai.enqueue('publish', $1, $2)", payload, at)


PUT = "select * from horai.put_instance('publish', $1, $2, $3, $4)"


# What they make


async def test_E2_an_enqueued_instance_is_due_now_or_at_the_time_it_was_given(connection: Platform):
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    before = await connection.fetchval("select date_trunc('milliseconds', clock_timestamp())")

    now, then = await enqueue(connection, None), await enqueue(connection, '{"n": 1}', at)

    made = await connection.fetch("select * from horai.instance_live order by id")
    assert [row["id"] for row in made] == [now["instance_id"], then["instance_id"]]
    assert [row["execute_time"] for row in made] == [now["execute_time"], at]
    assert [json.loads(row["payload"]) for row in made] == [{"of": "the job"}, {"n": 1}]
    assert before <= made[0]["execute_time"] <= made[0]["due"]
    assert made[1]["due"] == at
    assert all(row["shard"] == row["id"] % SHARDS for row in made)


async def test_many_instances_are_made_in_the_order_of_their_payloads(connection: Platform):
    at = datetime(2050, 1, 1, tzinfo=UTC)
    payloads = [str(n) if n % 3 else None for n in range(1000)]
    times = [at + timedelta(seconds=n) for n in range(1000)]

    ids = await connection.fetch("select horai.enqueue_many('publish', $1, $2) as id", payloads, times)

    made = {row["id"]: row for row in await connection.fetch("select * from horai.instance_live")}
    stored = [made[row["id"]] for row in ids]
    assert [row["execute_time"] for row in stored] == times
    assert [row["payload"] for row in stored] == [text or '{"of": "the job"}' for text in payloads]
    assert all(row["shard"] == row["id"] % SHARDS for row in stored)


async def test_no_payloads_make_no_instances(connection: Platform):
    for none in ("'{}'", "null"):
        assert await connection.fetch(f"select horai.enqueue_many('publish', {none})") == []


async def test_a_job_goes_by_its_name_or_by_its_id(connection: Platform):
    job_id = await connection.fetchval("select id from horai.job")

    await connection.fetch("select horai.enqueue($1)", str(job_id))

    assert await connection.fetchval("select job_id from horai.instance_live") == job_id


async def test_instances_of_a_paused_job_are_parked(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await jobs.pause_job(scope, "publish", None)
    await connection.fetch("select horai.put_instance('publish', 'k'), horai.enqueue('publish')")
    await connection.fetch("select horai.enqueue_many('publish', '{1}')")

    assert await connection.fetch("select distinct lane from horai.instance_live") == [(0,)]


async def test_the_tenant_is_a_setting(connection: Platform):
    await connection.execute("insert into horai.tenant (name) values ('acme')")
    await connection.execute("set horai.tenant = 'acme'")
    missing = await refused(connection, "select horai.enqueue('publish')")
    number = await connection.fetchval("select id::text from horai.job")
    by_number = await refused(connection, f"select horai.enqueue('{number}')")
    await connection.execute("set horai.tenant = 'nobody'")
    nobody = await refused(connection, "select horai.enqueue('publish')")
    await connection.execute("set horai.tenant = ''")
    await connection.fetch("select horai.enqueue('publish')")
    await connection.fetch(f"select horai.enqueue('{number}')")

    assert (by_number.sqlstate, by_number.column_name) == (NOT_FOUND, "job"), "a number names a job of the tenant alone"
    assert (missing.sqlstate, missing.column_name) == (NOT_FOUND, "job")
    assert "'acme'" in str(missing.hint)
    assert (nobody.sqlstate, nobody.column_name) == (NOT_FOUND, "tenant")


@pytest.mark.parametrize("state", ["INIT", "RUNNING", "FAIL", "BLOCKED"])
async def test_a_cancelled_key_says_what_it_was(url: str, connection: Platform, state: str):
    async with make.scope(url) as scope:
        claimed = await make.running(scope, connection, "k")
    await connection.execute(
        "update horai.instance_live set state = $1::smallint, node = case when $1::smallint = 1 then node end,"
        " claim = case when $1::smallint = 1 then claim end,"
        " claimed_at = case when $1::smallint = 1 then claimed_at end",
        State[state],
    )

    cancelled = await connection.fetch("select * from horai.cancel_instance('publish', 'k')")

    assert cancelled == [(claimed.held.id, "CANCELLED", "USER", state)]
    assert await connection.fetch("select * from horai.cancel_instance('publish', 'k')") == []
    assert await rows.events(connection, claimed.held.id) == [(1, "INSTANCE_CANCELLED")]


async def test_A13_an_instance_that_began_to_run_meanwhile_is_cancelled_as_running(url: str, connection: Platform):
    async with make.scope(url) as scope, rows.connections(url, 2) as (claiming, cancelling):
        await make.put(scope, "k")
        node = await make.node(connection)
        async with claiming.transaction():
            (claimed,) = await make.claim(claiming, node)
            cancelled = asyncio.create_task(cancelling.fetch("select * from horai.cancel_instance('publish', 'k')"))
            await rows.until_blocked(connection, cancelling)

        assert await cancelled == [(claimed.held.id, "CANCELLED", "USER", "RUNNING")]
        history = await connection.fetchrow("select attempt, fence, node from horai.instance_history")
        assert history == (claimed.held.attempt, claimed.held.fence, node)


# What they refuse


@pytest.mark.parametrize(
    "call",
    [
        "put_instance('nobody', 'k')",
        "put_instance(null, 'k')",
        "enqueue('')",
        "enqueue('999999999999999999')",
        "enqueue('9999999999999999999999')",
        "enqueue_many('nobody', '{1}')",
        "cancel_instance('nobody', 'k')",
        "enqueue('publish''; drop table horai.job; --')",
    ],
)
async def test_a_job_that_is_not_there_is_not_found(connection: Platform, call: str):
    error = await refused(connection, f"select horai.{call}")

    assert (error.sqlstate, error.column_name) == (NOT_FOUND, "job")
    assert error.hint


async def test_a_deleted_job_is_not_found(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await jobs.delete_job(scope, "publish", None)

    assert (await refused(connection, "select horai.enqueue('publish')")).sqlstate == NOT_FOUND


async def test_a_job_deleted_meanwhile_is_not_found(url: str, connection: Platform):
    async with rows.connections(url, 1) as (other,):
        async with other.transaction():
            await other.execute("select from horai.job for update")
            await other.execute("update horai.job set deleted_at = clock_timestamp()")
            waiting = asyncio.create_task(connection.fetch("select horai.enqueue('publish')"))
            await rows.until_blocked(other, connection)
        with pytest.raises(asyncpg.PostgresError) as error:
            await waiting

    assert error.value.sqlstate == NOT_FOUND


async def test_keys_are_as_long_as_elsewhere(connection: Platform):
    await connection.fetch(PUT, "ü" * KEY_LIMIT, None, None, None)

    for key in ("ü" * (KEY_LIMIT + 1), "", None):
        for call in (PUT, "select horai.cancel_instance('publish', $1)"):
            arguments = (key, None, None, None) if call == PUT else (key,)
            error = await refused(connection, call, *arguments)
            assert (error.sqlstate, error.column_name) == (INVALID, "key")


async def test_times_are_within_the_years_of_elsewhere(connection: Platform):
    first, last = datetime(1970, 1, 1, tzinfo=UTC), datetime(8999, 12, 31, 23, 59, 59, tzinfo=UTC)
    for at in (first, last):
        await connection.fetch(PUT, "k", at, None, None)
        await enqueue(connection, None, at)

    for at in ("1969-12-31T23:59:59Z", "9000-01-01Z", "infinity", "-infinity"):
        for call in (
            "put_instance('publish', 'k', $1::text::timestamptz)",
            "enqueue('publish', null, $1::text::timestamptz)",
            "enqueue_many('publish', '{1,2}', array[null, $1::text::timestamptz])",
        ):
            error = await refused(connection, f"select horai.{call}", at)
            assert error.sqlstate == INVALID
            assert str(error.column_name).startswith("execute_time")


async def test_versions_are_within_the_bounds_of_elsewhere(connection: Platform):
    await connection.fetch(PUT, "k", None, None, 2**62 - 1)

    for version in (-1, 2**62):
        error = await refused(connection, PUT, "k", None, None, version)
        assert (error.sqlstate, error.column_name) == (INVALID, "version")


async def test_times_that_do_not_fit_the_payloads_are_refused(connection: Platform):
    error = await refused(connection, "select horai.enqueue_many('publish', '{1,2}', array[now()])")

    assert (error.sqlstate, error.column_name) == (INVALID, "execute_times")


TAKEN = [
    '{"a": [1, 2.5, -1e-400, 1e308], "b": "\\u00e9\\ud83d\\ude00 e999 \\\\u0000"}',
    "1" * 400,
    "[" * NESTING_LIMIT + "]" * NESTING_LIMIT,
    json.dumps([["]]}[[", '"[', "\\"]] * 200),
    json.dumps("x" * (PAYLOAD_LIMIT - 2)),
    "false",
    '""',
]
REFUSED = [
    ('"\\u0000"', INVALID),
    ('{"a\\u0000": 1}', INVALID),
    ('["\\ud800"]', INVALID),
    ('["\\ude00\\ud83d"]', INVALID),
    ("1e309", INVALID),
    ("[-1E+999]", INVALID),
    ("1e999999999", INVALID),
    ("1" * 310 + ".0", INVALID),
    ("1" * 401, INVALID),
    ("0." + "1" * 400, INVALID),
    ("[" * (NESTING_LIMIT + 1) + "]" * (NESTING_LIMIT + 1), INVALID),
    ('{"a":' * (NESTING_LIMIT + 1) + "1" + "}" * (NESTING_LIMIT + 1), INVALID),
    (json.dumps("x" * (PAYLOAD_LIMIT - 1)), TOO_LARGE),
    (json.dumps("ü" * (PAYLOAD_LIMIT // 2), ensure_ascii=False), TOO_LARGE),
]


async def test_a_payload_is_kept_to_the_letter(connection: Platform):
    for text in TAKEN:
        made = await enqueue(connection, text)
        kept = await connection.fetchval("select payload from horai.instance_live where id = $1", made["instance_id"])
        assert kept == text

    ids = await connection.fetch("select horai.enqueue_many('publish', $1) as id", TAKEN)
    kept = await connection.fetch(
        "select payload from horai.instance_live where id = any ($1) order by id", [r["id"] for r in ids]
    )
    assert [row["payload"] for row in kept] == TAKEN


@pytest.mark.parametrize(("text", "code"), REFUSED, ids=[text[:20] for text, _ in REFUSED])
async def test_a_payload_that_a_reader_would_choke_on_is_refused(connection: Platform, text: str, code: str):
    for call in (
        "enqueue('publish', $1)",
        "put_instance('publish', 'k', null, $1)",
        "enqueue_many('publish', array['1', $1])",
    ):
        error = await refused(connection, f"select horai.{call.replace('$1', '$1::text::json')}", text)
        assert (error.sqlstate, error.column_name) == (code, "payload")

    assert await connection.fetchval("select count(*) from horai.instance_live") == 0


async def test_a_json_null_is_no_payload(connection: Platform):
    for text in ("null", "  null "):
        await enqueue(connection, text)

    assert await connection.fetch("select distinct payload::text from horai.instance_live") == [('{"of": "the job"}',)]


@pytest.mark.parametrize("isolation", ["repeatable_read", "serializable"])
@pytest.mark.parametrize(
    "call",
    [
        "put_instance('publish', 'k')",
        "enqueue('publish')",
        "enqueue_many('publish', '{1}')",
        "cancel_instance('publish', 'k')",
    ],
)
async def test_E2_another_isolation_is_refused_with_a_clear_word(connection: Platform, isolation: Any, call: str):
    transaction = connection.transaction(isolation=isolation)
    await transaction.start()
    error = await refused(connection, f"select horai.{call}")
    await transaction.rollback()

    assert error.sqlstate == INVALID
    assert "READ COMMITTED only" in str(error)
