"""Every kind of rule fires and is resolved, from the real cause to a real receiver."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import harness
import jsonschema_rs
from alert_yard import QUICK, RULES, channel, kinds, rule, told, until_listed, watching
from databases import Superuser
from harness import Client
from receiver import Answer, Receiver

import horai
from api import given
from horai.core.callbacks import verify

SCHEMA = json.loads((Path(horai.__file__).parent / "features" / "alerts" / "alert.schema.json").read_text())
NO_RETRY = {"maxRetry": 0}


async def dead(api: Client, receiver: Receiver, **fields: Any) -> Any:
    """A job whose only instance has died; the job."""
    made = await given.scripted(api, receiver, Answer(400), Answer(200), retry=NO_RETRY, **fields)
    await api("POST", f"/api/v1/jobs/{made['name']}/trigger", Idempotency_Key=given.name("key"))
    return made


async def test_a_dead_instance_fires_a_signed_webhook_of_the_documented_schema_and_a_discard_resolves_it(
    url: str,
) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        await watching(api, receiver, "INSTANCE_DEAD")
        job = await dead(api, receiver)
        (message,) = await told(receiver, 1)
        jsonschema_rs.validator_for(SCHEMA).validate(message)
        (secret,) = (await api("GET", "/api/v1/signing-secrets")).json["items"]
        hit = next(hit for hit in receiver.hits if hit.path == "/alerts")
        assert verify(secret["secret"], hit.headers, hit.body, datetime.now(UTC))
        assert (message["type"], message["tenant"]) == ("horai.alert.firing", "default")
        assert message["rule"] == {"name": "watch", "kind": "INSTANCE_DEAD"}
        (letter,) = (await api("GET", "/api/v1/dlq")).json["items"]
        (alert,) = message["alerts"]
        assert (alert["job"], alert["object"], alert["data"]["errorCode"]) == (
            job["name"], letter["instanceId"], "HTTP_400",
        )  # fmt: skip

        (firing,) = (await api("GET", "/api/v1/alerts")).json["items"]
        assert (firing["status"], firing["kind"], firing["id"]) == ("FIRING", "INSTANCE_DEAD", alert["id"])
        assert (await api("POST", f"/api/v1/dlq/{letter['id']}/discard", {})).status == 200
        resolved = (await told(receiver, 2))[1]
        jsonschema_rs.validator_for(SCHEMA).validate(resolved)
        assert resolved["type"] == "horai.alert.resolved"
        assert resolved["alerts"][0]["resolvedAt"] is not None
        assert (await api("GET", "/api/v1/alerts")).json["items"] == []
        assert len((await api("GET", "/api/v1/alerts?status=RESOLVED")).json["items"]) == 1


async def test_a_rule_of_a_job_or_a_tag_does_not_fire_for_others_and_reports_nothing_from_before(url: str) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        await dead(api, receiver, tags=["shop"])
        await until_listed(api, "/api/v1/dlq", 1)
        await watching(api, receiver, "INSTANCE_DEAD", tag="shop")
        await rule(api, "INSTANCE_DEAD", "of-job", job="mine")
        await dead(api, receiver)
        await dead(api, receiver, tags=["shop"])
        await dead(api, receiver, name="mine")
        messages = await told(receiver, 2)
        found = sorted((each["rule"]["name"], each["alerts"][0]["job"]) for each in messages)
        assert [rule for rule, _ in found] == ["of-job", "watch"]
        assert found[0][1] == "mine"
        assert len(await until_listed(api, "/api/v1/alerts", 2)) == 2


async def test_C6_C59f_a_parent_that_fails_is_retried_and_buried_its_children_stay_blocked_and_alerts_arrive(
    url: str,
) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        await watching(api, receiver, "RUN_BLOCKED")
        await rule(api, "INSTANCE_DEAD", "dead", job="load")
        retry = {"maxRetry": 1, "base": "1ms", "jitter": "none"}
        await given.scripted(api, receiver, Answer(503), Answer(503), Answer(200), name="load", retry=retry)
        children = ("left", "right")
        for name in children:
            await given.scripted(api, receiver, Answer(200), name=name)
        after = [{"name": each, "job": each, "after": ["load"]} for each in children]
        body = {"name": "nightly", "nodes": [{"name": "load", "job": "load"}, *after]}
        assert (await api("POST", "/api/v1/workflows", body)).status == 201
        run = await api("POST", "/api/v1/workflows/nightly/trigger", Idempotency_Key="run")
        assert run.status == 202, run.json

        messages = await told(receiver, 2)
        for message in messages:
            jsonschema_rs.validator_for(SCHEMA).validate(message)
            assert message["type"] == "horai.alert.firing"
        found = {message["rule"]["kind"]: message["alerts"][0] for message in messages}
        blocked, dead = found["RUN_BLOCKED"]["data"], found["INSTANCE_DEAD"]
        assert (blocked["workflow"], blocked["dead"], blocked["blocked"]) == ("nightly", ["load"], 2)
        assert (dead["job"], dead["data"]["errorCode"]) == ("load", "HTTP_503")
        assert len([hit for hit in receiver.hits if hit.path == "/load"]) == 2, "one try and one retry"
        for name in children:
            (child,) = (await api("GET", f"/api/v1/instances?job={name}")).json["items"]
            assert child["state"] == "BLOCKED"
        assert not [hit for hit in receiver.hits if hit.path in {"/left", "/right"}]

        (letter,) = (await api("GET", "/api/v1/dlq?job=load")).json["items"]
        assert letter["instanceId"] == dead["object"]
        assert (await api("POST", f"/api/v1/dlq/{letter['id']}/replay", {})).status < 300
        resolved = (await told(receiver, 4))[2:]
        assert kinds(resolved) == ["resolved", "resolved"]
        for name in children:
            (child,) = (await api("GET", f"/api/v1/instances?job={name}")).json["items"]
            assert (await api.until_state(child["id"], "SUCCESS"))["state"] == "SUCCESS"


async def test_a_mode_that_is_entered_and_left_is_told_each_time_and_others_are_not(url: str) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        await watching(api, receiver, "MODE_ENTERED", modes=["CORE_ONLY"])
        for mode in ("SHED_LOW", "CORE_ONLY", "CORE_ONLY"):
            for state in ("ON", "AUTO"):
                reply = await api("POST", "/api/v1/scheduler/mode", {"mode": mode, "state": state})
                assert reply.status == 200, reply.json
        told_of = {"firing": 0, "resolved": 0}
        for count in range(1, 5):  # entries within a moment are one message
            message = (await told(receiver, count))[-1]
            told_of[kinds([message])[0]] += message["count"]
            assert {alert["data"]["mode"] for alert in message["alerts"]} == {"CORE_ONLY"}
            if told_of == {"firing": 2, "resolved": 2}:
                return
        raise AssertionError(told_of)


async def test_a_heartbeat_that_is_missing_fires_and_the_next_one_resolves_it(url: str, connection: Superuser) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        await watching(api, receiver, "HEARTBEAT_MISSING")
        made = await api("PUT", "/api/v1/heartbeats/backup", {"every": "1d", "grace": "1h"})
        assert (made.status, made.json["missing"], made.json["lastAt"]) == (201, False, None)
        assert (await api("POST", "/api/v1/heartbeats/backup")).json["beats"] == 1
        assert (await api("POST", "/api/v1/heartbeats/unknown")).status == 404
        assert (await api("GET", "/api/v1/alerts")).json["items"] == []
        old = "update horai.heartbeat set active_from = now() - interval '2 days', last_at = now() - interval '1 day 61 minutes'"
        await connection.execute(old)
        (message,) = await told(receiver, 1)
        assert message["alerts"][0]["data"]["heartbeat"] == "backup"
        assert (await api("GET", "/api/v1/heartbeats")).json["items"][0]["missing"] is True
        assert (await api("POST", "/api/v1/heartbeats/backup")).json["beats"] == 2
        assert kinds(await told(receiver, 2)) == ["firing", "resolved"]


async def test_a_job_without_a_success_at_its_deadline_fires_until_it_succeeds(url: str, connection: Superuser) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        job = await given.scripted(api, receiver, Answer(200))
        yesterday = "update horai.alert_rule set active_from = now() - interval '3 days'"
        passed = (datetime.now(UTC) - timedelta(minutes=2)).strftime("%H:%M")
        await watching(api, receiver, "NOT_SUCCESS_BY", job=job["name"], by=passed)
        assert (await api("GET", "/api/v1/alerts")).json["items"] == [], "it is active since a moment ago"
        await connection.execute(yesterday)
        await connection.execute("select pg_notify('horai_wake', 'l')")
        (message,) = await told(receiver, 1)
        assert message["alerts"][0]["data"]["by"] == passed
        assert (await api("POST", f"/api/v1/jobs/{job['name']}/trigger", Idempotency_Key="now")).status == 201
        assert kinds(await told(receiver, 2)) == ["firing", "resolved"]


async def test_a_success_of_the_slot_of_the_day_before_does_not_satisfy_a_deadline(
    url: str, connection: Superuser
) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        job = await given.scripted(api, receiver, Answer(200))
        made = await api("POST", f"/api/v1/jobs/{job['name']}/trigger", Idempotency_Key="now")
        await api.until_state(made.json["instance"]["id"], "SUCCESS")
        await connection.execute("update horai.instance_history set fire_time = now() - interval '25 hours'")
        passed = (datetime.now(UTC) - timedelta(minutes=2)).strftime("%H:%M")
        await watching(api, receiver, "NOT_SUCCESS_BY", job=job["name"], by=passed)
        await connection.execute("update horai.alert_rule set active_from = now() - interval '3 days'")
        await connection.execute("select pg_notify('horai_wake', 'l')")
        assert kinds(await told(receiver, 1)) == ["firing"]


async def test_late_jobs_and_waiting_queues_fire_and_a_cancel_resolves_both(url: str) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        await watching(api, receiver, "JOB_LATE", after="100ms")
        await rule(api, "QUEUE_WAIT", "queues", queue="slow", after="100ms")
        body = {"name": "mail", "queue": "slow", "target": {"type": "worker", "handler": "mail"}}
        assert (await api("POST", "/api/v1/jobs", body)).status == 201
        other = {"name": "other", "target": {"type": "worker", "handler": "mail"}, "status": "PAUSED"}
        assert (await api("POST", "/api/v1/jobs", other)).status == 201
        made = await api("POST", "/api/v1/jobs/mail/trigger", Idempotency_Key="late")
        await api("POST", "/api/v1/jobs/other/trigger", Idempotency_Key="held")
        messages = await told(receiver, 2)
        found = {each["rule"]["kind"]: each["alerts"][0]["data"] for each in messages}
        assert (found["JOB_LATE"]["job"], found["JOB_LATE"]["instances"]) == ("mail", 1)
        assert (found["QUEUE_WAIT"]["queue"], found["QUEUE_WAIT"]["instances"]) == ("slow", 1)
        assert (await api("POST", f"/api/v1/instances/{made.json['instance']['id']}/cancel")).status == 200
        assert sorted(kinds(await told(receiver, 4))) == ["firing", "firing", "resolved", "resolved"]


async def test_a_report_with_differences_fires_and_the_next_without_any_resolves_it(
    url: str, connection: Superuser
) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        await watching(api, receiver, "RECONCILE_DRIFT")
        target = await given.job(api)
        source = {"type": "http", "url": receiver.url("/wanted")}
        body = {"name": "articles", "job": target["name"], "source": source, "every": "1d"}
        assert (await api("POST", "/api/v1/reconcilers", body)).status == 201
        add = """insert into horai.reconcile_report (tenant_id, reconciler_id, instance_id, attempt, source_version, missing, created)
            select 1, id, $1, 1, 1, $2, 0 from horai.reconciler"""
        for number, missing in enumerate((3, 0)):
            await connection.execute(add, number, missing)
            await connection.execute("update horai.reconcile_report set finished_at = now() where finished_at is null")
            await told(receiver, number + 1)
        messages = await told(receiver, 2)
        assert kinds(messages) == ["firing", "resolved"]
        assert messages[0]["alerts"][0]["data"]["missing"] == 3


async def test_an_error_budget_that_burns_too_fast_fires(url: str, connection: Superuser) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        await watching(api, receiver, "BUDGET_BURN", burnRate=20.0)
        add = "insert into horai.sli_minute (at, started, on_time) values (date_trunc('minute', now()), 1000, $1)"
        await connection.execute(add, 990)
        await asyncio.gather(rule(api, "BUDGET_BURN", "soon", burnRate=9.0), told(receiver, 1))
        (message,) = await told(receiver, 1)
        assert (message["rule"]["name"], message["alerts"][0]["data"]["burnRate"]) == ("soon", 10.0)
        await connection.execute("update horai.sli_minute set on_time = 1000")
        assert kinds(await told(receiver, 2)) == ["firing", "resolved"]


async def test_a_rule_that_is_disabled_or_changed_drops_its_alerts(url: str) -> None:
    async with harness.node(url, **QUICK) as api, Receiver() as receiver:
        await watching(api, receiver, "INSTANCE_DEAD")
        await dead(api, receiver)
        await told(receiver, 1)
        body = {"kind": "INSTANCE_DEAD", "channels": ["ops"], "enabled": False}
        assert (await api("PUT", f"{RULES}/watch", body)).status == 200
        assert (await api("GET", "/api/v1/alerts?status=ALL")).json["items"] == []
        await dead(api, receiver)
        await until_listed(api, "/api/v1/dlq", 2)
        await channel(api, receiver.url("/other"), "second")
        await rule(api, "INSTANCE_DEAD", "second", channels=["second"])
        await dead(api, receiver)
        await told(receiver, 1, "/other")
        assert len(await told(receiver, 1)) == 1
