"""Bulk changes of runs, entities and jobs: all that match a filter, or named ones."""

import itertools
from datetime import datetime
from typing import Any

from databases import Superuser
from harness import Client
from receiver import Answer, Receiver

from api import expect, given

FLOWS = "/api/v1/workflows"


async def blocked_flow(api: Client, receiver: Receiver, runs: int, *answers: Answer) -> tuple[Any, list[str]]:
    """A workflow of two nodes, the first of which answers as told, and BLOCKED runs of it: their ids, oldest first."""
    first = await given.scripted(api, receiver, *(answers or (Answer(400),)), retry={"maxRetry": 0})
    second = await given.scripted(api, receiver, Answer(200))
    nodes = [{"name": "load", "job": first["name"]}, {"name": "send", "job": second["name"], "after": ["load"]}]
    flow = (await api("POST", FLOWS, {"name": given.name("flow"), "nodes": nodes})).json
    made = []
    for _ in range(runs):
        once = given.name("once")
        told = (await api("POST", f"{FLOWS}/{flow['name']}/trigger", None, Idempotency_Key=once)).json
        made.append(told["run"]["id"])
    await given.until(lambda: _has(api, flow, "BLOCKED", runs))
    return flow, made


async def _has(api: Client, flow: Any, state: str, count: int) -> bool:
    found = (await api("GET", f"{FLOWS}/{flow['name']}/runs/count?state={state}")).json
    return found["count"] == count


async def test_runs_that_match_are_counted_and_then_cancelled_once(api: Client, receiver: Receiver) -> None:
    flow, runs = await blocked_flow(api, receiver, 3)
    path = f"{FLOWS}/{flow['name']}/runs/cancel"
    expect.problem(await api("POST", path, {}), 422, "SCH_422_INVALID", "every run")

    counted = (await api("POST", path, {"state": "BLOCKED", "dryRun": True})).json
    chosen = (await api("POST", path, {"ids": runs[:1]})).json
    bounded = (await api("POST", path, {"state": "BLOCKED", "limit": 1})).json
    rest = (await api("POST", path, {"state": "BLOCKED"})).json
    again = (await api("POST", path, {"state": "BLOCKED"})).json

    assert (counted["matched"], counted["changed"], counted["dryRun"]) == (3, 0, True)
    assert (chosen["matched"], chosen["changed"], chosen["more"]) == (1, 1, False)
    assert (bounded["matched"], bounded["changed"], bounded["more"]) == (1, 1, True)
    assert (rest["matched"], rest["changed"], rest["skipped"], rest["held"], rest["more"]) == (1, 1, 0, 0, False)
    assert (again["matched"], again["changed"]) == (0, 0)
    assert all(
        [
            (await api("GET", f"{FLOWS}/{flow['name']}/runs/{run}")).json["nodes"][1]["state"] == "CANCELLED"
            for run in runs
        ]
    )


async def test_runs_of_other_times_and_other_workflows_are_left_alone(api: Client, receiver: Receiver) -> None:
    flow, runs = await blocked_flow(api, receiver, 1)
    other, _ = await blocked_flow(api, receiver, 1)

    early = (await api("POST", f"{FLOWS}/{flow['name']}/runs/cancel", {"to": "2020-01-01T00:00:00Z"})).json
    foreign = (await api("POST", f"{FLOWS}/{other['name']}/runs/cancel", {"ids": runs})).json
    running = (await api("POST", f"{FLOWS}/{flow['name']}/runs/rerun", {"state": "RUNNING"})).json

    assert (early["matched"], foreign["matched"], running["matched"]) == (0, 0, 0)
    assert (await api("GET", f"{FLOWS}/{flow['name']}/runs/{runs[0]}")).json["state"] == "BLOCKED"


async def test_blocked_runs_are_rerun_from_their_dead_nodes_and_not_twice(api: Client, receiver: Receiver) -> None:
    flow, runs = await blocked_flow(api, receiver, 2, Answer(400), Answer(400), Answer(200))
    path = f"{FLOWS}/{flow['name']}/runs/rerun"
    counted = (await api("POST", path, {"ids": runs, "dryRun": True})).json
    done = (await api("POST", path, {"ids": runs})).json
    await given.until(lambda: _has(api, flow, "SUCCESS", 2))
    again = (await api("POST", path, {"ids": runs})).json

    assert (counted["matched"], done["matched"], done["changed"], again["matched"]) == (2, 2, 2, 0)
    assert [(await api("GET", f"{FLOWS}/{flow['name']}/runs/{run}")).json["generation"] for run in runs] == [1, 1]


async def test_reruns_at_a_rate_start_one_after_the_other_also_over_several_requests(
    api: Client, receiver: Receiver, db: Superuser
) -> None:
    flow, runs = await blocked_flow(api, receiver, 3, *[Answer(400)] * 3, Answer(200))
    path = f"{FLOWS}/{flow['name']}/runs/rerun"
    counted = (await api("POST", path, {"state": "BLOCKED", "rate": "30/h", "dryRun": True})).json
    first = (await api("POST", path, {"state": "BLOCKED", "rate": "30/h", "limit": 2})).json
    start = {"rate": "30/h", "startAt": first["nextStart"]}
    second = (await api("POST", path, {"state": "BLOCKED", **start})).json

    assert (counted["matched"], counted["changed"]) == (3, 0)
    assert (first["changed"], first["more"], second["changed"], second["more"]) == (2, True, 1, False)
    begins = await db.fetch(
        "select live.due, live.execute_time, run.id from horai.workflow_run run join horai.workflow_node node on node.run_id = run.id"
        " join horai.instance_live live on live.id = node.instance_id where run.id = any ($1) and node.name = 'load'"
        " and node.is_current and live.state = 0 order by run.id",
        [int(run) for run in runs],
    )
    times = [row["due"] for row in begins]
    gaps = [round((after - before).total_seconds()) for before, after in itertools.pairwise(times)]
    assert gaps == [120]  # the first run has begun at once
    assert [row["execute_time"] for row in begins][-1] == times[-1]
    assert datetime.fromisoformat(second["nextStart"]) > times[-1]
    for run in runs:
        await api("POST", f"{FLOWS}/{flow['name']}/runs/{run}/cancel")


async def test_a_start_time_without_a_rate_and_a_rate_of_a_cancel_are_refused(api: Client, receiver: Receiver) -> None:
    flow, runs = await blocked_flow(api, receiver, 1)
    path = f"{FLOWS}/{flow['name']}/runs"

    expect.invalid(await api("POST", f"{path}/rerun", {"ids": runs, "startAt": "2999-01-01T00:00:00Z"}), "startAt")
    expect.invalid(await api("POST", f"{path}/rerun", {"ids": runs, "rate": "soon"}), "rate")
    expect.invalid(await api("POST", f"{path}/cancel", {"ids": runs, "rate": "1/s"}), "rate")
    assert (await api("GET", f"{path}/{runs[0]}")).json["state"] == "BLOCKED"


async def test_a_run_that_cannot_be_rerun_is_skipped_and_named_with_the_reason(api: Client, receiver: Receiver) -> None:
    flow, runs = await blocked_flow(api, receiver, 1)
    dead = flow["nodes"][0]["job"]
    other = await given.job(api)
    await api("PATCH", f"{FLOWS}/{flow['name']}", {"nodes": [{"name": "load", "job": other["name"]}]})
    assert (await api("DELETE", f"/api/v1/jobs/{dead}")).status == 204

    done = (await api("POST", f"{FLOWS}/{flow['name']}/runs/rerun", {"ids": runs})).json

    assert (done["matched"], done["changed"], done["skipped"], done["held"]) == (1, 0, 1, 0)
    assert [each["run"] for each in done["reasons"]] == runs
    assert (done["reasons"][0]["reasonSaid"]["code"], dead in done["reasons"][0]["reason"]) == (
        "NODE_JOB_DELETED",
        True,
    )
    assert (await api("GET", f"{FLOWS}/{flow['name']}/runs/{runs[0]}")).json["state"] == "BLOCKED"


async def test_a_bulk_change_of_a_run_locked_by_another_transaction_is_held(
    api: Client, receiver: Receiver, db: Superuser
) -> None:
    flow, runs = await blocked_flow(api, receiver, 2)
    async with db.transaction():
        await db.execute("select from horai.workflow_run where id = $1 for update", int(runs[0]))
        done = (await api("POST", f"{FLOWS}/{flow['name']}/runs/cancel", {"ids": runs})).json
    assert (done["matched"], done["changed"], done["held"]) == (2, 1, 1)


async def test_entities_that_match_are_counted_and_then_removed(api: Client) -> None:
    job = await given.job(api, every="1d", refresh={"window": "10d"})
    path = f"/api/v1/jobs/{job['name']}"
    items = [{"key": f"{'ab'[n % 2]}{n:03}"} for n in range(450)]
    await api("POST", f"{path}/entities/batch", {"items": items})

    async def removed(**asked: Any) -> tuple[int, int, bool]:
        told = (await api("POST", f"{path}/entities/remove", asked)).json
        return told["matched"], told["removed"], told["more"]

    expect.problem(await api("POST", f"{path}/entities/remove", {}), 422, "SCH_422_INVALID", "every entity")
    assert await removed(prefix="a", dryRun=True) == (225, 0, False)
    assert await removed(keys=["a000", "b001", "absent"]) == (2, 2, False)
    assert await removed(prefix="a", limit=4) == (4, 4, True)
    assert await removed(prefix="a", status="FAILED") == (0, 0, False)
    assert await removed(prefix="a") == (220, 220, False)
    assert await removed(prefix="a") == (0, 0, False)
    assert await removed(olderThan="0s") == (224, 224, False)
    assert (await api("GET", f"{path}/entity-count")).json["count"] == 0


async def test_an_entity_that_is_locked_is_held_and_the_others_are_removed(api: Client, db: Superuser) -> None:
    job = await given.job(api, every="1d", refresh={"window": "10d"})
    path = f"/api/v1/jobs/{job['name']}/entities"
    await api("POST", f"{path}/batch", {"items": [{"key": f"k{n}"} for n in range(3)]})
    async with db.transaction():
        await db.execute("select from horai.entity where job_id = $1 and key = 'k1' for update", int(job["id"]))
        told = (await api("POST", f"{path}/remove", {"prefix": "k"})).json
    assert (told["matched"], told["removed"], told["held"], told["more"]) == (3, 2, 1, False)


async def test_jobs_are_paused_by_owner_and_by_kind(api: Client) -> None:
    owner, word = given.name("owner"), given.name("kind")
    await given.job(api, owner=owner)
    await given.job(api, name=f"{word}-plain")
    await given.job(api, name=f"{word}-stock", every="1d", refresh={"window": "10d"})
    assert (await api("POST", "/api/v1/jobs/pause", {"owner": owner})).json["changed"] == 1
    assert (await api("POST", "/api/v1/jobs/pause", {"refresh": True, "nameContains": word})).json["changed"] == 1
    assert (await api("GET", f"/api/v1/job-count?nameContains={word}&status=PAUSED")).json["count"] == 1
