"""The grid of the last runs of a workflow, and one node over these runs."""

from typing import Any

from harness import Client
from receiver import Answer, Receiver

from api import given
from api.test_workflow_maps import MAPPED
from api.test_workflow_rules import flow_of
from api.test_workflows import DEAD, FLOWS, run_in, trigger

SKIPPING = {"extract": {}, "load": {"after": ["extract"]}, "clean": {"after": ["load"], "triggerRule": "allDone"}}


async def changing_flow(
    api: Client, receiver: Receiver, nodes: dict[str, dict[str, Any]], **answers: list[Answer]
) -> Any:
    """A workflow of nodes with a job each, whose targets answer in turn as told."""
    written = []
    for name, more in nodes.items():
        job = await given.scripted(api, receiver, *answers.get(name, [Answer(200)]), name=given.name(name))
        written.append({"name": name, "job": job["name"], **more})
    return (await api("POST", FLOWS, {"name": given.name("flow"), "nodes": written})).json


async def test_the_grid_has_the_state_of_each_node_in_each_run_newest_first(api: Client, receiver: Receiver) -> None:
    skips = Answer(json={"output": {"horai:skip": "no files"}})
    flow = await changing_flow(api, receiver, SKIPPING, extract=[Answer(200), skips, DEAD])
    first = (await trigger(api, flow)).json["run"]
    await run_in(api, flow, first, "SUCCESS")
    second = (await trigger(api, flow)).json["run"]
    await run_in(api, flow, second, "SUCCESS")
    third = (await trigger(api, flow)).json["run"]
    await run_in(api, flow, third, "BLOCKED")

    grid = (await api("GET", f"{FLOWS}/{flow['name']}/grid")).json

    assert [(run["id"], run["state"]) for run in grid["runs"]] == [
        (third["id"], "BLOCKED"), (second["id"], "SUCCESS"), (first["id"], "SUCCESS"),
    ]  # fmt: skip
    assert [(node["name"], node["states"], node["maps"]) for node in grid["nodes"]] == [
        ("extract", ["DEAD", "SKIPPED", "SUCCESS"], None),
        ("load", ["BLOCKED", "SKIPPED", "SUCCESS"], None),
        ("clean", ["SUCCESS", "SUCCESS", "SUCCESS"], None),
    ]
    newest = (await api("GET", f"{FLOWS}/{flow['name']}/grid?limit=1")).json
    assert [len(newest["runs"]), *[len(node["states"]) for node in newest["nodes"]]] == [1, 1, 1, 1]


async def test_the_grid_counts_the_items_of_maps(api: Client, receiver: Receiver) -> None:
    flow = await flow_of(api, receiver, MAPPED, list=Answer(json={"output": ["a", "b", "c"]}))
    await run_in(api, flow, (await trigger(api, flow)).json["run"], "SUCCESS")

    nodes = {node["name"]: node for node in (await api("GET", f"{FLOWS}/{flow['id']}/grid")).json["nodes"]}

    assert nodes["each"]["states"] == ["SUCCESS"]
    assert nodes["each"]["maps"] == [{"total": 3, "done": 3, "failed": 0}]
    assert (nodes["list"]["maps"], nodes["tell"]["maps"]) == (None, None)


async def test_the_grid_keeps_nodes_that_the_workflow_no_longer_has_and_leaves_gaps(
    api: Client, receiver: Receiver
) -> None:
    flow = await flow_of(api, receiver, {"alpha": {}, "beta": {"after": ["alpha"]}})
    await run_in(api, flow, (await trigger(api, flow)).json["run"], "SUCCESS")
    kept = {"name": "beta", "job": flow["nodes"][1]["job"]}
    await api("PATCH", f"{FLOWS}/{flow['id']}", {"nodes": [kept, {**kept, "name": "gamma", "after": ["beta"]}]})
    await run_in(api, flow, (await trigger(api, flow)).json["run"], "SUCCESS")

    grid = (await api("GET", f"{FLOWS}/{flow['id']}/grid")).json

    assert [(node["name"], node["states"]) for node in grid["nodes"]] == [
        ("beta", ["SUCCESS", "SUCCESS"]),
        ("gamma", ["SUCCESS", None]),
        ("alpha", [None, "SUCCESS"]),
    ]


async def test_a_workflow_without_runs_has_a_grid_of_its_nodes(api: Client, receiver: Receiver) -> None:
    flow = await flow_of(api, receiver, SKIPPING)

    grid = (await api("GET", f"{FLOWS}/{flow['id']}/grid")).json

    assert (grid["runs"], [node["name"] for node in grid["nodes"]]) == ([], ["extract", "load", "clean"])


async def test_a_grid_of_more_than_fifty_runs_is_refused(api: Client, receiver: Receiver) -> None:
    flow = await flow_of(api, receiver, SKIPPING)

    for query in ("limit=51", "limit=0", "strange=1"):
        assert (await api("GET", f"{FLOWS}/{flow['id']}/grid?{query}")).status == 422
    assert (await api("GET", f"{FLOWS}/absent/grid")).status == 404


async def test_a_node_is_read_over_the_last_runs_with_its_durations(api: Client, receiver: Receiver) -> None:
    flow = await changing_flow(api, receiver, MAPPED, list=[Answer(json={"output": ["a"]}), DEAD])
    first = (await trigger(api, flow)).json["run"]
    await run_in(api, flow, first, "SUCCESS")
    second = (await trigger(api, flow)).json["run"]
    await run_in(api, flow, second, "BLOCKED")

    listed = (await api("GET", f"{FLOWS}/{flow['id']}/nodes/list/runs")).json["items"]
    each = (await api("GET", f"{FLOWS}/{flow['id']}/nodes/each/runs")).json["items"]

    assert [(one["runId"], one["state"], one["attempt"], one["errorCode"]) for one in listed] == [
        (second["id"], "DEAD", 1, "HTTP_400"), (first["id"], "SUCCESS", 1, None),
    ]  # fmt: skip
    assert all(one["durationMs"] >= 0 and one["instanceId"] for one in listed)
    assert [(one["state"], one["instanceId"], one["map"]) for one in each] == [
        ("BLOCKED", None, {"total": None, "done": 0, "failed": 0}),
        ("SUCCESS", None, {"total": 1, "done": 1, "failed": 0}),
    ]
    assert [one["durationMs"] is not None for one in each] == [False, True]
    for path in ("nodes/absent/runs", "nodes/list/runs?limit=0"):
        assert (await api("GET", f"{FLOWS}/{flow['id']}/{path}")).status in {404, 422}
