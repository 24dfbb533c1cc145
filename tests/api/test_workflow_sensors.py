"""Sensors of workflows over REST, with HTTP targets that answer that their condition is not met."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from harness import Client
from receiver import Answer, Receiver

from api import expect, given
from api.test_workflow_rules import flow_of
from api.test_workflows import FLOWS, node_jobs, run_in, states, trigger

NOT_YET = Answer(json={"output": {"horai:wait": "no file yet"}})
SENSOR = {"every": "1s", "deadline": "2h", "onDeadline": "fail"}
SHORT = {"every": "1s", "deadline": "1500ms"}


async def flow(api: Client, receiver: Receiver, sensor: dict[str, str], *answers: Answer) -> Any:
    """file (a sensor) → load; the target of the sensor answers in turn."""
    made = await flow_of(api, receiver, {"file": {"sensor": sensor}, "load": {"after": ["file"]}})
    receiver.on(f"/{made['nodes'][0]['job']}", *answers)
    return made


async def polled(api: Client, made: Any, run: Any, polls: int) -> Any:
    """The node of the sensor, once it has asked so often and waits."""

    async def look() -> Any:
        nodes = (await api("GET", f"{FLOWS}/{made['id']}/runs/{run['id']}")).json["nodes"]
        file = next((node for node in nodes if node["name"] == "file"), None)
        return file if file and file["sensor"]["polls"] >= polls and file["state"] == "INIT" else None

    return await given.until(look)


def time_of(text: str) -> datetime:
    return datetime.fromisoformat(text)


async def test_C6_a_sensor_is_stored_shown_and_asks_until_its_condition_is_met(api: Client, receiver: Receiver) -> None:
    made = await flow(api, receiver, SENSOR, NOT_YET, NOT_YET, Answer(json={"output": "a.csv"}))
    assert [node["sensor"] for node in made["nodes"]] == [SENSOR, None]
    assert (await api("GET", f"{FLOWS}/{made['id']}")).json["nodes"] == made["nodes"]

    run = (await trigger(api, made)).json["run"]
    waiting = await polled(api, made, run, 1)
    found = await run_in(api, made, run, "SUCCESS")

    start = time_of(run["fireTime"])
    assert timedelta(hours=2) <= time_of(waiting["sensor"]["deadlineAt"]) - start < timedelta(hours=2, minutes=1)
    assert time_of(waiting["sensor"]["nextPollAt"]) > start
    assert states(found) == {"file": "SUCCESS", "load": "SUCCESS"}
    file = next(node for node in found["nodes"] if node["name"] == "file")
    assert (file["result"], file["sensor"]["polls"], file["sensor"]["nextPollAt"]) == ("a.csv", 3, None)
    load = next(node for node in found["nodes"] if node["name"] == "load")
    instance = (await api("GET", f"/api/v1/instances/{load['instanceId']}")).json
    assert instance["payload"] == {"parents": {"file": "a.csv"}}


async def test_C6_the_explanation_of_a_waiting_sensor_says_when_it_asks_again_and_when_it_gives_up(
    api: Client, receiver: Receiver
) -> None:
    made = await flow(api, receiver, {**SENSOR, "every": "1h"}, NOT_YET)
    run = (await trigger(api, made)).json["run"]
    node = await polled(api, made, run, 1)

    told = (await api("GET", f"/api/v1/instances/{node['instanceId']}/why")).json

    assert told["verdict"] == "WAITING"
    again, end = (f"{time_of(node['sensor'][each]):%Y-%m-%dT%H:%M:%S}" for each in ("nextPollAt", "deadlineAt"))
    assert "was not met: the sensor asks again at" in told["why"]
    assert again in told["why"]
    assert f"gives up at {end}" in told["why"]
    assert told["whySaid"]["code"] == "SENSOR_ASKS"


async def test_C6_a_sensor_is_dead_at_its_deadline_and_a_rerun_has_a_new_one(api: Client, receiver: Receiver) -> None:
    made = await flow(api, receiver, SHORT, NOT_YET)
    run = (await trigger(api, made)).json["run"]
    first = await run_in(api, made, run, "BLOCKED")

    assert states(first) == {"file": "DEAD", "load": "BLOCKED"}
    (cause,) = first["rootCauses"]
    assert (cause["node"], cause["errorCode"], cause["blocks"]) == ("file", "SENSOR_DEADLINE", ["load"])
    dead = next(node for node in first["nodes"] if node["name"] == "file")
    again = await api("POST", f"{FLOWS}/{made['id']}/runs/{run['id']}/rerun", {"from": "file"})
    assert again.status == 200, again.json
    fresh = next(node for node in again.json["run"]["nodes"] if node["name"] == "file")
    assert time_of(fresh["sensor"]["deadlineAt"]) > time_of(dead["sensor"]["deadlineAt"]) + timedelta(seconds=1)
    second = await run_in(api, made, run, "BLOCKED")
    ended = next(node for node in second["nodes"] if node["name"] == "file")
    assert (ended["state"], ended["instanceId"] != dead["instanceId"]) == ("DEAD", True)
    assert time_of(ended["finishedAt"]) >= time_of(fresh["sensor"]["deadlineAt"])

    receiver.on(f"/{made['nodes'][0]['job']}", Answer(200))
    await api("POST", f"{FLOWS}/{made['id']}/runs/{run['id']}/rerun", {"from": "file"})
    assert states(await run_in(api, made, run, "SUCCESS")) == {"file": "SUCCESS", "load": "SUCCESS"}


async def test_C6_the_deadline_of_a_sensor_that_is_rerun_at_a_rate_counts_from_its_start(
    api: Client, receiver: Receiver
) -> None:
    made = await flow(api, receiver, {**SENSOR, "deadline": "1h"}, Answer(400))
    started = [(await trigger(api, made)).json["run"] for _ in range(2)]
    runs = sorted(started, key=lambda run: int(run["id"]))  # as reruns go; connections take ids in advance
    for run in runs:
        await run_in(api, made, run, "BLOCKED")
    path = f"{FLOWS}/{made['id']}/runs"

    wish = {"state": "BLOCKED", "rate": "1/h", "startAt": "2999-01-01T00:00:00Z"}
    done = await api("POST", f"{path}/rerun", wish)

    assert done.json["changed"] == 2, done.json
    for run, deadline in zip(runs, ("2999-01-01T01:00:00Z", "2999-01-01T02:00:00Z"), strict=True):
        nodes = (await api("GET", f"{path}/{run['id']}")).json["nodes"]
        sensor = next(node["sensor"] for node in nodes if node["name"] == "file")
        assert sensor["deadlineAt"] == deadline
        assert time_of(deadline) - time_of(sensor["nextPollAt"]) == timedelta(hours=1)
        assert (await api("POST", f"{path}/{run['id']}/cancel")).status == 200


async def test_C6_a_sensor_may_be_skipped_at_its_deadline(api: Client, receiver: Receiver) -> None:
    made = await flow(api, receiver, {**SHORT, "onDeadline": "skip"}, NOT_YET)
    run = (await trigger(api, made)).json["run"]

    found = await run_in(api, made, run, "SUCCESS")

    assert states(found) == {"file": "SKIPPED", "load": "SKIPPED"}
    nodes = {node["name"]: node for node in found["nodes"]}
    assert nodes["file"]["skipReason"] == "its condition was not met at its deadline"
    assert nodes["file"]["skipReasonSaid"]["code"] == "NOT_READY"


async def test_the_answer_of_a_sensor_is_an_ordinary_result_of_another_node(api: Client, receiver: Receiver) -> None:
    made = await flow_of(api, receiver, {"file": {}}, file=NOT_YET)
    run = (await trigger(api, made)).json["run"]

    (node,) = (await run_in(api, made, run, "SUCCESS"))["nodes"]

    assert (node["sensor"], node["result"]) == (None, {"horai:wait": "no file yet"})


WRITE = 'Write {"every": "30s", "deadline": "2h", "onDeadline": "skip"}.'
SPLIT = "Write two nodes: the sensor, and a node after it"


@pytest.mark.parametrize(
    ("more", "field", "words"),
    [
        ({"sensor": {"every": "0.1s", "deadline": "1h"}}, "nodes.1.sensor.every", WRITE),
        ({"sensor": {"every": "2d", "deadline": "1h"}}, "nodes.1.sensor.every", WRITE),
        ({"sensor": {"every": "soon", "deadline": "1h"}}, "nodes.1.sensor.every", WRITE),
        ({"sensor": {"every": "1m", "deadline": "400d"}}, "nodes.1.sensor.deadline", WRITE),
        ({"sensor": {"every": "1m"}}, "nodes.1.sensor.deadline", "is missing"),
        ({"sensor": {"every": "1m", "deadline": "1h", "onDeadline": "wait"}}, "nodes.1.sensor.onDeadline", "skip"),
        ({"sensor": {"every": "1m", "deadline": "1h", "retries": 1}}, "nodes.1.sensor.retries", "camelCase"),
        ({"sensor": "1m"}, "nodes.1.sensor", "object"),
        ({"sensor": SENSOR, "map": {"over": "first"}}, "nodes.1.sensor", SPLIT),
        ({"sensor": SENSOR, "workflow": "other", "job": None}, "nodes.1.sensor", SPLIT),
    ],
)
async def test_C6_a_wrong_sensor_is_refused_at_its_field(
    api: Client, receiver: Receiver, more: dict[str, Any], field: str, words: str
) -> None:
    first, second = await node_jobs(api, receiver, "first", "second")
    nodes = [{"name": "first", "job": first}, {"name": "second", "job": second, "after": ["first"], **more}]

    refused = await api("POST", FLOWS, {"name": (name := given.name("flow")), "nodes": nodes})

    assert field in [error["field"] for error in expect.invalid(refused, words)["errors"]], refused.json
    assert (await api("GET", f"{FLOWS}/{name}")).status == 404
