"""Maps of workflows over REST, with HTTP targets."""

import pytest
from harness import Client
from receiver import Answer, Receiver

from api.test_workflow_rules import flow_of
from api.test_workflows import FLOWS, run_in, states, trigger

MAPPED = {
    "list": {},
    "each": {"map": {"over": "list", "maxConcurrency": 2, "allowFailures": "40%"}},
    "tell": {"after": ["each"]},
}


async def test_C6_a_map_is_stored_shown_and_run_and_its_items_are_read_page_by_page(
    api: Client, receiver: Receiver
) -> None:
    flow = await flow_of(
        api, receiver, MAPPED, list=Answer(json={"output": ["a", "b", "c"]}), each=Answer(json={"output": 7})
    )
    listed, each, _ = flow["nodes"]
    assert (listed["map"], each["map"], each["after"]) == (None, MAPPED["each"]["map"], ["list"])

    run = (await trigger(api, flow)).json["run"]
    found = await run_in(api, flow, run, "SUCCESS")

    assert states(found) == dict.fromkeys(MAPPED, "SUCCESS")
    node = next(node for node in found["nodes"] if node["name"] == "each")
    assert (node["instanceId"], node["result"]) == (None, [7, 7, 7])
    assert node["map"] == {
        "total": 3, "done": 3, "failed": 0, "running": 0,
        "over": "list", "overPayload": None, "maxConcurrency": 2, "allowFailures": "40%", "flatten": False,
    }  # fmt: skip
    path = f"{FLOWS}/{flow['id']}/runs/{run['id']}/nodes/each/items"
    first = (await api("GET", f"{path}?limit=2")).json
    second = (await api("GET", f"{path}?limit=2&cursor={first['nextCursor']}")).json
    items = [*first["items"], *second["items"]]
    assert [(item["position"], item["state"], item["result"]) for item in items] == [
        (0, "SUCCESS", 7), (1, "SUCCESS", 7), (2, "SUCCESS", 7),
    ]  # fmt: skip
    assert second["nextCursor"] is None
    assert (await api("GET", f"{path}?failed=true")).json["items"] == []
    instance = (await api("GET", f"/api/v1/instances/{items[1]['instanceId']}")).json
    assert instance["payload"] == "b"
    tell = next(node for node in found["nodes"] if node["name"] == "tell")
    told = (await api("GET", f"/api/v1/instances/{tell['instanceId']}")).json
    assert told["payload"] == {"parents": {"each": [7, 7, 7]}}


async def test_C6_a_map_whose_items_die_blocks_the_run_and_names_the_first(api: Client, receiver: Receiver) -> None:
    flow = await flow_of(api, receiver, MAPPED, list=Answer(json={"output": [1, 2]}), each=Answer(status=400))
    run = (await trigger(api, flow)).json["run"]
    found = await run_in(api, flow, run, "BLOCKED")

    assert states(found) == {"list": "SUCCESS", "each": "DEAD", "tell": "BLOCKED"}
    path = f"{FLOWS}/{flow['id']}/runs/{run['id']}/nodes/each/items?failed=true"
    first = (await api("GET", path)).json["items"][0]
    (cause,) = found["rootCauses"]
    assert (cause["node"], cause["errorCode"], cause["instanceId"]) == ("each", "MAP_FAILED", first["instanceId"])
    stuck = (await api("GET", "/api/v1/scheduler/blocked")).json["items"]
    (same,) = [each for each in stuck if each["id"] == run["id"]]
    assert same["rootCauses"][0]["errorCode"] == "MAP_FAILED"


async def test_C6_items_of_another_node_or_run_are_not_found(api: Client, receiver: Receiver) -> None:
    flow = await flow_of(api, receiver, MAPPED, list=Answer(json={"output": []}))
    run = (await trigger(api, flow)).json["run"]
    await run_in(api, flow, run, "SUCCESS")

    for where in (f"{run['id']}/nodes/list", f"{run['id']}/nodes/absent", "1/nodes/each", "x/nodes/each"):
        missed = await api("GET", f"{FLOWS}/{flow['id']}/runs/{where}/items")
        assert (missed.status, missed.json["code"]) == (404, "SCH_404_NOT_FOUND")


@pytest.mark.parametrize("given", [{"over": "list", "strange": 1}, {"over": 1}, "list", {"maxConcurrency": 2}])
async def test_C6_a_map_that_is_wrong_is_refused(api: Client, receiver: Receiver, given: object) -> None:
    nodes = [{"name": "list"}, {"name": "each", "map": given}]
    refused = await api("POST", FLOWS, {"name": "wrong", "nodes": nodes})

    assert (refused.status, refused.json["code"]) == (422, "SCH_422_INVALID")
