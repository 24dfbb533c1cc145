"""Cancel of compositions over REST: before their runs have started, and the counts of calls that it leaves."""

from typing import Any

from harness import Client
from receiver import Answer, Receiver

from api import given

PATH = "/api/v1/compositions"


def states(run: Any) -> dict[str, str]:
    return {node["name"]: node["state"] for node in run["nodes"]}


async def test_a_composition_that_has_not_started_is_cancelled_as_a_run(api: Client, receiver: Receiver) -> None:
    job = (await given.scripted(api, receiver, Answer(200)))["name"]
    made = (await api("POST", PATH, {"group": [{"job": job}], "at": "2199-01-01T00:00:00Z"})).json
    run = f"/api/v1/workflows/{made['workflowId']}/runs/{made['id']}"
    reply = await api("POST", f"{run}/cancel")
    assert reply.status == 200, reply.json
    assert (reply.json["run"]["state"], (await api("GET", run)).json["state"]) == ("CANCELLED", "CANCELLED")
    assert (await api("POST", f"{run}/cancel")).status == 200


async def test_an_instance_of_another_job_is_not_a_run_of_the_form(api: Client, receiver: Receiver) -> None:
    one, other = [(await given.scripted(api, receiver, Answer(200)))["name"] for _ in range(2)]
    made = [
        (await api("POST", PATH, {"group": [{"job": job}], "at": "2199-01-01T00:00:00Z"})).json for job in (one, other)
    ]
    path = f"/api/v1/workflows/{made[0]['workflowId']}/runs"
    assert (await api("POST", f"{path}/{made[1]['id']}/cancel")).status == 404
    assert (await api("POST", f"{path}/cancel", {"ids": [made[1]["id"]]})).json["matched"] == 0
    run = await api("GET", f"/api/v1/workflows/{made[1]['workflowId']}/runs/{made[1]['id']}")
    assert run.json["state"] == "PENDING"


async def test_a_bulk_cancel_of_ids_counts_compositions_that_have_not_started(api: Client, receiver: Receiver) -> None:
    job = (await given.scripted(api, receiver, Answer(200)))["name"]
    made: list[Any] = [
        (await api("POST", PATH, {"group": [{"job": job}], "at": "2199-01-01T00:00:00Z"})).json for _ in range(2)
    ]
    flow = f"/api/v1/workflows/{made[0]['workflowId']}/runs/cancel"
    for is_dry in (True, False):
        reply = (await api("POST", flow, {"ids": [each["id"] for each in made], "dryRun": is_dry})).json
        assert (reply["matched"], reply["changed"], reply["skipped"]) == (2, 0 if is_dry else 2, 0), reply


async def test_the_counts_of_a_cancelled_composition_are_those_of_its_calls(api: Client, receiver: Receiver) -> None:
    job = (await given.scripted(api, receiver, Answer(manner="hang")))["name"]
    later = (await given.scripted(api, receiver, Answer(200)))["name"]
    form = {"chain": [{"map": {"job": job, "payloads": [1, 2, 3]}}, {"job": later, "takes": True}]}
    made = (await api("POST", PATH, form)).json
    run = f"/api/v1/workflows/{made['workflowId']}/runs/{made['id']}"

    async def is_running() -> Any:
        found = (await api("GET", run)).json
        return found if found["state"] == "RUNNING" and states(found)[job] == "RUNNING" else None

    await given.until(is_running)
    told = (await api("POST", f"{run}/cancel")).json["run"]
    found = (await api("GET", run)).json
    assert told["state"] == "CANCELLED"
    assert states(found) == {job: "CANCELLED", later: "CANCELLED"}
    counts = next(node["map"] for node in found["nodes"] if node["name"] == job)
    assert (counts["total"], counts["done"], counts["failed"]) == (3, 3, 3)
