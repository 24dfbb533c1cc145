"""Trigger rules, skips, branches and retries of workflow nodes over REST, with HTTP targets."""

from typing import Any

import pytest
from harness import Client
from receiver import Answer, Receiver

from api import given
from api.test_workflows import DEAD, FLOWS, node_jobs, run_in, states, trigger


async def flow_of(api: Client, receiver: Receiver, nodes: dict[str, dict[str, Any]], **answers: Answer) -> Any:
    """A workflow of nodes with a job each, whose target answers as told."""
    jobs = dict(zip(nodes, await node_jobs(api, receiver, *nodes, **answers), strict=True))
    written = [{"name": name, "job": jobs[name], **more} for name, more in nodes.items()]
    made = await api("POST", FLOWS, {"name": given.name("flow"), "nodes": written})
    assert made.status == 201, made.json
    return made.json


RULED = {
    "extract": {},
    "load": {"after": ["extract"]},
    "clean": {"after": ["load"], "triggerRule": "allDone"},
    "alarm": {"after": ["extract"], "triggerRule": "oneFailed"},
}


async def test_C6_rules_are_stored_shown_and_obeyed(api: Client, receiver: Receiver) -> None:
    flow = await flow_of(api, receiver, RULED, extract=DEAD)
    assert [node["triggerRule"] for node in flow["nodes"]] == ["allSuccess", "allSuccess", "allDone", "oneFailed"]

    run = (await trigger(api, flow)).json["run"]
    found = await run_in(api, flow, run, "BLOCKED")

    assert states(found) == {"extract": "DEAD", "load": "BLOCKED", "clean": "SUCCESS", "alarm": "SUCCESS"}
    assert [(cause["node"], cause["blocks"]) for cause in found["rootCauses"]] == [("extract", ["load"])]
    assert {node["name"]: node["rootCauses"] for node in found["nodes"]}["clean"] == []


async def test_C6_an_http_target_skips_its_node_by_its_output(api: Client, receiver: Receiver) -> None:
    flow = await flow_of(api, receiver, RULED, extract=Answer(json={"output": {"horai:skip": "no new files"}}))
    run = (await trigger(api, flow)).json["run"]
    found = await run_in(api, flow, run, "SUCCESS")

    assert states(found) == {"extract": "SKIPPED", "load": "SKIPPED", "clean": "SUCCESS", "alarm": "SKIPPED"}
    nodes = {node["name"]: node for node in found["nodes"]}
    assert nodes["extract"]["skipReason"] == "its function skipped it: no new files"
    assert nodes["extract"]["skipReasonSaid"]["code"] == "SKIPPED_BECAUSE"
    assert (nodes["load"]["reason"], nodes["clean"]["skipReason"]) == ("SKIPPED", None)
    why = await api("GET", f"/api/v1/instances/{nodes['load']['instanceId']}/why")
    assert "its workflow run skipped it" in why.json["why"]


async def test_C6_an_http_target_chooses_the_nodes_after_it(api: Client, receiver: Receiver) -> None:
    nodes = {"pick": {}, "a": {"after": ["pick"]}, "b": {"after": ["pick"]}}
    answer = Answer(json={"output": {"horai:branch": ["b"], "result": {"rows": 7}}})
    flow = await flow_of(api, receiver, nodes, pick=answer)
    run = (await trigger(api, flow)).json["run"]
    found = await run_in(api, flow, run, "SUCCESS")

    assert states(found) == {"pick": "SUCCESS", "a": "SKIPPED", "b": "SUCCESS"}
    shown = {node["name"]: node for node in found["nodes"]}
    assert (shown["pick"]["chosen"], shown["b"]["chosen"]) == (["b"], None)
    instance = (await api("GET", f"/api/v1/instances/{shown['b']['instanceId']}")).json
    assert instance["payload"] == {"parents": {"pick": {"rows": 7}}}


async def test_C6_a_reported_outcome_is_retried_by_the_policy_of_the_node(api: Client, receiver: Receiver) -> None:
    retry = {"maxRetry": 0, "base": "1ms", "jitter": "none"}
    flow = await flow_of(api, receiver, {"load": {"retry": retry}}, load=Answer(202))
    assert flow["nodes"][0]["retry"]["maxRetry"] == 0
    run = (await trigger(api, flow)).json["run"]

    async def called() -> Any:
        found = (await api("GET", f"{FLOWS}/{flow['id']}/runs/{run['id']}")).json
        return found["nodes"][0] if found["nodes"] and found["nodes"][0]["state"] == "RUNNING" else None

    node = await given.until(called)
    instance = (await api("GET", f"/api/v1/instances/{node['instanceId']}")).json
    body = {"fence": instance["fence"], "result": "FAIL_RETRYABLE", "message": "Busy."}
    reported = await api("POST", f"/api/v1/instances/{node['instanceId']}/outcome", body)
    assert reported.status == 200, reported.json
    (found,) = (await run_in(api, flow, run, "BLOCKED"))["nodes"]
    assert (found["state"], found["attempt"]) == ("DEAD", 1), "the job allows five retries, and the node none"


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"triggerRule": "all_done", "after": ["first"]}, "nodes.1.triggerRule"),
        ({"triggerRule": "allDone"}, "nodes.1.triggerRule"),
        ({"retry": {"maxRetry": -1}}, "nodes.1.retry.maxRetry"),
        ({"retry": {"base": "soon"}}, "nodes.1.retry.base"),
        ({"retry": {"tries": 1}}, "nodes.1.retry.tries"),
        ({"map": "first"}, "nodes.1.map"),
    ],
)
async def test_a_wrong_rule_or_retry_is_refused_at_its_field(
    api: Client, receiver: Receiver, more: dict[str, Any], field: str
) -> None:
    first, second = await node_jobs(api, receiver, "first", "second")
    nodes = [{"name": "first", "job": first}, {"name": "second", "job": second, **more}]

    refused = await api("POST", FLOWS, {"name": given.name("flow"), "nodes": nodes})

    assert refused.status == 422, refused.json
    assert field in [error["field"] for error in refused.json["errors"]]


async def test_a_patch_of_other_fields_keeps_rules_and_retries(api: Client, receiver: Receiver) -> None:
    nodes = {"a": {}, "b": {"after": ["a"], "triggerRule": "noneFailed", "retry": {"maxRetry": 3}}}
    flow = await flow_of(api, receiver, nodes)

    changed = (await api("PATCH", f"{FLOWS}/{flow['id']}", {"tags": ["night"]})).json

    assert changed["nodes"] == flow["nodes"]
    assert (changed["nodes"][1]["triggerRule"], changed["nodes"][1]["retry"]["maxRetry"]) == ("noneFailed", 3)
