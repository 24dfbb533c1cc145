"""Modes that are forced by hand, freezes and pauses: on a running server with HTTP targets, and on a worker."""

import asyncio
import os
from typing import Any

import harness
import pytest
from harness import Client
from keys import created, holder, holding
from receiver import Answer, Receiver
from rows import until
from working import working

from horai import Horai
from horai.db.pool import Platform

MODE = "/api/v1/scheduler/mode"


async def job(api: Client, receiver: Receiver, name: str, **fields: Any) -> None:
    """Create a job whose calls succeed."""
    receiver.on(f"/{name}", *[Answer(200)] * 50)
    body = {"name": name, "target": {"type": "http", "url": receiver.url(f"/{name}")}, **fields}
    made = await api("POST", "/api/v1/jobs", body)
    assert made.status == 201, made.json


async def triggered(api: Client, name: str) -> str:
    made = await api("POST", f"/api/v1/jobs/{name}/trigger", Idempotency_Key=os.urandom(8).hex())
    assert made.status == 201, made.json
    return made.json["instance"]["id"]


async def done(api: Client, path: str, body: Any = None) -> Any:
    reply = await api("POST", f"/api/v1/scheduler/{path}", body)
    assert reply.status == 200, reply.json
    return reply.json


async def hindrances(api: Client, instance: str) -> list[str]:
    return [hold["kind"] for hold in (await api("GET", f"/api/v1/instances/{instance}/why")).json["holds"]]


async def state_of(api: Client, instance: str) -> str:
    return (await api("GET", f"/api/v1/instances/{instance}")).json["state"]


async def test_C32_in_core_only_instances_of_other_priorities_wait_and_run_after_it(url: str) -> None:
    async with Receiver() as receiver, harness.node(url) as api:
        await job(api, receiver, "core", priority="core")
        await job(api, receiver, "usual")
        shown = await done(api, "mode", {"mode": "CORE_ONLY", "state": "ON", "note": "drill"})
        assert shown["modes"] == ["CORE_ONLY"]
        held = await triggered(api, "usual")
        await api.until_state(await triggered(api, "core"), "SUCCESS")
        assert await state_of(api, held) == "INIT"
        assert await hindrances(api, held) == ["MODE"]

        health = (await api("GET", "/api/v1/scheduler/health")).json
        assert (health["status"], health["modes"]) == ("DEGRADED", ["CORE_ONLY"])
        assert [action["text"] for action in health["actions"]] == ["Only instances of priority core start."]

        assert (await done(api, "mode", {"mode": "CORE_ONLY", "state": "AUTO"}))["modes"] == ["NORMAL"]
        await api.until_state(held, "SUCCESS")
        health = (await api("GET", "/api/v1/scheduler/health")).json
        assert (health["status"], health["modes"], health["actions"]) == ("UP", ["NORMAL"], [])


async def test_retries_that_a_mode_holds_start_as_soon_as_it_ends(url: str, connection: Platform) -> None:
    async with Receiver() as receiver, harness.node(url) as api:
        await job(api, receiver, "flaky", retry={"maxRetry": 9, "base": "100ms", "jitter": "none"})
        receiver.on("/flaky", *[Answer(503)] * 8, *[Answer(200)] * 50)
        await done(api, "mode", {"mode": "RETRY_LIMITED", "state": "ON"})
        instances = [await triggered(api, "flaky") for _ in range(8)]

        async def are_held() -> bool:
            late = "select count(*) from horai.instance_live where due > clock_timestamp() + interval '40 seconds'"
            return await connection.fetchval(late) > 0

        await until(are_held)
        await done(api, "mode", {"mode": "RETRY_LIMITED", "state": "OFF"})
        for each in instances:
            await api.until_state(each, "SUCCESS")


async def test_a_worker_obeys_a_mode_as_a_node_does(url: str) -> None:
    app, ran = Horai("shop", database_url=url), list[str]()

    @app.job(priority="core")
    async def core(instance: Any) -> None:
        ran.append("core")

    @app.job
    async def usual(instance: Any) -> None:
        ran.append("usual")

    async with harness.node(url) as api, working(app):
        await done(api, "mode", {"mode": "CORE_ONLY", "state": "ON"})
        held = (await usual.enqueue()).id
        await (await core.enqueue()).result()
        assert ran == ["core"]
        await done(api, "mode", {"mode": "CORE_ONLY", "state": "OFF"})
        await api.until_state(str(held), "SUCCESS")


async def test_F5_an_operator_freezes_low_priority_and_releases_it(url: str) -> None:
    async with Receiver() as receiver, harness.node(url) as api:
        await job(api, receiver, "report", priority="low")
        await job(api, receiver, "usual")
        shown = await done(api, "freeze", {"what": "low-priority", "note": "sale", "expiresIn": "1h"})
        [hold] = shown["holds"]
        assert (hold["what"], hold["scope"], hold["note"]) == ("low-priority", "platform", "sale")
        held = await triggered(api, "report")
        await api.until_state(await triggered(api, "usual"), "SUCCESS")
        assert await state_of(api, held) == "INIT"
        assert (await done(api, "unfreeze", {"what": "low-priority"}))["holds"] == []
        await api.until_state(held, "SUCCESS")

        verbs = [row["verb"] for row in (await api("GET", "/api/v1/audit")).json["items"]]
        assert [verb for verb in verbs if verb.startswith("dispatch.")] == ["dispatch.unfreeze", "dispatch.freeze"]


async def test_a_freeze_ends_by_itself_when_its_time_is_over(url: str) -> None:
    async with Receiver() as receiver, harness.node(url) as api:
        await job(api, receiver, "report", priority="low")
        await done(api, "freeze", {"what": "low-priority", "expiresIn": "500ms"})
        held = await triggered(api, "report")
        await api.until_state(held, "SUCCESS")
        assert (await api("GET", MODE)).json["holds"] == []


async def test_C30_a_frozen_entry_refuses_new_backfills_and_counts_them_still(url: str) -> None:
    async with Receiver() as receiver, harness.node(url) as api:
        await job(api, receiver, "hourly", cron="0 * * * *")
        await done(api, "freeze", {"what": "backfill"})
        body = {"from": "2026-11-01T00:00:00Z", "to": "2026-11-01T06:00:00Z", "mode": "missing"}
        counted = await api("POST", "/api/v1/jobs/hourly/backfill", {**body, "dryRun": True})
        assert counted.status == 200, counted.json
        refused = await api("POST", "/api/v1/jobs/hourly/backfill", body)
        assert (refused.status, refused.json["code"]) == (429, "SCH_429_RETRY_LIMITED")
        assert refused.headers["Retry-After"] == "60"
        assert (await api("GET", "/api/v1/backfills")).json["items"] == []
        await done(api, "unfreeze", {"what": "backfill"})
        assert (await api("POST", "/api/v1/jobs/hourly/backfill", body)).status == 202


async def test_a_pause_holds_all_dispatch_also_of_core_jobs_and_new_queues(url: str) -> None:
    async with Receiver() as receiver, harness.node(url) as api:
        await job(api, receiver, "core", priority="core")
        shown = await done(api, "pause", {"note": "moving house"})
        assert [hold["what"] for hold in shown["holds"]] == ["dispatch"]
        await job(api, receiver, "newcomer", queue="another")
        held = [await triggered(api, "core"), await triggered(api, "newcomer")]
        health = (await api("GET", "/api/v1/scheduler/health")).json
        assert health["status"] == "DEGRADED"
        assert [await state_of(api, each) for each in held] == ["INIT", "INIT"]
        assert await hindrances(api, held[0]) == ["DISPATCH_PAUSED"]
        await done(api, "resume")
        for each in held:
            await api.until_state(each, "SUCCESS")


async def test_an_operator_of_a_tenant_holds_only_the_work_of_the_tenant(url: str, connection: Platform) -> None:
    async with Receiver() as receiver, harness.node(url) as api:
        root = holding(api, (await created(api, "platform-admin"))["key"])
        for name in ("ours", "theirs"):
            assert (await root("POST", "/api/v1/tenants", {"name": name})).status == 201
            quotas = {"quotas": {"callbackNetworks": ["127.0.0.0/8"]}}
            assert (await root("PATCH", f"/api/v1/tenants/{name}", quotas)).status == 200
        ours, theirs = await holder(root, "admin", "ours"), await holder(root, "admin", "theirs")
        for each in (ours, theirs):
            await job(each, receiver, "usual")
            await job(each, receiver, "report", priority="low")
        await done(ours, "pause")
        held = await triggered(ours, "usual")
        await theirs.until_state(await triggered(theirs, "usual"), "SUCCESS")
        assert await state_of(ours, held) == "INIT"
        assert (await theirs("GET", MODE)).json["holds"] == []
        await done(ours, "resume")
        await ours.until_state(held, "SUCCESS")

        await done(ours, "freeze", {"what": "low-priority"})
        held = await triggered(ours, "report")
        await theirs.until_state(await triggered(theirs, "report"), "SUCCESS")
        await ours.until_state(await triggered(ours, "usual"), "SUCCESS")
        assert await state_of(ours, held) == "INIT"
        await done(ours, "unfreeze", {"what": "low-priority"})
        await ours.until_state(held, "SUCCESS")

        assert (await ours("POST", MODE, {"mode": "CORE_ONLY", "state": "ON"})).status == 403
        assert (await ours("PUT", "/api/v1/scheduler/thresholds", {})).status == 403


async def test_a_resume_of_the_tenant_does_not_end_a_pause_of_the_platform(url: str) -> None:
    async with Receiver() as receiver, harness.node(url) as api:
        root = holding(api, (await created(api, "platform-admin"))["key"])
        assert (await root("POST", "/api/v1/tenants", {"name": "ours"})).status == 201
        quotas = {"quotas": {"callbackNetworks": ["127.0.0.0/8"]}}
        assert (await root("PATCH", "/api/v1/tenants/ours", quotas)).status == 200
        ours = await holder(root, "admin", "ours")
        await job(ours, receiver, "usual")
        await done(ours, "pause")
        await done(root, "pause")
        held = await triggered(ours, "usual")
        await done(ours, "resume")
        assert [hold["scope"] for hold in (await ours("GET", MODE)).json["holds"]] == ["platform"]
        assert await state_of(ours, held) == "INIT"
        await done(root, "resume")
        await ours.until_state(held, "SUCCESS")


async def test_every_process_obeys_with_its_next_heartbeat_if_no_notification_arrives(
    url: str, connection: Platform
) -> None:
    async with Receiver() as receiver, harness.node(url) as api:
        await job(api, receiver, "usual")
        await connection.execute(
            """update horai.governor set controls = '{"coreOnly": true, "modes": ["CORE_ONLY"]}'"""
        )
        await until(lambda: _is_held(api), within=10)
        held = await triggered(api, "usual")
        await connection.execute("update horai.governor set controls = '{}'")
        await api.until_state(held, "SUCCESS", within=10)


async def _is_held(api: Client) -> bool:
    """Return whether an instance that was just added stays where it is for a while."""
    instance = await triggered(api, "usual")
    for _ in range(20):
        if await state_of(api, instance) != "INIT":
            return False
        await asyncio.sleep(0.02)
    return True


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("mode", {"mode": "NORMAL", "state": "ON"}, "mode"),
        ("mode", {"mode": "CORE_ONLY", "state": "MAYBE"}, "state"),
        ("mode", {"mode": "CORE_ONLY", "state": "ON", "expiresIn": "soon"}, "expiresIn"),
        ("freeze", {"what": "everything"}, "what"),
        ("freeze", {"what": "backfill", "until": "tomorrow"}, "until"),
    ],
)
async def test_a_wrong_field_is_refused_and_holds_nothing(url: str, path: str, body: Any, field: str) -> None:
    async with harness.node(url) as api:
        refused = await api("POST", f"/api/v1/scheduler/{path}", body)
        assert (refused.status, [error["field"] for error in refused.json["errors"]]) == (422, [field])
        shown = (await api("GET", MODE)).json
        assert (shown["modes"], shown["holds"]) == (["NORMAL"], [])


async def test_C23_health_has_the_delay_the_modes_and_the_thresholds_in_force(url: str) -> None:
    async with harness.node(url) as api:
        shown = (await api("GET", "/api/v1/scheduler/health")).json
        assert isinstance(shown["triggerDelayP95Ms"], float | int)
        assert shown["modes"] == ["NORMAL"]
        known = {
            "triggerDelayP95Ms": 2000,
            "runSuccessRate10m": 0.995,
            "retryBacklog": 200_000,
            "dlqGrowthPerMin": 1000,
        }
        assert shown["thresholds"] == known
        assert (await api("PUT", "/api/v1/scheduler/thresholds", {"triggerDelayP95": "5s"})).status == 200
        shown = (await api("GET", "/api/v1/scheduler/health")).json
        assert shown["thresholds"] == {**known, "triggerDelayP95Ms": 5000}


async def test_a_tenant_sees_no_note_of_the_platform_in_modes_holds_and_history_and_the_platform_sees_them(
    url: str,
) -> None:
    async with harness.node(url) as api:
        root = holding(api, (await created(api, "platform-admin"))["key"])
        assert (await root("POST", "/api/v1/tenants", {"name": "ours"})).status == 201
        ours = await holder(root, "admin", "ours")
        await done(root, "mode", {"mode": "CORE_ONLY", "state": "ON", "note": "secret of a mode"})
        await done(root, "freeze", {"what": "backfill", "note": "secret of a hold"})
        await done(ours, "freeze", {"what": "low-priority", "note": "our sale"})

        own, whole = (await ours("GET", MODE)).json, (await root("GET", MODE)).json
        own_past, past = (await ours("GET", f"{MODE}/history")).json, (await root("GET", f"{MODE}/history")).json

    assert "secret" not in str((own, own_past))
    assert [(hold["what"], hold["note"]) for hold in own["holds"]] == [("backfill", None), ("low-priority", "our sale")]
    (cause,) = [rule["cause"]["text"] for rule in own["rules"] if rule["mode"] == "CORE_ONLY"]
    assert cause == "An operator has set it by hand."
    assert own_past["items"][0]["cause"]["text"] == cause
    assert "secret of a mode" in str(whole["rules"])
    assert "secret of a hold" in str(whole["holds"])
    assert "secret of a mode" in str(past)
