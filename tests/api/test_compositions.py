"""Compositions over REST: chains, groups, maps and chords of jobs, started once for each key."""

import asyncio
import json
from typing import Any

import pytest
from harness import Client
from pages import blocks
from receiver import Answer, Receiver

from api import expect, given
from horai.db.pool import Platform

PATH = "/api/v1/compositions"


async def returning(api: Client, receiver: Receiver, output: Any, **fields: Any) -> str:
    """The name of a job whose target answers with this output."""
    answer = Answer(200, json={"output": output})
    return (await given.scripted(api, receiver, answer, **fields))["name"]


async def ended(api: Client, made: Any) -> Any:
    """The run once it has stopped, with its nodes in the order of the calls."""

    async def look() -> Any:
        found = (await api("GET", f"/api/v1/workflows/{made['workflowId']}/runs/{made['id']}")).json
        return found if found["state"] not in ("PENDING", "RUNNING") else None

    run = await given.until(look)
    run["nodes"].sort(key=lambda node: made["nodes"].index(node["name"]))
    return run


async def payload_of(api: Client, node: Any) -> Any:
    return (await api("GET", f"/api/v1/instances/{node['instanceId']}")).json["payload"]


async def test_a_chain_passes_results_on_as_the_payload_and_as_a_member_of_it(api: Client, receiver: Receiver) -> None:
    load, clean, save = [await returning(api, receiver, value) for value in ([1, 2], {"rows": 2}, None)]
    chain = [
        {"job": load, "payload": {"day": 1}},
        {"job": clean, "payload": {"strict": True}, "takes": "rows"},
        {"job": save, "takes": True},
    ]
    made = await api("POST", PATH, {"chain": chain})
    assert made.status == 202
    assert made.headers["Location"] == f"/api/v1/workflows/{made.json['workflowId']}/runs/{made.json['id']}"
    run = await ended(api, made.json)
    assert (run["state"], [node["name"] for node in run["nodes"]], made.json["nodes"]) == (
        "SUCCESS", [load, clean, save], [load, clean, save],
    )  # fmt: skip
    found = [await payload_of(api, node) for node in run["nodes"]]
    assert found == [{"day": 1}, {"rows": [1, 2], "strict": True}, {"rows": 2}]


async def test_a_chord_of_a_map_and_a_group_in_a_chain_take_lists(api: Client, receiver: Receiver) -> None:
    size, total, other = [await returning(api, receiver, value) for value in (3, 9, 7)]
    form = {
        "chain": [
            {"map": {"job": size, "payloads": [1, 2]}},
            {
                "chord": {
                    "group": [{"job": other, "takes": "sizes"}, {"job": size}],
                    "then": {"job": total, "takes": True},
                }
            },
        ]
    }
    run = await ended(api, (await api("POST", PATH, form)).json)
    payloads = {node["name"]: node for node in run["nodes"]}
    assert run["state"] == "SUCCESS"
    assert await payload_of(api, payloads[other]) == {"sizes": [3, 3]}
    assert await payload_of(api, payloads[total]) == [7, 3]


async def test_a_call_without_a_payload_has_that_of_its_job(api: Client, receiver: Receiver) -> None:
    first, second = [await returning(api, receiver, 1, payload={"of": "the job"}) for _ in range(2)]
    run = await ended(api, (await api("POST", PATH, {"chain": [{"job": first}, {"job": second, "takes": "n"}]})).json)
    assert [await payload_of(api, node) for node in run["nodes"]] == [{"of": "the job"}, {"n": 1, "of": "the job"}]


async def test_one_key_starts_one_run_and_is_refused_for_another_composition(
    api: Client, receiver: Receiver, db: Platform
) -> None:
    job, key = await returning(api, receiver, 1), given.name("key")
    form = {"chain": [{"job": job, "payload": {"a": 1, "b": 2}}]}
    replies = await asyncio.gather(*(api("POST", PATH, form, Idempotency_Key=key) for _ in range(4)))
    assert {reply.status for reply in replies} == {202}, [reply.json for reply in replies]
    assert len({reply.json["id"] for reply in replies}) == 1
    assert sorted("Idempotency-Replayed" in reply.headers for reply in replies) == [False, True, True, True]

    spelled = {"chain": [{"payload": {"b": 2, "a": 1}, "job": job}]}
    assert (await api("POST", PATH, spelled, Idempotency_Key=key)).json == replies[0].json
    for other in ({"chain": [{"job": job}, {"job": job}]}, {"chain": [{"job": job, "payload": 3}]}):
        refused = await api("POST", PATH, other, Idempotency_Key=key)
        expect.problem(refused, 422, "SCH_422_INVALID", "has started another composition")
    rows = await db.fetch(
        "select verb from horai.audit where object_kind = 'workflow' and object_id = $1 order by id",
        replies[0].json["workflowId"],
    )
    assert [row["verb"] for row in rows] == ["workflow.create", "workflow.compose"]


async def test_a_composition_starts_at_a_time(api: Client, receiver: Receiver) -> None:
    job = await returning(api, receiver, 1)
    made = (await api("POST", PATH, {"group": [{"job": job}], "at": "2199-01-01T00:00:00Z"})).json
    run = (await api("GET", f"/api/v1/workflows/{made['workflowId']}/runs/{made['id']}")).json
    assert (run["state"], run["fireTime"]) == ("PENDING", "2199-01-01T00:00:00Z")


CALL = {"job": "JOB"}
WRONG: list[tuple[Any, str]] = [
    ({}, "body"),
    ({"chain": [], "group": []}, "body"),
    ({"chain": []}, "chain"),
    ({"chain": [{}]}, "chain.0"),
    ({"chain": [{"job": "missing"}]}, "chain.0.job"),
    ({"chain": [CALL, {"chord": {"group": [CALL, {"job": "missing"}], "then": CALL}}]}, "chain.1.chord.group.1.job"),
    ({"chain": [{**CALL, "takes": True}]}, "chain.0.takes"),
    ({"chain": [CALL, {**CALL, "takes": 3}]}, "chain.1.takes"),
    ({"chain": [CALL, {**CALL, "takes": True, "payload": 1}]}, "chain.1.payload"),
    ({"chain": [CALL, {**CALL, "takes": "a", "payload": 1}]}, "chain.1.payload"),
    ({"chain": [CALL, {**CALL, "takes": "a", "payload": {"a": 1}}]}, "chain.1.payload"),
    ({"chain": [{**CALL, "group": [CALL]}]}, "chain.0.group"),
    ({"chain": [{"group": [CALL], "payload": 1}]}, "chain.0.payload"),
    ({"group": [CALL, {"group": [CALL]}]}, "group.1"),
    ({"group": [CALL, {"chain": [CALL, {"map": {"job": "JOB", "payloads": [1]}}]}]}, "group.1"),
    ({"map": {"job": "JOB", "payloads": []}}, "map.payloads"),
    ({"map": {"job": "missing", "payloads": [1]}}, "map.job"),
    ({"map": {"job": "JOB", "payloads": [1], "limit": 3}}, "map.limit"),
    ({"chord": {"group": [CALL]}}, "chord.then"),
    ({"chain": [{**CALL, "queue": "x"}]}, "chain.0.queue"),
    ({"chain": [CALL], "note": "x"}, "note"),
    ({"chain": [CALL], "at": "tomorrow"}, "at"),
    ({"chain": [{"job": "SEALED"}]}, "chain.0.job"),
]


@pytest.mark.parametrize(("form", "field"), WRONG, ids=[f"{number} {field}" for number, (_, field) in enumerate(WRONG)])
async def test_a_wrong_form_is_refused_with_the_path_of_the_field(
    form: Any, field: str, api: Client, receiver: Receiver, db: Platform
) -> None:
    job = await returning(api, receiver, 1)
    text = json.dumps(form).replace('"JOB"', f'"{job}"').replace('"SEALED"', f'"{job}"')
    if "SEALED" in json.dumps(form):
        await db.execute("update horai.job set search_paths = '{a}' where name = $1", job)
    refused = await api("POST", PATH, json.loads(text))
    told = expect.problem(refused, 422, "SCH_422_INVALID")
    assert field in [error["field"] for error in told["errors"]], told


async def test_a_composition_of_more_nodes_than_a_workflow_may_have_is_refused(api: Client, receiver: Receiver) -> None:
    job = await returning(api, receiver, 1)
    expect.problem(await api("POST", PATH, {"chain": [{"job": job}] * 501}), 422, "SCH_422_INVALID", "500")


async def test_a_job_that_compositions_call_is_deleted_after_their_forms(api: Client, receiver: Receiver) -> None:
    job = await returning(api, receiver, 1)
    made = [(await api("POST", PATH, {"chain": [{"job": job}] * size})).json["workflow"] for size in (1, 2)]
    told = expect.problem(await api("DELETE", f"/api/v1/jobs/{job}"), 409, "SCH_409_CONFLICT", "compositions")
    assert told["workflows"] == ", ".join(sorted(made))
    for name in made:
        assert (await api("DELETE", f"/api/v1/workflows/{name}")).status == 204
    assert (await api("DELETE", f"/api/v1/jobs/{job}")).status == 204
    refused = await api("POST", PATH, {"chain": [{"job": job}]})
    expect.problem(refused, 422, "SCH_422_INVALID", "there is no job")


async def test_the_form_of_the_guide_of_calls_is_started(api: Client) -> None:
    (block,) = [each for each in blocks("docs/guides/calls.md") if each.language == "json"]
    for name in ("load", "clean", "resize", "notify", "report", "publish"):
        if (await api("GET", f"/api/v1/jobs/{name}")).status == 404:
            await given.job(api, name=name)
    made = await api("POST", PATH, json.loads(block.text))
    assert made.status == 202, made.json
    assert made.json["nodes"] == ["load", "clean", "resize", "notify", "report", "publish"]
