"""Rules that follow a calendar, watch stuck work and sinks, and name root causes: from the real cause to a real receiver."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import harness
import jsonschema_rs
import pytest
from alert_yard import QUICK, RULES, channel, kinds, rule, told, watching
from databases import Superuser
from harness import Client
from long_runs import begun, past
from receiver import HANG, Answer, Receiver
from rows import until
from stages import workbench

import horai
from api import expect, given
from horai.core.stuck import SAMPLES
from horai.features import alerts
from horai.features.alerts.stage import AlertsStage

SCHEMA = json.loads((Path(horai.__file__).parent / "features" / "alerts" / "alert.schema.json").read_text())
WAKE = "select pg_notify('horai_wake', 'l')"
LONG_AGO = "update horai.alert_rule set active_from = now() - interval '30 days'"
OFFICE = "/api/v1/calendars/office"


def around_now() -> list[str]:
    """Yesterday, today and tomorrow in UTC: midnight may pass during the test."""
    today = datetime.now(UTC).date()
    return [str(today + timedelta(days=number)) for number in (-1, 0, 1)]


async def test_on_a_day_off_of_its_calendar_a_rule_does_not_fire_and_a_change_of_the_calendar_counts_at_once(
    url: str, connection: Superuser
) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        job = await given.scripted(api, receiver, Answer(200), name="report")
        everyday: dict[str, Any] = {"weekend": [], "holidays": around_now()}
        assert (await api("PUT", OFFICE, everyday)).status == 201
        passed = (datetime.now(UTC) - timedelta(minutes=2)).strftime("%H:%M")
        made = await watching(api, receiver, "NOT_SUCCESS_BY", job=job["name"], by=passed, calendar="office")
        assert made["calendar"] == "office"
        await channel(api, receiver.url("/plain"), "plain")
        await rule(api, "NOT_SUCCESS_BY", "plain", job=job["name"], by=passed, channels=["plain"])
        # the last working day had a success, today has none
        await past(connection, int(job["id"]), 1, timedelta(seconds=1), ago=timedelta(days=2))
        await connection.execute(LONG_AGO)
        await connection.execute(WAKE)
        assert kinds(await told(receiver, 1, "/plain")) == ["firing"]
        assert not [hit for hit in receiver.hits if hit.path == "/alerts"]
        assert [each["rule"] for each in (await api("GET", "/api/v1/alerts")).json["items"]] == ["plain"]

        assert (await api("PUT", OFFICE, {"weekend": []})).status == 200
        (message,) = await told(receiver, 1)
        assert (message["rule"]["name"], message["alerts"][0]["job"]) == ("watch", "report")
        assert (await api("PUT", OFFICE, everyday)).status == 200
        assert kinds(await told(receiver, 2)) == ["firing", "resolved"]


async def test_a_rule_names_a_calendar_that_exists_and_a_calendar_in_use_stays(url: str) -> None:
    async with harness.node(url) as api, Receiver() as receiver:
        await channel(api, receiver.url("/alerts"))
        body = {"kind": "NOT_SUCCESS_BY", "channels": ["ops"], "job": "report", "by": "06:00", "calendar": "office"}
        refused = await api("POST", RULES, {**body, "name": "nightly"})
        problem = expect.problem(refused, 422, "SCH_422_INVALID")
        assert problem["errors"][0]["field"] == "calendar"
        assert "PUT /api/v1/calendars/NAME" in str(problem)
        assert (
            await api(
                "POST", RULES, {"name": "dead", "kind": "INSTANCE_DEAD", "channels": ["ops"], "calendar": "office"}
            )
        ).status == 422

        assert (await api("PUT", OFFICE, {})).status == 201
        assert (await api("POST", RULES, {**body, "name": "nightly"})).status == 201
        expect.problem(await api("DELETE", OFFICE), 409, "SCH_409_CONFLICT", "nightly")
        assert (await api("PUT", f"{RULES}/nightly", {**body, "calendar": "none"})).status == 422
        assert (await api("PUT", f"{RULES}/nightly", {**body, "calendar": None})).status == 200
        assert (await api("DELETE", OFFICE)).status == 204


async def hung(api: Client, receiver: Receiver, connection: Superuser, name: str, **fields: Any) -> Any:
    """The run of a job that hangs since an hour; it usually takes a second."""
    job = await given.scripted(api, receiver, HANG, name=name, timeout="60s", **fields)
    running = await given.running(api, receiver, job, "first")
    await past(connection, int(job["id"]), SAMPLES, timedelta(seconds=1))
    await begun(connection, int(running["id"]), timedelta(hours=1))
    return running


async def test_a_stuck_run_and_the_queue_that_it_clogs_fire_and_its_end_resolves_both(
    url: str, connection: Superuser
) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        await channel(api, receiver.url("/alerts"))
        for path in ("tagged", "other"):
            await channel(api, receiver.url(f"/{path}"), path)
        await rule(api, "RUN_STUCK", "runs")
        await rule(api, "RUN_STUCK", "tagged", tag="shop", channels=["tagged"])
        await rule(api, "QUEUE_CLOGGED", "queues", queue="narrow")
        await rule(api, "QUEUE_CLOGGED", "other", queue="wide", channels=["other"])
        await rule(api, "RUN_STUCK", "other-job", job="mine", channels=["other"])
        await api("PUT", "/api/v1/queues/narrow", {"maxConcurrency": 1})
        running = await hung(api, receiver, connection, "crawl", queue="narrow", tags=["shop"])
        messages = [*await told(receiver, 2), *await told(receiver, 1, "/tagged")]
        for message in messages:
            jsonschema_rs.validator_for(SCHEMA).validate(message)
        found = {message["rule"]["name"]: message for message in messages}
        stuck, clogged = found["runs"]["alerts"][0], found["queues"]["alerts"][0]
        assert (stuck["job"], stuck["object"], stuck["data"]["queue"]) == ("crawl", running["id"], "narrow")
        assert stuck["data"]["p95"] == "1s"
        assert found["tagged"]["alerts"][0]["object"] == running["id"]
        assert (clogged["object"], clogged["data"]["holders"], clogged["data"]["slots"]) == (
            "narrow",
            [running["id"]],
            1,
        )
        assert "horai stuck runs" in found["runs"]["text"]
        assert "horai stuck queues" in found["queues"]["text"]

        assert (await api("POST", f"/api/v1/instances/{running['id']}/cancel")).status < 300
        assert sorted(kinds(await told(receiver, 4))) == ["firing", "firing", "resolved", "resolved"]
        assert not [hit for hit in receiver.hits if hit.path == "/other"]


async def test_stuck_work_of_another_tenant_is_not_told(url: str, connection: Superuser) -> None:
    other = await connection.fetchval("insert into horai.tenant (name) values ('shop') returning id")
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        await channel(api, receiver.url("/alerts"))
        await rule(api, "RUN_STUCK", "runs")
        await rule(api, "RUN_STUCK", "theirs")
        await connection.execute("update horai.alert_rule set tenant_id = $1 where name = 'theirs'", other)
        await connection.execute(WAKE)
        await hung(api, receiver, connection, "crawl")
        await told(receiver, 1)
        rows = await connection.fetch("select tenant_id from horai.alert")
        assert [row["tenant_id"] for row in rows] == [1]


async def test_a_parked_sink_fires_stays_while_it_is_paused_and_is_resolved_when_it_is_active_or_deleted(
    url: str, connection: Superuser
) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        await watching(api, receiver, "SINK_PARKED")
        receiver.on("/billing", *[Answer(500)] * 50)
        body = {"kind": "webhook", "url": receiver.url("/billing")}
        assert (await api("PUT", "/api/v1/sinks/billing", body)).status == 201
        job = await given.scripted(api, receiver, Answer(200))
        await api("POST", f"/api/v1/jobs/{job['name']}/trigger", Idempotency_Key="event")

        async def parked() -> bool:
            await connection.execute(
                "update horai.sink set failing_since = now() - interval '6 minutes' where failing_since is not null"
            )
            return (await api("GET", "/api/v1/sinks/billing")).json["status"] == "PARKED"

        await until(parked)
        (message,) = await told(receiver, 1)
        jsonschema_rs.validator_for(SCHEMA).validate(message)
        data = message["alerts"][0]["data"]
        assert (data["sink"], data["kind"]) == ("billing", "webhook")
        assert "500" in data["error"]
        assert "horai sinks show NAME" in message["text"]
        attention = (await api("GET", "/api/v1/scheduler/attention")).json
        assert [(one["name"], "500" in one["lastError"]) for one in attention["parkedSinks"]] == [("billing", True)]

        assert (await api("POST", "/api/v1/sinks/billing/pause")).status == 200
        await channel(api, receiver.url("/beats"), "beats")
        await rule(api, "HEARTBEAT_MISSING", "beats", channels=["beats"])
        await api("PUT", "/api/v1/heartbeats/backup", {"every": "1s", "grace": "0s"})
        await told(receiver, 1, "/beats")  # the same evaluation has seen the paused sink
        assert kinds(await told(receiver, 1)) == ["firing"]
        assert (await api("POST", "/api/v1/sinks/billing/resume")).status == 200
        assert kinds(await told(receiver, 2)) == ["firing", "resolved"]

        await connection.execute("update horai.sink set status = 'PARKED', next_try = now() + interval '1 hour'")
        await told(receiver, 3)
        assert (await api("DELETE", "/api/v1/sinks/billing")).status < 300
        assert kinds(await told(receiver, 4)) == ["firing", "resolved", "firing", "resolved"]


@pytest.mark.parametrize(("language", "words"), [("en", "load (HTTP_400) died"), ("zh-CN", "load (HTTP_400) 已死亡")])
async def test_a_blocked_run_is_told_with_its_root_cause(url: str, language: str, words: str) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        await channel(api, receiver.url("/alerts"), language=language)
        await rule(api, "RUN_BLOCKED")
        await given.scripted(api, receiver, Answer(400), name="load", retry={"maxRetry": 0})
        for name in ("report", "mail"):
            await given.scripted(api, receiver, Answer(200), name=name)
        nodes = [
            {"name": "load", "job": "load"},
            {"name": "report", "job": "report", "after": ["load"]},
            {"name": "mail", "job": "mail", "after": ["report"]},
        ]
        assert (await api("POST", "/api/v1/workflows", {"name": "nightly", "nodes": nodes})).status == 201
        assert (await api("POST", "/api/v1/workflows/nightly/trigger", Idempotency_Key="run")).status == 202
        (message,) = await told(receiver, 1)
        jsonschema_rs.validator_for(SCHEMA).validate(message)
        (letter,) = (await api("GET", "/api/v1/dlq?job=load")).json["items"]
        cause = {"node": "load", "job": "load", "instance": letter["instanceId"], "errorCode": "HTTP_400"}
        assert message["alerts"][0]["data"]["causes"] == [cause]
        assert words in message["text"]
        assert "horai stuck workflows" in message["text"]
        (firing,) = (await api("GET", "/api/v1/alerts")).json["items"]
        assert firing["data"]["causes"] == [cause]


async def test_rules_of_stuck_work_cost_two_statements_a_minute_and_nothing_without_a_rule(url: str) -> None:
    add = """insert into horai.alert_rule (tenant_id, name, kind, definition, channels, group_wait, repeat_every)
        select 1, kind, kind, '{}', '{}', interval '0', interval '4 h' from unnest($1::text[]) as kind"""
    stuck, reloads = {"long_runs", "long_holders"}, {"rules_in_force", "next_delivery_at"}
    async with workbench(url) as bench:
        stage = bench.feature_stage(alerts.FEATURE)
        assert isinstance(stage, AlertsStage)
        await bench.connection.execute(add, ["INSTANCE_DEAD"])
        begun_at = now = bench.clock.now()
        tap = await bench.tap(stage.line)
        while now < begun_at + timedelta(minutes=9):
            now = await stage.step(now)
        assert not stuck & set(await tap.names())
        await bench.connection.execute(add, ["RUN_STUCK", "QUEUE_CLOGGED"])
        stage.wake()
        now = await stage.step(now)
        before, begun_at = len(await tap.names()), now
        while now < begun_at + timedelta(minutes=9):
            now = await stage.step(now)
        sent = [name for name in (await tap.names())[before:] if name not in reloads]
        assert set(sent) == stuck
        assert len(sent) <= 2 * 10


async def test_a_channel_that_fails_for_minutes_or_gave_up_is_listed_until_it_takes_a_message(
    url: str, connection: Superuser
) -> None:
    async def listed() -> list[tuple[str, str, int | None]]:
        async with harness.node(url) as fresh:  # a new server has no cached answer
            found = (await fresh("GET", "/api/v1/scheduler/attention")).json["failingChannels"]
        return [(one["name"], one["status"], one["httpStatus"]) for one in found]

    async with harness.node(url, alerts_every=timedelta(milliseconds=200)) as api, Receiver() as receiver:
        receiver.on("/alerts", Answer(503), Answer(200))
        await watching(api, receiver, "INSTANCE_DEAD")
        job = await given.scripted(api, receiver, Answer(400), retry={"maxRetry": 0})
        await api("POST", f"/api/v1/jobs/{job['name']}/trigger", Idempotency_Key="key")

        async def refused() -> bool:
            items = (await api("GET", "/api/v1/alerts/deliveries")).json["items"]
            return bool(items) and items[0]["error"] is not None

        await until(refused)
        await connection.execute("update horai.alert_delivery set next_try_at = now() + interval '1 hour'")
        assert await listed() == [], "it fails since a moment ago"
        await connection.execute("update horai.alert_delivery set created_at = now() - interval '6 minutes'")
        assert await listed() == [("ops", "PENDING", 503)]
        other = await connection.fetchval("insert into horai.tenant (name) values ('shop') returning id")
        await connection.execute("update horai.alert_channel set tenant_id = $1", other)
        assert await listed() == [], "it is of another tenant"
        await connection.execute("update horai.alert_channel set tenant_id = 1")
        await connection.execute("update horai.alert_delivery set status = 'FAILED', finished_at = now()")
        assert await listed() == [("ops", "FAILED", 503)]
        assert (await api("POST", "/api/v1/alerts/channels/ops/test")).json["status"] == "DELIVERED"
        assert await listed() == []
