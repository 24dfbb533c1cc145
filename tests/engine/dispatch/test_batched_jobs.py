"""A job whose HTTP target takes batches: from the claim to the settlement, with real PostgreSQL and HTTP."""

from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import make
from aiohttp import web
from http_calls import executor
from stages import Workbench, workbench

from horai.engine.dispatch.dispatcher import Dispatcher

Item = dict[str, Any]


@asynccontextmanager
async def batch_receiver(answer: Callable[[Item], Item | None], requests: list[list[Item]]) -> AsyncGenerator[str]:
    """A target that answers each item; without a word about items for which `answer` returns None."""

    async def handle(request: web.Request) -> web.Response:
        items: list[Item] = (await request.json())["items"]
        requests.append(items)
        said = [said for item in items if (said := answer(item)) is not None]
        return web.json_response({"items": said})

    app = web.Application()
    app.router.add_post("/hook", handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    finally:
        await runner.cleanup()


async def run_all(bench: Workbench, dispatcher: Dispatcher) -> None:
    await bench.until_idle(dispatcher)
    await bench.settle()


async def test_the_instances_of_a_claim_share_requests_and_each_ends_at_attempt_1(url: str):
    requests: list[list[Item]] = []
    async with (
        workbench(url) as bench,
        executor() as http,
        batch_receiver(lambda item: {"instanceId": item["instanceId"]}, requests) as target,
    ):
        await make.job(bench.scope, target={"type": "http", "url": target, "batch": {"size": 50}})
        ids = await make.many(bench.scope, 100)
        await run_all(bench, bench.dispatcher(**{"": http}))

        rows = await bench.connection.fetch("select id, attempt from horai.instance_history where state = 2")
        assert sorted((row["id"], row["attempt"]) for row in rows) == [(id_, 1) for id_ in sorted(ids)]
    assert sorted(int(item["instanceId"]) for items in requests for item in items) == sorted(ids)
    assert len(requests) <= 10, "rows that were claimed together go together"


async def test_items_that_fail_or_are_missing_are_retried_with_a_new_fence_and_the_others_are_not(url: str):
    requests: list[list[Item]] = []

    def answer(item: Item) -> Item | None:
        match int(item["instanceId"]) % 3 if item["attempt"] == 1 else 0:
            case 0:
                return {"instanceId": item["instanceId"], "result": "SUCCESS"}
            case 1:
                return {"instanceId": item["instanceId"], "result": "FAIL_RETRYABLE", "message": "busy"}
            case _:
                return None

    async with workbench(url) as bench, executor() as http, batch_receiver(answer, requests) as target:
        retry = {"base": "1ms", "cap": "1ms", "jitter": "none"}
        await make.job(bench.scope, target={"type": "http", "url": target, "batch": {"size": 30}}, retry=retry)
        ids = await make.many(bench.scope, 30)
        dispatcher = bench.dispatcher(**{"": http})
        while (await bench.states()).get("SUCCESS") != 30:
            await run_all(bench, dispatcher)

        rows = await bench.connection.fetch("select id, attempt, fence from horai.instance_history")
        expected = {id_: 1 if id_ % 3 == 0 else 2 for id_ in ids}
        assert {row["id"]: row["attempt"] for row in rows} == expected
        assert {row["id"]: row["fence"] for row in rows} == expected
        codes = await bench.connection.fetch("select error_code from horai.attempt")
        assert Counter(row["error_code"] for row in codes) == {
            "RESULT_RETRYABLE": sum(id_ % 3 == 1 for id_ in ids),
            "ITEM_MISSING": sum(id_ % 3 == 2 for id_ in ids),
        }
    keys = {item["instanceId"]: item["idempotencyKey"] for items in requests for item in items}
    assert all(item["idempotencyKey"] == keys[item["instanceId"]] for items in requests for item in items)
