"""`GET /api/v1/instances/{id}/why`, and what one instance tells of its kin."""

from typing import Any

from harness import Client
from receiver import HANG, Answer, Receiver

from api import expect, given
from horai.db.pool import Platform


async def why(api: Client, instance: Any) -> Any:
    reply = await api("GET", f"/api/v1/instances/{instance['id']}/why")
    assert reply.status == 200, reply.json
    assert reply.json["instance"]["id"] == instance["id"]
    return reply.json


def kinds(told: Any) -> list[str]:
    return [hold["kind"] for hold in told["holds"]]


async def test_an_instance_that_is_not_due_waits_for_its_time(api: Client) -> None:
    instance = (await given.put(api, await given.job(api), "a")).json["instance"]

    told = await why(api, instance)

    assert (told["verdict"], kinds(told)) == ("WAITING", ["NOT_DUE"])
    assert "2999-01-01" in told["why"]


async def test_all_that_is_in_the_way_is_told_at_once(api: Client) -> None:
    job = await given.job(api, queue=(queue := given.name("queue")))
    await api("POST", f"/api/v1/jobs/{job['id']}/pause", {"note": "moving house"})
    await api("PUT", f"/api/v1/queues/{queue}", {"paused": True})
    instance = (await given.put(api, job, "a", None)).json["instance"]

    told = await why(api, instance)

    assert (told["verdict"], kinds(told)) == ("HELD", ["JOB_PAUSED", "QUEUE_PAUSED"])
    assert "moving house" in told["why"]
    assert queue in told["holds"][1]["detail"]


async def test_a_full_queue_is_told_with_its_limit(api: Client, receiver: Receiver) -> None:
    queue = given.name("queue")
    await api("PUT", f"/api/v1/queues/{queue}", {"maxConcurrency": 1})
    job = await given.scripted(api, receiver, HANG, queue=queue, timeout="60s")
    await given.running(api, receiver, job, "first")
    second = (await given.put(api, job, "second", None)).json["instance"]

    told = await why(api, second)

    assert kinds(told) == ["CONCURRENCY"]
    assert "1 is its limit" in told["holds"][0]["detail"]


async def test_a_function_that_no_worker_has_is_told(api: Client, db: Platform) -> None:
    job = await api("POST", "/api/v1/jobs", {"name": (name := given.name("function"))})
    instance = await given.triggered(api, job.json)
    assert kinds(await why(api, instance)) == ["NO_WORKER"]

    await db.execute(
        "insert into horai.node (name, host, pid, version, lease_until, roles, vitals)"
        " values ('w', 'h', 1, 'v', 'infinity', '{worker}', $1)",
        '{"handlers": ["other"], "slots": 4, "in_flight": 3}',
    )
    told = await given.until(lambda: _told_of_handler(api, instance))
    assert name in told["holds"][0]["detail"]
    nodes = (await api("GET", "/api/v1/scheduler/nodes")).json["items"]
    (worker,) = [node for node in nodes if node["name"] == "w"]
    assert (worker["handlers"], worker["slots"], worker["inFlight"]) == (["other"], 4, 3)
    (own,) = [node for node in nodes if node["name"] == "test-node"]
    assert "horai:workflow" in own["handlers"]
    await db.execute(
        "update horai.node set fenced_at = clock_timestamp(), lease_until = clock_timestamp() where name = 'w'"
    )
    (lost,) = (await api("GET", "/api/v1/scheduler/nodes")).json["lost"]
    assert (lost["name"], lost["roles"]) == ("w", ["worker"])


async def _told_of_handler(api: Client, instance: Any) -> Any:
    """Once the node itself has said with a beat what it has."""
    told = await why(api, instance)
    return told if kinds(told) == ["NO_HANDLER"] else None


async def test_a_blocked_instance_names_its_parents_and_an_instance_its_kin(api: Client, receiver: Receiver) -> None:
    first = await given.scripted(api, receiver, HANG, timeout="60s")
    second = await given.job(api)
    nodes = [{"name": "load", "job": first["name"]}, {"name": "report", "job": second["name"], "after": ["load"]}]
    made = await api("POST", "/api/v1/workflows", {"name": given.name("flow"), "nodes": nodes})
    assert made.status == 201, made.json
    await api("POST", f"/api/v1/workflows/{made.json['id']}/trigger", Idempotency_Key=given.name())

    async def blocked() -> Any:
        return (await api("GET", f"/api/v1/jobs/{second['id']}/instances?state=BLOCKED")).json["items"]

    (child,) = await given.until(blocked)
    told = await why(api, child)
    assert (told["verdict"], kinds(told)) == ("WAITING", ["PARENTS"])
    assert "load (instance" in told["why"]
    place = (await given.read(api, child))["workflow"]
    (parent,) = place["parents"]
    assert (place["node"], place["children"], parent["node"]) == ("report", [], "load")
    (behind,) = (await given.read(api, {"id": parent["instanceId"]}))["workflow"]["children"]
    assert behind == {"node": "report", "instanceId": child["id"], "state": "BLOCKED"}


async def test_a_dead_instance_lists_no_obstacles_and_links_its_replay(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, Answer(400), Answer(200))
    dead = await api.until_state((await given.triggered(api, job))["id"], "DEAD")
    told = await why(api, dead)
    assert (told["verdict"], told["holds"]) == ("FIRED", [])

    (letter,) = (await api("GET", f"/api/v1/dlq?job={job['name']}")).json["items"]
    replayed = (await api("POST", f"/api/v1/dlq/{letter['id']}/replay")).json["instance"]
    assert (await given.read(api, dead))["replays"] == [replayed["id"]]


async def test_an_instance_tells_what_has_superseded_it(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, HANG, timeout="60s")
    old = await given.running(api, receiver, job, "k")
    new = (await given.put(api, job, "k")).json["instance"]

    assert new["supersedes"] == old["id"]
    assert (await given.read(api, old))["supersededBy"] == [new["id"]]


async def test_the_instance_of_a_deleted_job_is_explained_too(api: Client, receiver: Receiver) -> None:
    job = await given.scripted(api, receiver, Answer(200))
    done = await api.until_state((await given.triggered(api, job))["id"], "SUCCESS")
    await api("DELETE", f"/api/v1/jobs/{job['id']}")

    assert (await why(api, done))["verdict"] == "FIRED"
    expect.problem(await api("GET", "/api/v1/instances/999999999/why"), 404, "SCH_404_NOT_FOUND")
