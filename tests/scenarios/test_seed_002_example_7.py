"""Seed 002 §18, example 7: an operator replays the dead letters tagged `transient_error`, and the success rate recovers."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import harness
from harness import Client
from receiver import Answer, Receiver

DEAD, FATAL, PER_SECOND = 40, 3, 20
ONCE = {"maxRetry": 1, "base": "1ms", "jitter": "none"}


async def instances(api: Client, state: str) -> list[Any]:
    return (await api("GET", f"/api/v1/jobs/clear/instances?state={state}&limit=500")).json["items"]


async def until(api: Client, state: str, count: int) -> None:
    async with asyncio.timeout(30):
        while len(await instances(api, state)) < count:
            await asyncio.sleep(0.02)


async def success_rate(api: Client) -> float:
    return (await api("GET", "/api/v1/scheduler/health")).json["runSuccessRate10m"]


async def test_C59g_C36_the_success_rate_recovers_when_transient_errors_are_replayed(url: str) -> None:
    # Without breakers: the bank's answers are scripted by their number, and a breaker would hold calls of the outage back.
    async with Receiver() as bank, harness.node(url) as api:
        outage = [Answer(503)] * (2 * DEAD) + [Answer(422)] * FATAL
        bank.on("/clear", *outage, Answer(200))
        job = {"name": "clear", "retry": ONCE, "target": {"type": "http", "url": bank.url("/clear")}}
        assert (await api("POST", "/api/v1/jobs", job)).status == 201
        for first, count in ((0, DEAD), (DEAD, FATAL)):
            items = [{"key": f"batch:{first + number}"} for number in range(count)]
            await api("POST", "/api/v1/jobs/clear/instances/batch", {"items": items})
            await until(api, "DEAD", first + count)
        bad = await success_rate(api)

        wish = {"tag": "transient_error", "rate": f"{PER_SECOND}/s"}
        tried = (await api("POST", "/api/v1/dlq/replay", {**wish, "dryRun": True})).json
        began = datetime.now(UTC)
        done = (await api("POST", "/api/v1/dlq/replay", wish)).json
        again = (await api("POST", "/api/v1/dlq/replay", wish)).json
        await until(api, "SUCCESS", DEAD)
        took = datetime.now(UTC) - began

        assert (tried["matched"], tried["replayed"]) == (DEAD, 0)
        assert (done["matched"], done["replayed"], again["replayed"]) == (DEAD, DEAD, 0)
        assert took >= timedelta(seconds=(DEAD - 1) / PER_SECOND)
        assert await success_rate(api) > bad
        assert len(bank.effective) == DEAD
        assert bank.duplicates == []
        left = (await api("GET", "/api/v1/dlq?status=NEW")).json["items"]
        assert [letter["tags"] for letter in left] == [["unrecoverable", "http_4xx"]] * FATAL
