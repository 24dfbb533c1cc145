"""Stuck runs, clogged queues, blocked runs, modes and holds over REST: in their lists, in attention, and where they are explained."""

import os
from datetime import timedelta
from typing import Any

import harness
from databases import Superuser
from harness import Client
from keys import created, holder, holding
from long_runs import begun, past
from receiver import HANG, Answer, Receiver

from api import expect, given
from horai.core.stuck import SAMPLES

SCHEDULER = "/api/v1/scheduler"
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


async def hung(api: Client, receiver: Receiver, db: Superuser, queue: str) -> tuple[Any, Any]:
    """A job of a queue with one slot, and its run that hangs for an hour; it usually takes a second."""
    await api("PUT", f"/api/v1/queues/{queue}", {"maxConcurrency": 1})
    job = await given.scripted(api, receiver, HANG, queue=queue, timeout="60s")
    running = await given.running(api, receiver, job, "first")
    await past(db, int(job["id"]), SAMPLES, SECOND)
    await begun(db, int(running["id"]), HOUR)
    return job, running


async def attention(api: Client, field: str, name: str, value: Any) -> Any:
    """The entry of attention whose `name` is `value`, once the cached answer has expired."""

    async def look() -> Any:
        found = (await api("GET", f"{SCHEDULER}/attention")).json[field]
        return next((one for one in found if one[name] == value), None)

    return await given.until(look)


async def test_a_stuck_run_and_the_queue_that_it_clogs_are_listed_and_explained(
    api: Client, receiver: Receiver, db: Superuser
) -> None:
    queue = given.name("queue")
    job, running = await hung(api, receiver, db, queue)
    second = (await given.put(api, job, "second", None)).json["instance"]

    listed = (await api("GET", f"{SCHEDULER}/stuck")).json
    [run] = [one for one in listed["items"] if one["id"] == running["id"]]
    assert (run["job"], run["queue"], run["key"], run["p95Ms"]) == (job["name"], queue, "first", 1000)
    assert run["startedAt"] < run["stuckSince"]

    [clog] = [one for one in (await api("GET", f"{SCHEDULER}/clogged")).json["items"] if one["name"] == queue]
    assert (clog["slots"], clog["waiting"], clog["since"]) == (1, 1, run["stuckSince"])
    assert [one["id"] for one in clog["holders"]] == [running["id"]]
    shown = (await api("GET", f"/api/v1/queues/{queue}")).json
    assert shown["clogged"] == {name: value for name, value in clog.items() if name != "name"}
    assert shown in (await api("GET", "/api/v1/queues?limit=500")).json["items"]

    why = (await api("GET", f"/api/v1/instances/{second['id']}/why")).json
    assert [hold["kind"] for hold in why["holds"]] == ["CONCURRENCY"]
    assert f"instance {running['id']} of {job['name']}" in why["holds"][0]["detail"]
    assert "it is stuck since" in (await api("GET", f"/api/v1/instances/{running['id']}/why")).json["why"]

    cause = await attention(api, "stuck", "id", running["id"])
    assert (cause["job"], cause["longestMs"], cause["waiting"], cause["blocks"]) == (job["name"], None, 1, 0)
    assert [one["id"] for one in (await attention(api, "clogged", "name", queue))["holders"]] == [running["id"]]


async def test_a_full_queue_is_listed_with_its_holders_and_its_instances_are_not_told_as_late(
    api: Client, receiver: Receiver, db: Superuser
) -> None:
    queue = given.name("queue")
    await api("PUT", f"/api/v1/queues/{queue}", {"maxConcurrency": 1})
    job = await given.scripted(api, receiver, HANG, queue=queue, timeout="60s")
    running = await given.running(api, receiver, job, "first")
    second = (await given.put(api, job, "second", None)).json["instance"]
    await begun(db, int(running["id"]), timedelta(minutes=5))
    await db.execute(
        "update horai.instance_live set due = due - interval '2 minutes', fire_time = fire_time - interval '2 minutes' where id = $1",
        int(second["id"]),
    )

    full = await attention(api, "full", "name", queue)
    found = (await api("GET", f"{SCHEDULER}/attention")).json

    assert (full["slots"], full["waiting"]) == (1, 1)
    assert full["since"] == (await api("GET", f"/api/v1/instances/{second['id']}")).json["due"]
    assert [(one["id"], one["job"], one["key"]) for one in full["holders"]] == [(running["id"], job["name"], "first")]
    assert queue not in [one["name"] for one in found["clogged"]]
    assert second["id"] not in [one["id"] for one in found["late"]["examples"]]
    why = (await api("GET", f"/api/v1/instances/{second['id']}/why")).json
    assert [hold["kind"] for hold in why["holds"]] == ["CONCURRENCY"]
    assert f"instance {running['id']} of {job['name']} since" in why["holds"][0]["detail"]


async def test_a_full_queue_whose_runs_are_not_stuck_is_not_clogged(
    api: Client, receiver: Receiver, db: Superuser
) -> None:
    queue = given.name("queue")
    _, running = await hung(api, receiver, db, queue)
    await begun(db, int(running["id"]), timedelta(seconds=30))

    assert (await api("GET", f"/api/v1/queues/{queue}")).json["clogged"] is None
    assert running["id"] not in [one["id"] for one in (await api("GET", f"{SCHEDULER}/stuck")).json["items"]]
    assert "stuck" not in (await api("GET", f"/api/v1/instances/{running['id']}/why")).json["why"]


async def test_lists_of_stuck_work_have_pages(api: Client, receiver: Receiver, db: Superuser) -> None:
    for _ in range(2):
        await hung(api, receiver, db, given.name("queue"))
    for path, name in (("stuck", "id"), ("clogged", "name")):
        every = (await api("GET", f"{SCHEDULER}/{path}")).json["items"]
        first = (await api("GET", f"{SCHEDULER}/{path}?limit=1")).json
        second = (await api("GET", f"{SCHEDULER}/{path}?limit=1&cursor={first['nextCursor']}")).json
        assert [first["items"][0][name], second["items"][0][name]] == [one[name] for one in every[:2]]
        expect.invalid(await api("GET", f"{SCHEDULER}/{path}?cursor=x"))
    expect.invalid(await api("GET", f"{SCHEDULER}/blocked?cursor=x"))


async def test_a_blocked_run_names_its_root_cause_in_the_run_in_attention_and_in_why(
    api: Client, receiver: Receiver
) -> None:
    names = {stem: given.name(stem) for stem in ("load", "report", "mail")}
    for stem, name in names.items():
        await given.scripted(api, receiver, Answer(400 if stem == "load" else 200), name=name)
    nodes = [
        {"name": "load", "job": names["load"]},
        {"name": "report", "job": names["report"], "after": ["load"]},
        {"name": "mail", "job": names["mail"], "after": ["report"]},
    ]
    flow = (await api("POST", "/api/v1/workflows", {"name": given.name("flow"), "nodes": nodes})).json
    path = f"/api/v1/workflows/{flow['name']}"
    run = (await api("POST", f"{path}/trigger", Idempotency_Key=os.urandom(8).hex())).json["run"]

    async def is_blocked() -> Any:
        found = (await api("GET", f"{path}/runs/{run['id']}")).json
        return found if found["state"] == "BLOCKED" else None

    found = await given.until(is_blocked)
    by_name = {node["name"]: node for node in found["nodes"]}
    [cause] = found["rootCauses"]
    assert (cause["node"], cause["job"], cause["blocks"]) == ("load", names["load"], ["mail", "report"])
    assert (cause["instanceId"], cause["errorCode"]) == (by_name["load"]["instanceId"], "HTTP_400")
    assert cause["errorMsg"] == by_name["load"]["errorMsg"] is not None
    assert cause["adviceSaid"]["code"] == "REPLAY_OR_RERUN"
    assert {name: node["rootCauses"] for name, node in by_name.items()} == {
        "load": [],
        "report": ["load"],
        "mail": ["load"],
    }

    why = (await api("GET", f"/api/v1/instances/{by_name['mail']['instanceId']}/why")).json
    assert f"the root cause is load (instance {cause['instanceId']}, DEAD with HTTP_400)" in why["holds"][0]["detail"]
    [listed] = [one for one in (await api("GET", f"{SCHEDULER}/blocked")).json["items"] if one["id"] == run["id"]]
    assert (listed["workflow"], listed["waiting"]) == (flow["name"], 2)
    (in_list,) = listed["rootCauses"]
    assert {
        **in_list,
        "diedAt": cause["diedAt"],
    } == cause  # in a list it is the time of the dead letter, a moment later
    assert (await attention(api, "blocked", "id", run["id"]))["rootCauses"] == [in_list]


async def test_attention_names_modes_pauses_and_freezes_with_operator_note_and_end(url: str) -> None:
    async with harness.node(url) as api:
        calm = (await api("GET", f"{SCHEDULER}/attention")).json
        assert (calm["modes"], calm["holds"]) == ([], [])
        await api("POST", f"{SCHEDULER}/mode", {"mode": "CORE_ONLY", "state": "ON"})
        await api("POST", f"{SCHEDULER}/pause", {"note": "moving house"})
        freeze = {"what": "backfill", "note": "sale", "expiresIn": "1h"}
        await api("POST", f"{SCHEDULER}/freeze", freeze)

        mode = await attention(api, "modes", "mode", "CORE_ONLY")
        pause = await attention(api, "holds", "what", "dispatch")
        frozen = await attention(api, "holds", "what", "backfill")

    assert mode["since"] is not None
    assert (pause["scope"], pause["note"], pause["expiresAt"]) == ("platform", "moving house", None)
    assert pause["actor"] is not None
    assert (frozen["scope"], frozen["note"]) == ("platform", "sale")
    assert frozen["expiresAt"] > frozen["since"]


async def test_a_tenant_sees_its_own_holds_and_those_of_the_platform_without_note_and_operator(
    url: str, connection: Superuser
) -> None:
    async with harness.node(url) as api:
        root = holding(api, (await created(api, "platform-admin"))["key"])
        for name in ("ours", "theirs"):
            assert (await root("POST", "/api/v1/tenants", {"name": name})).status == 201
        ours, theirs = await holder(root, "admin", "ours"), await holder(root, "admin", "theirs")
        await ours("POST", f"{SCHEDULER}/freeze", {"what": "low-priority", "note": "our sale"})
        await root("POST", f"{SCHEDULER}/freeze", {"what": "backfill", "note": "secret of the platform"})
        await root("POST", f"{SCHEDULER}/mode", {"mode": "CORE_ONLY", "state": "ON", "note": "secret of the platform"})

        own = (await ours("GET", f"{SCHEDULER}/attention")).json
        other = await theirs("GET", f"{SCHEDULER}/attention")

    held = [(one["scope"], one["what"], one["note"], one["actor"] is not None) for one in own["holds"]]
    assert held == [("platform", "backfill", None, False), ("tenant", "low-priority", "our sale", True)]
    assert [one["mode"] for one in own["modes"]] == ["CORE_ONLY"]
    assert [(one["scope"], one["what"]) for one in other.json["holds"]] == [("platform", "backfill")]
    assert "secret" not in str(own)
    assert "sale" not in str(other.json)


async def test_a_tenant_that_the_platform_has_paused_is_told_so(url: str) -> None:
    async with harness.node(url) as api:
        root = holding(api, (await created(api, "platform-admin"))["key"])
        assert (await root("POST", "/api/v1/tenants", {"name": "ours"})).status == 201
        ours = await holder(root, "admin", "ours")
        assert (await root("POST", "/api/v1/tenants/ours/pause")).status == 200

        [hold] = (await ours("GET", f"{SCHEDULER}/attention")).json["holds"]

    assert (hold["what"], hold["scope"], hold["note"], hold["actor"]) == ("dispatch", "platform", None, None)


async def test_holds_that_have_expired_are_not_listed(url: str, connection: Superuser) -> None:
    await connection.execute(
        "insert into horai.tenant_hold (tenant_id, kind, actor, expires_at) values"
        " (1, 'low-priority', 'ops', now() - interval '1 second'), (1, 'backfill', 'ops', now() + interval '1 hour')"
    )
    async with harness.node(url) as api:
        holds = (await api("GET", f"{SCHEDULER}/attention")).json["holds"]

    assert [hold["what"] for hold in holds] == ["backfill"]
