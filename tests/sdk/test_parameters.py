"""Functions with several parameters: their payload by name, and payloads of other versions of the code."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from inspect import Parameter
from typing import Any

import psycopg
import pytest
from payload_types import Line, Mail, Opaque, nested
from test_functions import outcome
from working import working

from horai import Horai, Instance, Node, Retry
from horai.core.errors import Invalid, TooLarge
from horai.core.limits import NESTING_LIMIT, PAYLOAD_LIMIT
from horai.core.outcome import FailedRetryable, FailedUnrecoverable, Succeeded
from horai.db.pool import Platform
from horai.sdk.payloads import Form, signature_of


async def charge(line: Line, amount: int, *, currency: str = "EUR") -> list[Any]:
    return [line.sku, amount, currency]


async def with_instance(instance: Instance[Any], line: Line, amount: int = 1) -> list[Any]:
    return [instance.attempt, line.sku, amount, sorted(instance.payload)]


def untyped(instance, line, amount=2):  # pyright: ignore
    return [instance.attempt, line, amount]


async def with_payload(instance: Instance[Any], line: Line) -> list[Any]:
    return [instance.attempt, line.sku]


async def by_keyword(*, line: Line) -> str:
    return line.sku


def positional(sku: str, count: int = 3, /, note: str = "none") -> list[Any]:
    return [sku, count, note]


async def mixed(mail: Mail, line: Line, when: datetime, copies: int | None = 5) -> list[Any]:
    return [type(mail).__name__, mail.send_to, line.sku, when.year, copies]


LINE = '{"sku":"a","price":1.5,"count":1}'


@pytest.mark.parametrize(
    ("function", "payload", "result"),
    [
        (charge, f'{{"line":{LINE},"amount":7}}', '["a",7,"EUR"]'),
        (charge, f'{{"currency":"USD","amount":7,"line":{LINE}}}', '["a",7,"USD"]'),
        (with_instance, f'{{"line":{LINE}}}', '[1,"a",1,["line"]]'),
        (untyped, '{"line":4,"amount":5}', "[1,4,5]"),
        (with_payload, LINE, '[1,"a"]'),
        (by_keyword, LINE, '"a"'),
        (positional, '{"sku":"a","note":"b"}', '["a",3,"b"]'),
        (
            mixed,
            f'{{"mail":{{"sendTo":"x"}},"line":{LINE},"when":"2026-01-02T00:00:00Z","copies":null}}',
            '["Mail","x","a",2026,null]',
        ),
    ],
)
async def test_a_function_gets_its_parameters_of_the_payload(
    function: Callable[..., Any], payload: str, result: str
) -> None:
    assert await outcome(function, payload=payload) == Succeeded(result)


async def test_a_parameter_that_is_added_with_a_default_takes_payloads_of_before() -> None:
    async def grown(line: Line, amount: int, currency: str = "EUR", note: str = "none") -> list[Any]:
        return [line.sku, amount, currency, note]

    assert await outcome(grown, payload=f'{{"line":{LINE},"amount":7}}') == Succeeded('["a",7,"EUR","none"]')


async def test_a_second_parameter_with_a_default_takes_payloads_of_the_single_one() -> None:
    async def grown(line: Line, currency: str = "EUR") -> list[Any]:
        return [line.sku, line.price, currency]

    async def of_numbers(numbers: list[int], factor: int = 2) -> int:
        return sum(numbers) * factor

    assert await outcome(grown, payload=LINE) == Succeeded('["a",1.5,"EUR"]')
    assert await outcome(of_numbers, payload="[1,2]") == Succeeded("6")
    strange = await outcome(grown, payload=f'{{"lien":{LINE}}}')
    assert isinstance(strange, FailedRetryable)
    assert strange.code == "PAYLOAD_FIELD_UNKNOWN"


@dataclass
class Depth:
    """Can be made of nothing."""

    depth: int = 3


async def test_a_renamed_parameter_is_not_read_as_the_value_of_the_first() -> None:
    async def renamed(depth: Depth, note: str = "none") -> int:
        return depth.depth

    assert await outcome(renamed, payload='{"depth":{"depth":5}}') == Succeeded("5")
    failed = await outcome(renamed, payload='{"deep":{"depth":5}}')
    assert isinstance(failed, FailedRetryable)
    assert (failed.code, "payload.deep" in failed.message) == ("PAYLOAD_FIELD_UNKNOWN", True)


@pytest.mark.parametrize(
    ("payload", "kind", "code", "said"),
    [
        (
            f'{{"line":{LINE},"amount":1,"old":2}}',
            FailedRetryable,
            "PAYLOAD_FIELD_UNKNOWN",
            "payload.old: the function",
        ),
        (f'{{"line":{LINE}}}', FailedRetryable, "PAYLOAD_FIELD_MISSING", "payload.amount: is missing"),
        (None, FailedRetryable, "PAYLOAD_FIELD_MISSING", "payload.line: is missing"),
        (f'{{"line":{LINE},"amount":"x"}}', FailedUnrecoverable, "PAYLOAD_INVALID", "payload.amount: Expected `int`"),
        (f'{{"line":{LINE},"amount":null}}', FailedUnrecoverable, "PAYLOAD_INVALID", "payload.amount: Expected `int`"),
        ("[1]", FailedUnrecoverable, "PAYLOAD_INVALID", "payload: is not an object"),
    ],
)
async def test_a_payload_of_other_code_names_its_field_its_job_and_the_remedy(
    payload: str | None, kind: Any, code: str, said: str
) -> None:
    failed: Any = await outcome(charge, payload=payload)

    assert isinstance(failed, kind)
    assert (failed.code, failed.message[: len(said)]) == (code, said)
    if kind is FailedRetryable:
        assert "'charge'" in failed.message
        assert "default" in failed.message


async def test_the_results_of_parents_are_a_parameter_of_that_name_or_left_out() -> None:
    async def report(title: str, parents: dict[str, Any]) -> list[Any]:
        return [title, parents]

    payload = f'{{"line":{LINE},"amount":7,"parents":{{"load":3}}}}'
    assert await outcome(charge, payload=payload) == Succeeded('["a",7,"EUR"]')
    assert await outcome(report, payload='{"title":"t","parents":{"load":3}}') == Succeeded('["t",{"load":3}]')
    app = Horai("shop")
    load, summed = app.job(by_keyword), app.job(report)
    app.workflow("nightly", [Node(load), Node(summed, after=[load], payload={"title": "t"})])


def encode(value: object, function: Callable[..., Any] = charge) -> str | None:
    return signature_of(function).shape.encode(value)


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        ({"line": Line("a", 1.5), "amount": "x"}, ["payload.amount"]),
        ({"amount": 1, "other": 2}, ["payload.other", "payload.line"]),
        ({"line": {"sku": 5}, "amount": 1}, ["payload.line.sku"]),
        (Line("a", 1.5), ["payload"]),
        ([1], ["payload"]),
        ({"line": Line("a", float("nan")), "amount": 1}, ["payload.line.price"]),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_their_fields(value: object, fields: list[str]) -> None:
    with pytest.raises(Invalid) as refused:
        encode(value)

    assert [fault.field for fault in refused.value.errors] == fields


def test_the_limits_of_a_payload_hold_for_all_arguments_together() -> None:
    def two(first: Any, second: Any) -> None: ...

    half = "x" * (PAYLOAD_LIMIT // 2)
    with pytest.raises(TooLarge):
        encode({"first": half, "second": half}, two)
    assert encode({"first": nested(NESTING_LIMIT - 1), "second": 1}, two)
    with pytest.raises(Invalid, match="nested deeper"):
        encode({"first": nested(NESTING_LIMIT), "second": 1}, two)


def test_the_schema_describes_the_object_by_name() -> None:
    schema = signature_of(charge).shape.schema

    assert schema is not None
    assert list(schema["properties"]) == ["line", "amount", "currency"]
    assert (schema["required"], schema["additionalProperties"]) == (["line", "amount"], False)
    assert schema["properties"]["line"] == {"$ref": "#/$defs/Line"}
    assert "Line" in schema["$defs"]


def test_a_type_of_a_parameter_that_is_not_json_is_refused_with_its_name() -> None:
    def strange(line: Line, thing: Opaque) -> None: ...

    with pytest.raises(Invalid, match=r"payload\.thing: .*Opaque"):
        signature_of(strange)


def test_one_parameter_keeps_its_form() -> None:
    signature = signature_of(by_keyword)

    assert (signature.form, signature.shape.encode(Line("a", 1.5))) == (Form.payload, LINE)
    assert signature.parameters[0].kind is Parameter.KEYWORD_ONLY


class Shop:
    """An application with functions of several parameters."""

    def __init__(self, url: str) -> None:
        self.app = Horai("shop", database_url=url)
        self.charge = self.app.job(charge, retry=Retry(max=0))
        self.positional = self.app.job(positional)

        @self.app.job
        async def at(at: int, delay: str, conn: str = "c") -> list[Any]:
            return [at, delay, conn]

        @self.app.job
        async def single(at: int = 0) -> int:
            return at

        self.colliding, self.single = at, single


async def test_every_method_takes_the_arguments_of_the_function(url: str, connection: Platform) -> None:
    shop, line = Shop(url), Line("a", 1.5)
    async with working(shop.app):
        assert await (await shop.charge.enqueue(line, 7)).result("30s") == ["a", 7, "EUR"]
        assert await (await shop.charge.enqueue(line, amount=7, currency="USD")).result("30s") == ["a", 7, "USD"]
        assert await (await shop.charge.trigger(line, 8)).result("30s") == ["a", 8, "EUR"]
        once = shop.charge.options(idempotency_key="order 1")
        first, second = await once.enqueue(line, 9), await once.enqueue(line, 9)
        assert (first.duplicate, second.duplicate, first.id == second.id) == (False, True, True)
        many = await shop.charge.enqueue_many([shop.charge.arguments(line, n) for n in range(3)])
        assert [await handle.result("30s") for handle in many] == [["a", n, "EUR"] for n in range(3)]
        put = await shop.charge.options(delay="10ms", version=1).put("k", line, 10)
        assert await put.result("30s") == ["a", 10, "EUR"]
        assert await (await shop.charge.put("l", payload=shop.charge.arguments(line, 11))).result("30s")
        assert await shop.charge(line, 3) == ["a", 3, "EUR"]
        assert shop.positional("a") == ["a", 3, "none"]
    stored = await connection.fetchval("select payload::text from horai.instance_history where key = 'k'")
    assert stored == f'{{"line":{LINE},"amount":10}}'


async def test_no_option_collides_with_a_parameter(url: str) -> None:
    shop = Shop(url)
    async with working(shop.app):
        assert await (await shop.colliding.enqueue(1, delay="2", conn="x")).result("30s") == [1, "2", "x"]
        later = shop.colliding.options(at=datetime.now(UTC) - timedelta(seconds=1))
        assert await (await later.enqueue(at=1, delay="2")).result("30s") == [1, "2", "c"]
        with pytest.raises(Invalid, match="at: is a parameter of 'single' and an option"):
            await shop.single.enqueue(at=5)
        assert await (await shop.single.options().enqueue(at=5)).result("30s") == 5


async def test_arguments_of_the_callers_transaction_and_of_threads(url: str) -> None:
    shop, line = Shop(url), Line("a", 1.5)

    def story() -> None:
        sync = shop.charge.sync
        assert sync.enqueue(line, 7, currency="USD").result("30s") == ["a", 7, "USD"]
        assert sync.trigger(line, 8).result("30s") == ["a", 8, "EUR"]
        with psycopg.connect(url) as conn:
            caller = sync.options(conn=conn)
            handles = [caller.enqueue(line, 1), *caller.enqueue_many([shop.charge.arguments(line, 2)])]
            handles.append(caller.put("k", line, 3))
        assert [handle.result("30s")[1] for handle in handles] == [1, 2, 3]
        assert shop.colliding.sync.enqueue(1, "2", conn="x").result("30s") == [1, "2", "x"]

    async with working(shop.app):
        await asyncio.to_thread(story)
        shop.app.close_sync()


async def test_wrong_calls_are_refused_before_anything_is_written(url: str, connection: Platform) -> None:
    shop, line = Shop(url), Line("a", 1.5)
    refused: list[tuple[Callable[[], Any], str]] = [
        (lambda: shop.charge.enqueue(line), "missing a required argument: 'amount'"),  # pyright: ignore
        (lambda: shop.charge.enqueue(line, 1, delay="5m"), r"unexpected keyword argument 'delay'"),  # pyright: ignore
        (shop.charge.enqueue, "payload: is missing"),  # pyright: ignore
        (lambda: shop.charge.enqueue_many([line]), "must be the arguments of 'charge', not Line"),
        (lambda: shop.charge.options(version=3).enqueue(line, 1), "version: is not an option of enqueue"),
        (lambda: shop.charge.enqueue_many([shop.positional.arguments("a", 1)]), "not those of 'positional'"),
    ]
    for call, said in refused:
        with pytest.raises(Invalid, match=said):
            await call()
    with pytest.raises(TypeError, match="Did you mean 'delay'"):
        shop.charge.options(dely="5m")  # pyright: ignore
    with pytest.raises(TypeError, match="takes one payload"):
        await shop.single.enqueue(1, 2)  # pyright: ignore
    assert await connection.fetchval("select count(*) from horai.instance_live") == 0
    await shop.app.close()


def test_the_hint_of_a_wrong_keyword_shows_where_options_go(url: str) -> None:
    shop = Shop(url)

    with pytest.raises(Invalid) as refused:
        shop.charge.arguments(Line("a", 1.5), 1, delay="5m")  # pyright: ignore

    assert refused.value.hint == "Options of Horai are no arguments: write job.options(delay=…).enqueue(…)."
