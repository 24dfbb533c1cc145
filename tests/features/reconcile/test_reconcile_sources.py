"""The faults of sources: the report names them, and nothing else suffers for it."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from drift import SQL, TOMORROW, Desk, desk

from horai.core.outcome import FailedRetryable, Outcome, Succeeded
from horai.features.reconcile.executor import Bounds

Page = Mapping[str, Any] | bytes | int


def item(key: Any, **fields: Any) -> dict[str, Any]:
    return {"key": key, "executeTime": TOMORROW.isoformat(), **fields}


@asynccontextmanager
async def serving(pages: Mapping[str, Page]) -> AsyncGenerator[tuple[str, list[str]]]:
    """A source with a page per cursor, the first of them at `""`; its address, and what it was asked for."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.query_string)
        page = pages[request.query.get("cursor", "")]
        if isinstance(page, int):
            return web.Response(status=page, headers={"Location": "/elsewhere"})
        return web.Response(body=page) if isinstance(page, bytes) else web.json_response(page)

    application = web.Application()
    application.router.add_get("/wanted", answer)
    async with TestServer(application, host="127.0.0.1") as server:
        yield str(server.make_url("/wanted?desk=7")), asked


@asynccontextmanager
async def paged(url: str, pages: Mapping[str, Page], bounds: Bounds | None = None) -> AsyncGenerator[Desk]:
    async with serving(pages) as (address, _), desk(url, {"type": "http", "url": address}, bounds) as at:
        yield at


def sql(query: str, **fields: str) -> dict[str, str]:
    return {**SQL, "query": query, **fields}


async def failure(at: Desk) -> str:
    """Run a comparison that cannot be made, and return the error of its report."""
    outcome: Outcome = await at.compare()
    assert isinstance(outcome, FailedRetryable), outcome
    error = (await at.report()).error or ""
    assert error == f"{outcome.code}: {outcome.message}"
    assert await at.live() == {}
    return error


async def test_B16_a_source_is_read_over_http_page_by_page(url: str) -> None:
    pages: dict[str, Page] = {
        "": {"items": [item("a", payload={"n": 1}), item("b")], "nextCursor": "2&x"},
        "2&x": {"items": [item("c", version=3)], "nextCursor": None},
    }
    async with serving(pages) as (address, asked), desk(url, {"type": "http", "url": address}) as at:
        report = await at.compared()

        rows = await at.connection.fetch("select key, payload, version from horai.instance_live order by key")
    assert [tuple(row) for row in rows] == [("a", '{"n": 1}', None), ("b", None, None), ("c", None, 3)]
    assert (report.tally.found, report.tally.created, report.surplus) == (3, 3, 0)
    assert asked == ["desk=7&limit=1000", "desk=7&limit=1000&cursor=2%26x"]


async def test_B16_rows_that_cannot_be_instances_are_told_and_the_others_are_created(url: str) -> None:
    rows = [
        item("good"),
        item("twice"),
        item("twice"),
        item(7),
        item(True),
        item(None),
        item(""),
        item("k" * 513),
        {"key": "timeless"},
        item("naive", executeTime="2026-01-01T00:00:00"),
        item("ancient", executeTime="0001-01-01T00:00:00+14:00"),
        item("huge", payload="x" * (1024 * 1024)),
        item("versed", version="3"),
        "no object",
    ]
    async with paged(url, {"": {"items": rows}}) as at:
        report = await at.compared()

        live = await at.live()
    assert set(live) == {"good", "twice", "7"}
    assert (report.tally.found, report.tally.created, report.tally.faulty) == (14, 3, 11)
    told = dict(report.tally.faults)
    assert told["naive"] == "executeTime: has no UTC offset"
    assert told["huge"].startswith("payload: is larger than")
    assert told["twice"] == "key: occurs twice on one page"


async def test_B16_an_instance_whose_row_is_faulty_is_no_surplus(url: str) -> None:
    pages: dict[str, Page] = {"": {"items": [item("a")]}}
    async with paged(url, pages) as at:
        await at.compared()
        pages[""] = {"items": [item("a", executeTime="soon")]}

        report = await at.compared()
    assert (report.surplus, report.tally.faulty) == (0, 1)


@pytest.mark.parametrize(
    ("page", "told"),
    [
        (500, "answered 500"),
        (302, "answered 302"),
        (b"<html>", "cannot be read"),
        (b"\xff", "not UTF-8"),
        (b'{"items": [{"key": "a\\u0000"}]}', "NUL"),
        (b"[" * 1000, "nested"),
        (b"[]", "not an object with a list"),
        (b'{"items": 3}', "not an object with a list"),
        (b'{"items": [], "nextCursor": 3}', "nextCursor is not a string"),
        (b'{"items": [' + b"0," * 1000 + b"0]}", "more than the 1000 items"),
        (b" " * (33 * 1024 * 1024), "larger than"),
    ],
)
async def test_B16_an_answer_that_makes_no_sense_fails_the_attempt(url: str, page: Page, told: str) -> None:
    async with paged(url, {"": page}) as at:
        assert told in await failure(at)


async def test_B16_a_source_that_stands_still_is_given_up(url: str) -> None:
    async with paged(url, {"": {"items": [], "nextCursor": "a"}, "a": {"items": [], "nextCursor": "a"}}) as at:
        assert "does not advance" in await failure(at)


async def test_B16_a_source_without_an_end_is_given_up(url: str) -> None:
    pages: dict[str, Page] = {"": {"items": [], "nextCursor": "a"}, "a": {"items": [], "nextCursor": "b"}}
    async with paged(url, {**pages, "b": {"items": [], "nextCursor": "a"}}, Bounds(pages=50)) as at:
        assert "did not end within 50 pages" in await failure(at)


async def test_B16_a_source_at_a_private_address_is_not_asked(url: str) -> None:
    async with serving({"": {"items": [item("a")]}}) as (address, asked):
        async with desk(url, {"type": "http", "url": address}, allow=()) as at:
            assert "not at a public address" in await failure(at)
    assert asked == []


async def test_B16_a_database_at_a_private_address_is_not_dialled(url: str) -> None:
    source = {"type": "sql", "query": SQL["query"], "databaseUrl": "postgresql://u:hidden@127.0.0.1:1/shop"}
    async with desk(url, source, allow=()) as at:
        told = await failure(at)
    assert "not at a public address" in told
    assert "hidden" not in told


async def test_B16_a_database_that_cannot_be_reached_is_told_without_its_password(url: str) -> None:
    source = {"type": "sql", "query": SQL["query"], "databaseUrl": "postgresql://u:hidden@127.0.0.1:1/shop"}
    async with desk(url, source) as at:
        told = await failure(at)
    assert "cannot be reached" in told
    assert "hidden" not in told


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("select key, execute_time from nowhere where key > $1 limit $2", "UndefinedTableError"),
        ("select 1 as key, now() as execute_time where $1 < $2", "the query failed"),
        ("select key from article where key > $1 order by key limit $2", "by $1 and $2"),
        ("select key, execute_time from article where execute_time > $1 limit $2", "type timestamptz cannot be paged"),
        ("insert into article values ($1, now()) returning key, execute_time, $2::int as version", "ReadOnly"),
        (
            "select key, execute_time from (select 'same' as key, now() as execute_time, $1::text) a,"
            " generate_series(1, $2::bigint)",
            "the same rows again",
        ),
        ("select key, execute_time, pg_sleep(60)::text as payload from article where key > $1 limit $2", "longer than"),
    ],
)
async def test_B16_a_query_that_cannot_be_asked_fails_the_attempt(url: str, query: str, told: str) -> None:
    async with desk(url, sql(query), Bounds(statement=timedelta(milliseconds=500))) as at:
        await at.write("article:1")
        outcome = await at.compare()
        report = await at.report()
    assert isinstance(outcome, FailedRetryable)
    assert told in (report.error or "")


async def test_B16_a_node_without_the_source_says_which_one_it_lacks(url: str) -> None:
    async with desk(url, sql(SQL["query"], source="elsewhere")) as at:
        assert "this node has no source elsewhere" in await failure(at)


async def test_B16_a_stored_environment_variable_is_not_read_any_more(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUSINESS_DB_URL", url)
    async with desk(url) as at:
        await at.write("article:1")
        await at.connection.execute(
            "update horai.reconciler set source = (source::jsonb - 'source' || $1)::json",
            '{"databaseUrlEnv": "BUSINESS_DB_URL"}',
        )
        assert "the stored source is no longer valid" in await failure(at)


async def test_B16_a_query_that_ignores_its_limit_is_cut_to_pages(url: str) -> None:
    query = "select key, execute_time from article where key > $1 and $2 > 0::bigint order by key"
    async with desk(url, sql(query), Bounds(page=10)) as at:
        await at.write_many(25)

        report = await at.compared()
    assert (report.tally.found, report.tally.created, report.pages) == (25, 25, 3)


@pytest.mark.parametrize("kind", ["int", "bigint", "uuid"])
async def test_B16_keys_need_not_be_text(url: str, kind: str) -> None:
    keys = "lpad(n::text, 32, '0')::uuid" if kind == "uuid" else f"(n - 10)::{kind}"
    async with desk(
        url, sql("select key, execute_time from thing where key > $1 order by key limit $2"), Bounds(page=4)
    ) as at:
        await at.connection.execute(
            f"create table thing as select {keys} as key, now() + '1 d' as execute_time from generate_series(1, 20) n"
        )

        report, again = await at.compared(), await at.compared()
    assert (report.tally.created, report.tally.faulty) == (20, 0)
    assert (again.tally.found, again.tally.missing) == (20, 0)


async def test_B16_a_failed_attempt_goes_on_when_the_source_is_back(url: str) -> None:
    pages: dict[str, Page] = {"": {"items": [item("a")], "nextCursor": "2"}, "2": 503}
    async with paged(url, pages) as at:
        assert isinstance(await at.compare(5, 1), FailedRetryable)
        pages["2"] = {"items": [item("b")]}

        outcome = await at.compare(5, 2)

        report = await at.report()
    assert isinstance(outcome, Succeeded)
    assert (report.tally.found, report.tally.created, report.error) == (2, 2, None)
