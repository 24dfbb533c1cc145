"""Payloads of the SQL functions: untyped literals, json, jsonb and text, by position and by name."""

import asyncio
import json

import asyncpg
import make
import pytest

from horai.db.pool import Platform

FORMS = ["'{\"n\": 1}'", "'{\"n\": 1}'::json", "'{\"n\": 1}'::jsonb", "'{\"n\": 1}'::text", "'{\"n\": 1}'::varchar"]
CALLS = {
    "put by position": "put_instance('publish', 'k', '2050-01-01Z', {})",
    "put with a version": "put_instance('publish', 'k', now(), {}, 7, false)",
    "put by name": "put_instance(job => 'publish', key => 'k', execute_time => now(), payload => {}, version => 7)",
    "put by name without a time": "put_instance(key => 'k', payload => {}, job => 'publish')",
    "put by position and name": "put_instance('publish', 'k', payload => {}, again => true)",
    "enqueue by position": "enqueue('publish', {})",
    "enqueue with a time": "enqueue('publish', {}, now())",
    "enqueue by name": "enqueue(job => 'publish', payload => {})",
    "enqueue by name with a time": "enqueue(execute_time => now(), payload => {}, job => 'publish')",
    "many by position": "enqueue_many('publish', array[{}])",
    "many with times": "enqueue_many('publish', array[{}], array[now()])",
    "many by name": "enqueue_many(job => 'publish', payloads => array[{}])",
}


@pytest.fixture(autouse=True)
def publish(url: str, runner: asyncio.Runner) -> None:
    """A job to add instances to."""

    async def made() -> None:
        async with make.scope(url) as scope:
            await make.job(scope, payload={"of": "the job"})

    runner.run(made())


async def kept(connection: Platform) -> list[object]:
    rows = await connection.fetch("select payload from horai.instance_live order by id")
    return [json.loads(row["payload"]) for row in rows]


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_every_form_of_a_payload_is_accepted_by_position_and_by_name(connection: Platform, call: str):
    for form in FORMS:
        await connection.fetch(f"select * from horai.{call.format(form)}")
        assert (await kept(connection))[-1] == {"n": 1}, form
        await connection.execute("delete from horai.instance_live")


@pytest.mark.parametrize(
    "call",
    [
        "put_instance('publish', 'k')",
        "put_instance('publish', 'k', '2050-01-01Z')",
        "put_instance('publish', 'k', null, null)",
        "put_instance('publish', 'k', version => 3)",
        "put_instance('publish', 'k', payload => 'null')",
        "put_instance('publish', 'k', payload => 'null'::jsonb)",
        "enqueue('publish')",
        "enqueue('publish', null::jsonb, now())",
        "enqueue('publish', execute_time => now())",
        "enqueue_many('publish', array[null])",
        "enqueue_many('publish', '{NULL}')",
        "enqueue_many('publish', array[null]::jsonb[])",
    ],
)
async def test_a_call_without_a_payload_uses_the_payload_of_the_job(connection: Platform, call: str):
    await connection.fetch(f"select horai.{call}")

    assert await kept(connection) == [{"of": "the job"}]


async def test_a_bound_parameter_is_json_text(connection: Platform):
    await connection.fetch("select horai.put_instance('publish', $1, payload => $2)", "k", '{"n": 1}')
    await connection.fetch("select horai.enqueue('publish', $1)", "[2]")
    await connection.fetch("select horai.enqueue_many('publish', $1)", ["3", None])

    assert await kept(connection) == [{"n": 1}, [2], 3, {"of": "the job"}]


async def test_a_domain_over_an_accepted_type_is_accepted(connection: Platform):
    await connection.execute("create domain public.document as jsonb")

    await connection.fetch("select horai.enqueue('publish', '{\"n\": 1}'::public.document)")

    assert await kept(connection) == [{"n": 1}]


@pytest.mark.parametrize("text", ["hello", "{'n': 1}", "", "{", '{"n": 1} x', "[" * 200_000])
@pytest.mark.parametrize(
    "call",
    ["put_instance('publish', 'k', null, $1::text)", "enqueue('publish', $1::text)", "enqueue_many('publish', array['1', $1::text])"],
)  # fmt: skip
async def test_text_that_is_not_json_is_refused_with_the_reason(connection: Platform, text: str, call: str):
    with pytest.raises(asyncpg.PostgresError, match="payload: is not JSON") as refused:
        await connection.fetch(f"select horai.{call}", text)

    assert (refused.value.sqlstate, refused.value.column_name) == ("HR422", "payload")
    assert "double quotes" in str(refused.value.hint)
    assert len(str(refused.value)) < 600
    assert await kept(connection) == []


@pytest.mark.parametrize(
    ("value", "kind"), [("7", "integer"), ("now()", "timestamp with time zone"), ("true", "boolean")]
)
async def test_a_payload_of_another_type_is_refused_and_its_type_is_named(connection: Platform, value: str, kind: str):
    for call in (
        f"enqueue('publish', {value})",
        f"put_instance('publish', 'k', payload => {value})",
        f"enqueue_many('publish', array[{value}])",
    ):
        with pytest.raises(asyncpg.PostgresError, match=f"payload: is of type {kind}") as refused:
            await connection.fetch(f"select horai.{call}")
        assert (refused.value.sqlstate, refused.value.column_name) == ("HR422", "payload")
