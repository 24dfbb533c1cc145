"""Seed 002 §18, example 6: a parent of a DAG fails, all its children are blocked, and it is told; a rerun repairs it."""

import asyncio
import json
from typing import Any

import asyncpg
import harness
from harness import Client
from receiver import Answer, Receiver

FLOWS = "/api/v1/workflows"


async def _job(api: Client, receiver: Receiver, name: str, *answers: Answer) -> None:
    receiver.on(f"/{name}", *answers)
    target = {"type": "http", "url": receiver.url(f"/{name}")}
    retry = {"maxRetry": 1, "base": "10ms", "jitter": "none"}
    made = await api("POST", "/api/v1/jobs", {"name": name, "target": target, "retry": retry})
    assert made.status == 201, made.json


async def _until(api: Client, run: Any, state: str) -> Any:
    async with asyncio.timeout(30):
        while True:
            found = (await api("GET", f"{FLOWS}/settlement/runs/{run['id']}")).json
            if found["state"] == state:
                return found
            await asyncio.sleep(0.02)


async def test_C59f_a_failed_parent_blocks_all_its_children_and_is_told(url: str) -> None:
    async with harness.node(url) as api, Receiver() as receiver:
        await _job(api, receiver, "clear", Answer(503))
        for name in ("ledger", "payout", "report"):
            await _job(api, receiver, name, Answer(200))
        nodes = [
            {"name": "clear"},
            {"name": "ledger", "after": ["clear"]},
            {"name": "payout", "after": ["clear"]},
            {"name": "report", "after": ["ledger", "payout"]},
        ]
        assert (await api("POST", FLOWS, {"name": "settlement", "nodes": nodes})).status == 201
        run = (await api("POST", f"{FLOWS}/settlement/trigger", Idempotency_Key="tonight")).json["run"]

        blocked = await _until(api, run, "BLOCKED")
        assert {node["name"]: node["state"] for node in blocked["nodes"]} == {
            "clear": "DEAD", "ledger": "BLOCKED", "payout": "BLOCKED", "report": "BLOCKED",
        }  # fmt: skip
        assert {hit.path for hit in receiver.hits} == {"/clear"}, "no child was called"
        connection = await asyncpg.connect(url)
        (event,) = await connection.fetch("select data from horai.event where kind = 'WORKFLOW_BLOCKED'")
        told = json.loads(event["data"])
        assert (told["node"], told["blocked"]) == ("clear", ["ledger", "payout", "report"])
        await connection.close()

        receiver.on("/clear", Answer(200))
        assert (await api("POST", f"{FLOWS}/settlement/runs/{run['id']}/rerun", {"from": "clear"})).status == 200
        done = await _until(api, run, "SUCCESS")
        assert {node["state"] for node in done["nodes"]} == {"SUCCESS"}
