"""Workflows over REST: defined, triggered, followed, done again."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from harness import Client, Reply
from receiver import Answer, Receiver

from api import expect, given
from horai.db.pool import Platform

FLOWS = "/api/v1/workflows"
DEAD = Answer(400)
MILLISECOND = timedelta(milliseconds=1)


async def node_jobs(api: Client, receiver: Receiver, *stems: str, **answers: Answer) -> list[str]:
    """A job per stem, whose target answers as told; their names."""
    made = [
        await given.scripted(api, receiver, answers.get(stem, Answer(200)), name=given.name(stem)) for stem in stems
    ]
    return [job["name"] for job in made]


async def chain(api: Client, receiver: Receiver, *, name: str | None = None, **more: Any) -> Any:
    """first → second → third."""
    answers: dict[str, Answer] = more.pop("answers", {})
    first, second, third = await node_jobs(api, receiver, "first", "second", "third", **answers)
    nodes = [
        {"name": "first", "job": first},
        {"name": "second", "job": second, "after": ["first"]},
        {"name": "third", "job": third, "after": ["second"]},
    ]
    made = await api("POST", FLOWS, {"name": name or given.name("flow"), "nodes": nodes, **more})
    assert made.status == 201, made.json
    return made.json


async def trigger(api: Client, flow: Any, key: str | None = None, body: Any = None) -> Reply:
    return await api("POST", f"{FLOWS}/{flow['name']}/trigger", body, Idempotency_Key=key or given.name("key"))


async def run_in(api: Client, flow: Any, run: Any, *states: str) -> Any:
    """The run, once it is in one of these states."""

    async def look() -> Any:
        found = (await api("GET", f"{FLOWS}/{flow['id']}/runs/{run['id']}")).json
        return found if found["state"] in states else None

    return await given.until(look)


def states(run: Any) -> dict[str, str]:
    return {node["name"]: node["state"] for node in run["nodes"]}


async def test_C6_a_workflow_is_created_read_and_listed(api: Client, receiver: Receiver) -> None:
    flow = await chain(api, receiver, cron="0 2 * * *", timezone="Asia/Shanghai", tags=["night"], payload={"a": 1.0})

    assert (flow["cron"], flow["timezone"], flow["tags"], flow["payload"]) == (
        "0 2 * * *",
        "Asia/Shanghai",
        ["night"],
        {"a": 1.0},
    )
    assert (flow["status"], flow["version"], flow["overlap"]) == ("ACTIVE", 1, "allow")
    assert [(node["name"], node["after"]) for node in flow["nodes"]] == [
        ("first", []), ("second", ["first"]), ("third", ["second"]),
    ]  # fmt: skip
    for reference in (flow["id"], flow["name"]):
        shown = await api("GET", f"{FLOWS}/{reference}")
        assert (shown.status, shown.headers["ETag"], shown.json) == (200, '"1"', flow)
    assert flow["name"] in [each["name"] for each in await given.listed(api, FLOWS)]
    fires = (await api("GET", f"/api/v1/jobs/{flow['name']}/next?count=1")).json["fires"]
    assert fires[0]["local"].endswith("T02:00:00+08:00"), "its job is asked like any other"


@pytest.mark.parametrize("length", [1, 2, 50])
async def test_C6_a_cycle_is_refused_at_write(api: Client, db: Platform, length: int) -> None:
    job = await given.job(api)
    before = await expect.contents(db)
    nodes = [{"name": f"n{i}", "job": job["name"], "after": [f"n{(i - 1) % length}"]} for i in range(length)]

    reply = await api("POST", FLOWS, {"name": given.name("flow"), "nodes": nodes})

    assert expect.invalid(reply, "contain a cycle")["errors"][0]["field"] == "nodes"
    assert await expect.contents(db) == before


@pytest.mark.parametrize(
    ("nodes", "field", "words"),
    [
        ([], "nodes", "are not 1 to 500"),
        ([{"name": "a", "after": ["b"]}], "nodes.0.after", "there is no node 'b'"),
        ([{"name": "a", "job": "nobody"}], "nodes.0.job", "there is no job 'nobody'"),
        ([{"name": "a", "job": "999999999"}], "nodes.0.job", "there is no job '999999999'"),
        ([{"name": "a"}, {"name": "a"}], "nodes.0.name", "another node"),
        ([{"name": "a b"}], "nodes.0.name", "use letters, digits, dots, hyphens and underscores"),
    ],
)
async def test_C6_an_unknown_node_or_job_is_refused_at_write(
    api: Client, nodes: list[Any], field: str, words: str
) -> None:
    reply = await api("POST", FLOWS, {"name": given.name("flow"), "nodes": nodes})

    assert expect.invalid(reply, words)["errors"][0]["field"] == field


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"cron": "0 2 * * *", "overlap": "sometimes"}, "overlap"),
        ({"every": "5m", "everyFrom": "never"}, "everyFrom"),
        ({"cron": "61 * * * *"}, "cron"),
        ({"target": {"type": "worker"}}, "target"),
    ],
)
async def test_an_invalid_workflow_field_is_refused(api: Client, fields: Any, field: str) -> None:
    job = await given.job(api)
    reply = await api("POST", FLOWS, {"name": given.name("flow"), "nodes": [{"name": job["name"]}], **fields})

    assert expect.invalid(reply)["errors"][0]["field"] == field


async def test_U6_overlap_is_accepted_when_a_workflow_is_created_and_changed(api: Client, receiver: Receiver) -> None:
    flow = await chain(api, receiver, cron="0 2 * * *", overlap="skip")
    assert flow["overlap"] == "skip"

    for overlap in ("queue", "replace", "allow"):
        changed = await api("PATCH", f"{FLOWS}/{flow['id']}", {"overlap": overlap})
        assert (changed.status, changed.json["overlap"]) == (200, overlap)
    wrong = await api("PATCH", f"{FLOWS}/{flow['id']}", {"overlap": "sometimes"})
    assert expect.invalid(wrong)["errors"][0]["field"] == "overlap"


async def test_a_workflow_takes_no_name_that_a_job_has_and_no_workflow_as_a_node(
    api: Client, receiver: Receiver
) -> None:
    flow, job = await chain(api, receiver), await given.job(api)

    taken = await api("POST", FLOWS, {"name": job["name"], "nodes": [{"name": "a", "job": job["name"]}]})
    assert expect.problem(taken, 409, "SCH_409_DUPLICATE")["jobId"] == job["id"]
    nested = await api("POST", FLOWS, {"name": given.name("flow"), "nodes": [{"name": "a", "job": flow["name"]}]})
    expect.invalid(nested, "is a workflow: write it as workflow")


async def test_C6_a_triggered_run_goes_through_its_nodes_once_per_key(api: Client, receiver: Receiver) -> None:
    flow = await chain(api, receiver, answers={"first": Answer(200, {"output": {"rows": 3}})}, payload={"day": 1})
    expect.problem(await api("POST", f"{FLOWS}/{flow['id']}/trigger"), 400, "SCH_400_IDEMPOTENCY_KEY_REQUIRED")

    started = await trigger(api, flow, "one intent", {"payload": {"day": 2}})
    again = await trigger(api, flow, "one intent", {"payload": {"day": 2}})

    assert (started.status, started.json["run"]["state"]) == (202, "PENDING")
    run = started.json["run"]
    assert expect.problem(again, 409, "SCH_409_DUPLICATE")["instanceId"] == run["id"]
    assert started.headers["Location"] == f"{FLOWS}/{flow['id']}/runs/{run['id']}"
    done = await run_in(api, flow, run, "SUCCESS")
    assert states(done) == {"first": "SUCCESS", "second": "SUCCESS", "third": "SUCCESS"}
    assert done["payload"] == {"day": 2}
    assert [each["id"] for each in await given.listed(api, f"{FLOWS}/{flow['id']}/runs")] == [run["id"]]
    for node in done["nodes"]:
        (hit,) = given.hits(receiver, {"name": node["job"]})
        assert hit.json["payload"]["day"] == 2
        instance = (await api("GET", f"/api/v1/instances/{node['instanceId']}")).json
        assert (instance["fireTime"], instance["state"]) == (done["fireTime"], "SUCCESS")


async def test_C6_a_dead_node_blocks_the_run_and_a_rerun_completes_it(api: Client, receiver: Receiver) -> None:
    flow = await chain(api, receiver, answers={"second": DEAD})
    run = (await trigger(api, flow)).json["run"]
    blocked = await run_in(api, flow, run, "BLOCKED")
    assert states(blocked) == {"first": "SUCCESS", "second": "DEAD", "third": "BLOCKED"}
    rerun = f"{FLOWS}/{flow['id']}/runs/{run['id']}/rerun"
    expect.problem(await api("POST", rerun, {"from": "third"}), 409, "SCH_409_CONFLICT", "has not run yet")
    expect.invalid(await api("POST", rerun, {"from": "nobody"}), "there is no node 'nobody'")

    receiver.on(f"/{flow['nodes'][1]['job']}", Answer(200))
    again = await api("POST", rerun, {"from": "second"})

    assert again.status == 200, again.json
    done = await run_in(api, flow, run, "SUCCESS")
    assert {node["name"]: node["generation"] for node in done["nodes"]} == {"first": 0, "second": 1, "third": 0}
    assert done["generation"] == 1


async def test_a_change_is_for_the_runs_to_come(api: Client, receiver: Receiver) -> None:
    flow = await chain(api, receiver)
    first = flow["nodes"][0]["job"]

    stale = await api("PATCH", f"{FLOWS}/{flow['id']}", {"every": "1h"}, If_Match='"7"')
    expect.problem(stale, 412, "SCH_412_PRECONDITION")
    nodes = [{"name": "only", "job": first, "payload": {"n": 1.50}}]
    changed = await api("PATCH", f"{FLOWS}/{flow['id']}", {"nodes": nodes, "every": "24h"}, If_Match='"1"')
    assert changed.status == 200, changed.json
    assert (changed.json["version"], changed.json["every"], len(changed.json["nodes"])) == (2, "24h", 1)
    cycle = [{"name": "only", "job": first, "after": ["only"]}]
    expect.invalid(await api("PATCH", f"{FLOWS}/{flow['id']}", {"nodes": cycle}), "contain a cycle")

    run = (await trigger(api, flow)).json["run"]
    assert states(await run_in(api, flow, run, "SUCCESS")) == {"only": "SUCCESS"}
    gone = flow["nodes"][1]["job"]
    assert (await api("DELETE", f"/api/v1/jobs/{gone}")).status == 204, "it is in no workflow any more"
    expect.problem(await api("DELETE", f"/api/v1/jobs/{first}"), 409, "SCH_409_CONFLICT", "is a node of the workflow")


async def test_a_paused_workflow_starts_no_run_until_it_is_resumed(api: Client, receiver: Receiver) -> None:
    flow = await chain(api, receiver)
    paused = await api("POST", f"{FLOWS}/{flow['id']}/pause", {"note": "stocktaking"})
    assert (paused.json["status"], paused.json["note"]) == ("PAUSED", "stocktaking")
    run = (await trigger(api, flow)).json["run"]
    assert (await run_in(api, flow, run, "PENDING"))["nodes"] == []

    assert (await api("POST", f"{FLOWS}/{flow['id']}/resume")).json["status"] == "ACTIVE"
    await run_in(api, flow, run, "SUCCESS")


async def test_a_deleted_workflow_is_gone_and_its_name_is_free(api: Client, receiver: Receiver) -> None:
    flow = await chain(api, receiver)
    expect.problem(await api("DELETE", f"/api/v1/jobs/{flow['name']}"), 409, "SCH_409_CONFLICT")
    assert (await api("DELETE", f"{FLOWS}/{flow['id']}")).status == 204

    for path in ("", "/runs", "/runs/1"):
        expect.problem(await api("GET", f"{FLOWS}/{flow['id']}{path}"), 404, "SCH_404_NOT_FOUND")
    assert (await chain(api, receiver, name=flow["name"]))["id"] != flow["id"]


async def test_a_blocked_run_is_given_up(api: Client, receiver: Receiver) -> None:
    flow = await chain(api, receiver, answers={"second": DEAD})
    run = (await trigger(api, flow)).json["run"]
    await run_in(api, flow, run, "BLOCKED")

    for _ in range(2):
        given_up = await api("POST", f"{FLOWS}/{flow['id']}/runs/{run['id']}/cancel")
        assert (given_up.status, given_up.json["run"]["state"]) == (200, "CANCELLED"), given_up.json
        assert states(given_up.json["run"]) == {"first": "SUCCESS", "second": "DEAD", "third": "CANCELLED"}
    expect.problem(await api("POST", f"{FLOWS}/{flow['id']}/runs/0/cancel"), 404, "SCH_404_NOT_FOUND")


async def test_C6_a_given_up_run_is_not_rerun_from_a_node_below_a_dead_one(
    api: Client, receiver: Receiver, db: Platform
) -> None:
    flow = await chain(api, receiver, answers={"second": DEAD})
    run = (await trigger(api, flow)).json["run"]
    await run_in(api, flow, run, "BLOCKED")
    address = f"{FLOWS}/{flow['id']}/runs/{run['id']}"
    assert (await api("POST", f"{address}/cancel")).json["run"]["state"] == "CANCELLED"
    before = await db.fetch("select * from horai.workflow_node where run_id = $1 order by name", int(run["id"]))

    refused = await api("POST", f"{address}/rerun", {"from": "third"})

    expect.problem(refused, 409, "SCH_409_CONFLICT", "its parent 'second' is DEAD")
    after = await db.fetch("select * from horai.workflow_node where run_id = $1 order by name", int(run["id"]))
    assert after == before, "no node is made again"
    receiver.on(f"/{flow['nodes'][1]['job']}", Answer(200))
    assert (await api("POST", f"{address}/rerun", {"from": "second"})).status == 200
    await run_in(api, flow, run, "SUCCESS")


async def test_C6_a_run_tells_what_it_takes_to_draw_it(api: Client, receiver: Receiver) -> None:
    flow = await chain(api, receiver, answers={"second": DEAD})
    run = (await trigger(api, flow)).json["run"]
    first, second, third = (await run_in(api, flow, run, "BLOCKED"))["nodes"]

    assert [(node["name"], node["after"]) for node in (first, second, third)] == [
        ("first", []), ("second", ["first"]), ("third", ["second"]),
    ]  # fmt: skip
    assert [node["errorCode"] for node in (first, second, third)] == [None, "HTTP_400", None]
    assert first["startedAt"] <= first["finishedAt"] <= second["startedAt"] <= second["finishedAt"]
    assert all(isinstance(node["durationMs"], int) for node in (first, second))
    assert (third["startedAt"], third["finishedAt"], third["durationMs"]) == (None, None, None)
    for node in (first, second, third):
        assert (await api("GET", f"/api/v1/instances/{node['instanceId']}")).json["state"] == node["state"]


async def test_C6_the_list_has_each_workflows_last_run_and_next_fire(api: Client, receiver: Receiver) -> None:
    idle = await chain(api, receiver)
    busy = await chain(api, receiver, cron="0 2 * * *", timezone="Asia/Shanghai")
    late = await chain(api, receiver, cron="0 2 * * *", timezone="Asia/Shanghai", startAt="2099-01-01T00:00:00Z")
    over = await chain(api, receiver, every="24h")
    assert (idle["lastRun"], idle["nextFire"]) == (None, None)
    await run_in(api, busy, (await trigger(api, busy)).json["run"], "SUCCESS")
    run = await run_in(api, busy, (await trigger(api, busy)).json["run"], "SUCCESS")
    await api("POST", f"{FLOWS}/{over['id']}/pause")

    listed = {each["id"]: each for each in await given.listed(api, FLOWS)}

    last = listed[busy["id"]]["lastRun"]
    assert {name: last[name] for name in ("id", "state", "fireTime", "finishedAt", "durationMs")} == {
        name: run[name] for name in ("id", "state", "fireTime", "finishedAt", "durationMs")
    }
    fires = (await api("GET", f"/api/v1/jobs/{busy['name']}/next?count=1")).json["fires"]
    assert listed[busy["id"]]["nextFire"] == fires[0]["fireTime"]
    assert listed[late["id"]]["nextFire"] == "2099-01-01T18:00:00Z", "its schedule's next slot is before it begins"
    assert (over["nextFire"] is None, listed[over["id"]]["nextFire"]) == (False, None), "paused"
    assert listed[idle["id"]] == (await api("GET", f"{FLOWS}/{idle['id']}")).json


async def test_C6_runs_are_listed_by_state_page_by_page(api: Client, receiver: Receiver) -> None:
    flow = await chain(api, receiver, answers={"first": Answer(200)})
    done = [(await trigger(api, flow)).json["run"] for _ in range(3)]
    for run in done:
        await run_in(api, flow, run, "SUCCESS")
    receiver.on(f"/{flow['nodes'][0]['job']}", DEAD)
    blocked = (await trigger(api, flow)).json["run"]
    await run_in(api, flow, blocked, "BLOCKED")
    runs = f"{FLOWS}/{flow['id']}/runs"

    async def ids(query: str) -> list[str]:
        return [each["id"] for each in await given.listed(api, f"{runs}?{query}")]

    assert sorted(await ids("limit=1&state=SUCCESS"), key=int) == sorted((run["id"] for run in done), key=int)
    assert await ids("state=BLOCKED") == [blocked["id"]]
    assert await ids("state=RUNNING") == []
    assert len(await ids("limit=2")) == 4
    expect.invalid(await api("GET", f"{runs}?state=LATE"))


@pytest.mark.parametrize("name", ["a\x00b", "a,b", "../a", "a" * 200, "é", "", "ａ", "-a"])
async def test_hostile_names_are_refused_in_words(api: Client, name: str) -> None:
    job = await given.job(api)
    nodes = [{"name": "ok", "job": job["name"]}]

    for document in (
        {"name": name, "nodes": nodes},
        {"name": given.name("flow"), "nodes": [{"name": name, "job": job["name"]}]},
        {"name": given.name("flow"), "nodes": [{"name": "ok", "job": name or "-"}]},
        {"name": given.name("flow"), "nodes": [*nodes, {"name": "two", "job": job["name"], "after": [name]}]},
    ):
        expect.invalid(await api("POST", FLOWS, document))


async def test_a_run_of_another_workflow_is_not_found(api: Client, receiver: Receiver) -> None:
    one, other = await chain(api, receiver), await chain(api, receiver)
    run = (await trigger(api, one)).json["run"]
    await run_in(api, one, run, "SUCCESS")

    for reference in (run["id"], "0", "x", "9" * 30):
        address = f"{FLOWS}/{other['id']}/runs/{reference}"
        expect.problem(await api("GET", address), 404, "SCH_404_NOT_FOUND")
        expect.problem(await api("POST", f"{address}/rerun", {"from": "third"}), 404, "SCH_404_NOT_FOUND")
        expect.problem(await api("POST", f"{address}/cancel"), 404, "SCH_404_NOT_FOUND")
    assert (await run_in(api, one, run, "SUCCESS"))["generation"] == 0


async def test_creating_twice_with_one_key_makes_one(api: Client) -> None:
    job = await given.job(api)
    document = {"name": given.name("flow"), "nodes": [{"name": "a", "job": job["id"]}]}

    first = await api("POST", FLOWS, document, Idempotency_Key="the-flow")
    second = await api("POST", FLOWS, document, Idempotency_Key="the-flow")

    assert first.status == 201
    assert first.json["nodes"][0]["job"] == job["name"]
    expect.problem(second, 409, "SCH_409_DUPLICATE")


async def test_a_run_for_a_logical_date_has_its_interval_and_so_does_the_call_of_its_target(
    api: Client, receiver: Receiver
) -> None:
    flow = await chain(api, receiver, cron="0 2 * * 1-5", timezone="Asia/Shanghai")

    started = await trigger(api, flow, body={"logicalDate": "2026-01-04T18:00:00Z"})
    assert (started.status, started.json["run"]["fireTime"]) == (202, "2026-01-04T18:00:00Z")
    done = await run_in(api, flow, started.json["run"], "SUCCESS")
    interval = {"start": "2026-01-01T18:00:00Z", "end": "2026-01-04T18:00:00Z"}
    assert done["interval"] == interval, "Monday in Shanghai covers the weekend"
    listed = (await api("GET", f"{FLOWS}/{flow['name']}/runs")).json["items"]
    assert [run["interval"] for run in listed] == [interval]

    late = await trigger(api, flow, body={"logicalDate": "2999-01-01T00:00:00Z"})
    expect.invalid(late, "logicalDate")


async def test_a_run_for_a_past_date_and_its_rerun_are_due_when_they_are_asked_for(
    api: Client, receiver: Receiver
) -> None:
    """Otherwise the age of the date would count as a delay of the scheduler."""
    flow = await chain(api, receiver)
    asked_at = datetime.now(UTC)

    async def due_of(*instance_ids: str) -> list[datetime]:
        found = [(await api("GET", f"/api/v1/instances/{each}")).json for each in instance_ids]
        assert {each["fireTime"] for each in found} == {"2026-01-04T18:00:00Z"}
        return [datetime.fromisoformat(each["executeTime"]) for each in found]

    started = await trigger(api, flow, body={"logicalDate": "2026-01-04T18:00:00Z"})
    done = await run_in(api, flow, started.json["run"], "SUCCESS")
    first = done["nodes"][0]["instanceId"]
    assert min(await due_of(done["id"], first)) >= asked_at - MILLISECOND
    rerun_at = datetime.now(UTC)
    await api("POST", f"{FLOWS}/{flow['id']}/runs/{done['id']}/rerun", {"from": done["nodes"][0]["name"]})
    again = await run_in(api, flow, done, "SUCCESS")

    assert again["nodes"][0]["instanceId"] != first
    assert min(await due_of(again["nodes"][0]["instanceId"])) >= rerun_at - MILLISECOND


async def test_parameters_are_checked_by_field_and_have_defaults_and_can_be_removed(
    api: Client, receiver: Receiver
) -> None:
    schema = {
        "type": "object",
        "properties": {"day": {"type": "string", "format": "date"}, "region": {"type": "string", "default": "eu"}},
        "required": ["day"],
        "additionalProperties": False,
    }
    flow = await chain(api, receiver, params=schema)
    assert flow["params"] == schema

    started = await trigger(api, flow, body={"payload": {"day": "2026-11-15"}})
    assert started.json["run"]["payload"] == {"day": "2026-11-15", "region": "eu"}
    wrong = await trigger(api, flow, body={"payload": {"day": "soon", "regoin": "us"}})
    assert [fault["field"] for fault in wrong.json["errors"]] == ["payload.day", "payload.regoin"]
    expect.invalid(await trigger(api, flow), "payload.day")

    path = f"{FLOWS}/{flow['name']}"
    expect.invalid(await api("PATCH", path, {"cron": "0 2 * * *"}), "payload.day")
    expect.invalid(await api("PATCH", path, {"params": {"pattern": "a"}}), "params")
    assert (await api("PATCH", path, {"tags": ["a"]})).json["params"] == schema
    assert (await api("PATCH", path, {"params": None})).json["params"] is None
    assert (await trigger(api, flow)).status == 202
