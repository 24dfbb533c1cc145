"""Each threshold, driven by real faults with shortened windows: the action, the exit, and nothing lost."""

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import harness
from alert_yard import QUICK, kinds, told, watching
from harness import FAST, Client
from receiver import Answer, Receiver
from rows import until

from horai.db.pool import Platform

EAGER = replace(
    FAST,
    governor_every=timedelta(milliseconds=100),
    lease=timedelta(seconds=1),
    figure_window=timedelta(seconds=1),
)
THRESHOLDS = {
    "triggerDelayP95": "10m",
    "triggerDelayFor": "1s",
    "clearFor": "500ms",
    "minStarts": 5,
    "minOutcomes": 1_000_000,
}
"""Short times, and no breach of the delay or the success rate unless a test asks for it."""


@asynccontextmanager
async def governed(url: str, thresholds: dict[str, Any], **changes: Any) -> AsyncGenerator[Client]:
    """A node whose rules look ten times a second, at figures of 1 s instead of a minute, and 10 s instead of ten minutes."""
    async with harness.node(url, EAGER, **QUICK, **changes) as api:
        put = await api("PUT", "/api/v1/scheduler/thresholds", {**THRESHOLDS, **thresholds})
        assert put.status == 200, put.json
        yield api


async def job(api: Client, receiver: Receiver, name: str, answer: Answer, **fields: Any) -> None:
    receiver.on(f"/{name}", answer)
    body = {"name": name, "target": {"type": "http", "url": receiver.url(f"/{name}")}, **fields}
    made = await api("POST", "/api/v1/jobs", body)
    assert made.status == 201, made.json


async def enqueue(api: Client, name: str, count: int) -> None:
    items = [{"key": f"{name}-{os.urandom(4).hex()}"} for _ in range(count)]
    made = await api("POST", f"/api/v1/jobs/{name}/instances/batch", {"items": items})
    assert made.status == 200, made.json


async def modes(api: Client) -> list[str]:
    return (await api("GET", "/api/v1/scheduler/mode")).json["modes"]


async def is_in(api: Client, mode: str) -> bool:
    return mode in await modes(api)


async def states(connection: Platform, name: str) -> Counter[str]:
    """Return the instances of a job by state, live and ended."""
    rows = await connection.fetch(
        "select i.state from horai.job_instance i join horai.job j on j.id = i.job_id where j.name = $1", name
    )
    return Counter(row["state"] for row in rows)


async def have_ended(connection: Platform, name: str, count: int, state: str = "SUCCESS") -> bool:
    return (await states(connection, name))[state] == count


async def audited(api: Client) -> list[tuple[str, str]]:
    """Return the changes of modes in the audit log, oldest first."""
    rows = (await api("GET", "/api/v1/audit?limit=500")).json["items"]
    return [(row["verb"], row["object"]["name"]) for row in reversed(rows) if row["verb"].startswith("mode.")]


async def alerted(receiver: Receiver, mode: str, *types: str) -> None:
    """Return when the channel was told of the mode in this order, and of no other mode."""
    messages = await told(receiver, len(types))
    assert kinds(messages) == [*types]
    assert {alert["data"]["mode"] for message in messages for alert in message["alerts"]} == {mode}


async def test_C29_C59e_late_starts_halve_and_then_pause_low_reports_while_core_jobs_start_on_time(
    url: str, connection: Platform
) -> None:
    async with Receiver() as receiver, governed(url, {"triggerDelayP95": "300ms"}, in_flight=4) as api:
        await watching(api, receiver, "MODE_ENTERED")
        await job(api, receiver, "usual", Answer(200, delay=0.25))
        await job(api, receiver, "report", Answer(200), priority="low")
        await job(api, receiver, "core", Answer(200), priority="core")
        await enqueue(api, "usual", 90)
        await until(lambda: is_in(api, "SHED_LOW"))
        await alerted(receiver, "SHED_LOW", "firing")
        await until(lambda: _has_level(api, 2))
        await enqueue(api, "report", 5)
        delays = [await _delay_of_core(api) for _ in range(10)]
        assert sorted(delays)[8] < 2.0, delays
        assert (await states(connection, "report")) == {"INIT": 5}
        health = (await api("GET", "/api/v1/scheduler/health")).json
        codes = [action["textSaid"]["code"] for action in health["actions"]]
        assert codes == ["PAUSE_LOW_PRIORITY", "THIN_LOW_PRIORITY", "REQUEST_SCALE"]
        await until(lambda: have_ended(connection, "usual", 90), within=60)
        await until(lambda: have_ended(connection, "report", 5), within=60)
        await until(lambda: is_in(api, "NORMAL"))
        levels = [row["level"] for row in (await api("GET", "/api/v1/scheduler/mode/history")).json["items"]]
        assert levels == [0, 1, 2, 1]
        assert await audited(api) == [("mode.enter", "SHED_LOW")] * 3 + [("mode.leave", "SHED_LOW")]
        await alerted(receiver, "SHED_LOW", "firing", "resolved")


async def _has_level(api: Client, level: int) -> bool:
    rules = (await api("GET", "/api/v1/scheduler/mode")).json["rules"]
    return next(rule["level"] for rule in rules if rule["mode"] == "SHED_LOW") == level


async def _delay_of_core(api: Client) -> float:
    began = time.monotonic()
    made = await api("POST", "/api/v1/jobs/core/trigger", Idempotency_Key=os.urandom(8).hex())
    await api.until_state(made.json["instance"]["id"], "SUCCESS")
    return time.monotonic() - began


async def test_C30_C60_failures_limit_retries_and_close_the_backfill_entry(url: str, connection: Platform) -> None:
    async with Receiver() as receiver, governed(url, {"runSuccessRate10m": 0.9, "minOutcomes": 10}) as api:
        await watching(api, receiver, "MODE_ENTERED")
        retry = {"maxRetry": 50, "base": "100ms", "cap": "200ms", "jitter": "none"}
        await job(api, receiver, "flaky", Answer(503), retry=retry, cron="0 0 1 1 *")
        await enqueue(api, "flaky", 40)
        await until(lambda: is_in(api, "RETRY_LIMITED"))
        await alerted(receiver, "RETRY_LIMITED", "firing")
        limit = next(
            float(action["textSaid"]["params"]["rate"])
            for action in (await api("GET", "/api/v1/scheduler/health")).json["actions"]
            if action["textSaid"]["code"] == "LIMIT_RETRIES"
        )
        body = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "mode": "missing"}
        refused = await api("POST", "/api/v1/jobs/flaky/backfill", body)
        assert (refused.status, refused.json["code"]) == (429, "SCH_429_RETRY_LIMITED")
        await asyncio.sleep(0.5)  # calls that were under way
        before, began = len(receiver.hits), time.monotonic()
        await asyncio.sleep(4)
        calls, seconds = len(receiver.hits) - before, time.monotonic() - began
        assert calls <= limit * (seconds + 1) + 2, (calls, seconds, limit)
        held = await connection.fetch("select retry_count, attempt from horai.instance_live")
        assert len(held) == 40
        assert all(1 <= row["retry_count"] <= row["attempt"] for row in held)
        receiver.on("/flaky", Answer(200))
        await until(lambda: have_ended(connection, "flaky", 40), within=60)
        await until(lambda: is_in(api, "NORMAL"), within=30)
        await alerted(receiver, "RETRY_LIMITED", "firing", "resolved")


async def test_above_the_backlog_short_retries_go_on_and_nothing_is_lost(url: str, connection: Platform) -> None:
    async with Receiver() as receiver, governed(url, {"retryBacklog": 20}) as api:
        await watching(api, receiver, "MODE_ENTERED")
        retry = {"maxRetry": 50, "base": "200ms", "cap": "300ms", "jitter": "none"}
        await job(api, receiver, "short", Answer(503), retry=retry)
        await job(api, receiver, "long", Answer(503), retry=retry, timeout="30s")
        await enqueue(api, "short", 25)
        await enqueue(api, "long", 5)
        await until(lambda: is_in(api, "RETRY_SHORT_FIRST"))
        await alerted(receiver, "RETRY_SHORT_FIRST", "firing")
        receiver.on("/short", Answer(200))
        receiver.on("/long", Answer(200))
        await until(lambda: have_ended(connection, "short", 25))
        await until(lambda: have_ended(connection, "long", 5))
        await until(lambda: is_in(api, "NORMAL"))
        await alerted(receiver, "RETRY_SHORT_FIRST", "firing", "resolved")


async def test_C32_dead_letters_hold_all_but_core_jobs_and_lose_nothing(url: str, connection: Platform) -> None:
    async with Receiver() as receiver, governed(url, {"dlqGrowthPerMin": 10}) as api:
        await watching(api, receiver, "MODE_ENTERED")
        await job(api, receiver, "broken", Answer(400))
        await job(api, receiver, "usual", Answer(200))
        await job(api, receiver, "core", Answer(200), priority="core")
        await enqueue(api, "broken", 12)
        await until(lambda: is_in(api, "CORE_ONLY"))
        await alerted(receiver, "CORE_ONLY", "firing")
        await enqueue(api, "usual", 5)
        assert await _delay_of_core(api) < 2.0
        assert (await states(connection, "usual")) == {"INIT": 5}
        await until(lambda: is_in(api, "NORMAL"))
        await until(lambda: have_ended(connection, "usual", 5))
        assert (await states(connection, "broken")) == {"DEAD": 12}
        assert await audited(api) == [("mode.enter", "CORE_ONLY"), ("mode.leave", "CORE_ONLY")]
        await alerted(receiver, "CORE_ONLY", "firing", "resolved")


async def test_a_mode_that_a_rule_begins_while_an_operator_freezes_is_one_of_the_system(url: str) -> None:
    seldom = {"governor_every": timedelta(hours=1), "figure_window": timedelta(minutes=1)}
    async with Receiver() as receiver, governed(url, {"dlqGrowthPerMin": 10}, **seldom) as api:
        await job(api, receiver, "broken", Answer(400))
        await enqueue(api, "broken", 12)

        async def are_counted() -> bool:
            figures = (await api("GET", "/api/v1/scheduler/thresholds")).json["figures"]
            return any(figure["mode"] == "CORE_ONLY" and figure["value"] == 12 for figure in figures)

        await until(are_counted)
        assert await modes(api) == ["NORMAL"], "no rule was evaluated since"
        assert (await api("POST", "/api/v1/scheduler/freeze", {"what": "backfill"})).status == 200
        assert await is_in(api, "CORE_ONLY")
        rows = (await api("GET", "/api/v1/audit?limit=500")).json["items"]
        by = {row["verb"]: row["actor"]["kind"] for row in rows}
        assert (by["dispatch.freeze"], by["mode.enter"], by["incident.open"]) == ("keyless", "system", "system")
        forced = {"mode": "CORE_ONLY", "state": "OFF"}
        assert (await api("POST", "/api/v1/scheduler/mode", forced)).status == 200
        left = next(row for row in (await api("GET", "/api/v1/audit")).json["items"] if row["verb"] == "mode.leave")
        assert left["actor"]["kind"] == "keyless"


async def test_a_dry_run_reports_and_holds_nothing(url: str, connection: Platform) -> None:
    async with Receiver() as receiver, governed(url, {"dlqGrowthPerMin": 10, "dryRun": True}) as api:
        await watching(api, receiver, "MODE_ENTERED")
        await job(api, receiver, "broken", Answer(400))
        await job(api, receiver, "usual", Answer(200))
        await enqueue(api, "broken", 12)

        async def is_reported() -> bool:
            changes = (await api("GET", "/api/v1/scheduler/mode/history")).json["items"]
            return [(change["mode"], change["dryRun"]) for change in changes] == [("CORE_ONLY", True)]

        await until(is_reported)
        await enqueue(api, "usual", 5)
        await until(lambda: have_ended(connection, "usual", 5))
        assert await modes(api) == ["NORMAL"]
        assert (await api("GET", "/api/v1/alerts")).json["items"] == []
