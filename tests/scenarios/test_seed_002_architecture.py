"""Seed 002, the architecture: each box is a module of its own, in one process as well as in several."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from collector import Collector
from harness import Client, NodeProcess
from receiver import Answer, Receiver
from rows import until

from faults.worker_process import WorkerProcess
from horai.core.limits import SHARDS
from horai.db.pool import Platform

ROOT = Path(__file__).parents[2]
BOXES = {
    "gateway": ("horai.app", "horai.api.guard"),
    "job service": ("horai.operations.jobs",),
    "trigger engine": ("horai.engine.trigger",),
    "time wheel": ("horai.time.wheel",),
    "delay queue": ("horai.engine.dispatch.scans",),
    "dispatcher": ("horai.engine.dispatch.dispatcher",),
    "shard": ("horai.core.shards", "horai.db.shards"),
    "lease": ("horai.engine.lease",),
    "state DB": ("horai.db.claims", "horai.db.settlements"),
    "outbox": ("horai.features.outbox.stage",),
    "retry": ("horai.core.retry",),
    "dead letters": ("horai.features.dead_letters.service",),
    "metrics": ("horai.features.metrics.routes",),
    "logs": ("horai.logs",),
    "trace": ("horai.operations.traces",),
    "alert": ("horai.features.alerts.stage",),
}
"""The modules of a node. The box `workers` is the package of a worker process."""
NODE = """
import sys, horai.node
from horai.features.registry import FEATURES
for feature in FEATURES:
    for name in (*feature.routes, *filter(None, [feature.stage])):
        feature.module(name)
print(*sys.modules)
"""
"""Loads what the processes of nodes load, by the registry that they go by."""
WORKER = "import sys, horai.sdk.worker; print(*sys.modules)"
WORKERS = ("horai.sdk.worker", "horai.sdk.functions")
RETRY = {"base": "10ms", "cap": "20ms", "jitter": "none", "maxRetry": 1}
SHOP = """
from horai import Horai

app = Horai("shop")


@app.job(name="pack")
async def pack() -> None:
    pass
"""


@dataclass(frozen=True, slots=True)
class Deployment:
    """The processes of a deployment by name; `does` names the one of each part."""

    nodes: Mapping[str, NodeProcess]
    api: Client
    collector: Collector
    receiver: Receiver
    does: Mapping[str, str]

    def lines(self, name: str) -> list[dict[str, Any]]:
        """The log of a process, which is JSON."""
        lines = self.nodes[name].log.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]


SINGLE = {"api": "all", "scheduler": "all", "executor": "all"}
SPLIT = {"api": "gate", "scheduler": "clock", "executor": "hands"}


@asynccontextmanager
async def deployed(place: Path, url: str, does: Mapping[str, str]) -> AsyncGenerator[Deployment]:
    """Start one node for all roles, or one for each."""
    async with Collector() as collector, Receiver() as receiver, aiohttp.ClientSession() as session:
        flags = ("--callback-allow", "127.0.0.0/8", "--log-format", "json", "--otlp-endpoint", collector.url)
        roles = {name: ",".join(role for role in does if does[role] == name) for name in does.values()}
        nodes = {name: NodeProcess(place / name, url, "--roles", own, *flags) for name, own in roles.items()}
        await asyncio.gather(*(asyncio.to_thread(node.start) for node in nodes.values()))
        try:
            yield Deployment(nodes, Client(nodes[does["api"]].base, session), collector, receiver, does)
        finally:
            codes = await asyncio.gather(*(asyncio.to_thread(node.stop) for node in nodes.values()))
        assert set(codes) == {0}


@asynccontextmanager
async def working(place: Path, url: str) -> AsyncGenerator[None]:
    """Run a worker of the function `pack` in a process of its own."""
    (place / "boxes_shop.py").write_text(SHOP)
    worker = WorkerProcess(place, "packer", url, "boxes_shop:app")
    await asyncio.to_thread(worker.start)
    try:
        yield
    finally:
        assert await asyncio.to_thread(worker.stop) == 0


def test_C13a_each_box_of_the_architecture_is_a_module_that_a_node_or_a_worker_loads() -> None:
    for program, modules in ((NODE, [*chain(*BOXES.values())]), (WORKER, WORKERS)):
        loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        for module in modules:
            assert find_spec(module) is not None
            assert module in loaded.split(), f"no process uses {module}"
    alerts = (ROOT / "docs" / "runbook.md").read_text().partition("## Alert by alert")[2]
    assert "| `INSTANCE_DEAD` |" in alerts, "the last box: an alert leads to the runbook"


@pytest.mark.early
@pytest.mark.timeout(180)
@pytest.mark.parametrize("does", [SINGLE, SPLIT], ids=["single", "split"])
async def test_C13b_work_passes_through_every_box_in_one_process_and_in_several(
    short_place: Path, url: str, connection: Platform, does: Mapping[str, str]
) -> None:
    async with deployed(short_place, url, does) as deployment, working(short_place, url):
        api, receiver = deployment.api, deployment.receiver
        await _outlets(deployment)
        receiver.on("/clearing", Answer(503), Answer(503), Answer(200))

        # Gateway and job service.
        target = {"type": "http", "url": receiver.url("/clearing")}
        made = await api("POST", "/api/v1/jobs", {"name": "clearing", "every": "1s", "target": target, "retry": RETRY})
        assert made.status == 201, made.json

        async def is_dead() -> bool:
            return bool((await api("GET", "/api/v1/dlq?job=clearing")).json["items"])

        await until(is_dead)
        [letter] = (await api("GET", "/api/v1/dlq?job=clearing")).json["items"]
        dead = (await api("GET", f"/api/v1/instances/{letter['instanceId']}")).json
        # Retry, then dead letter.
        assert [each["outcome"] for each in dead["attempts"]] == ["FAIL", "DEAD"]
        # Trigger, wheel, delay queue and dispatcher, each in the process that has its role.
        for duty, role in (("trigger", "scheduler"), ("dispatch", "executor")):
            held = "select distinct node.name from horai.shard_lease join horai.node on node.incarnation = shard_lease.node where duty = $1"
            assert [row["name"] for row in await connection.fetch(held, duty)] == [does[role]]
        assert len((await api("GET", "/api/v1/scheduler/shards")).json["items"]) == 2 * SHARDS
        # Trace: the fire, the attempts and the callbacks.
        [fire] = await deployment.collector.until(1, "horai.fire", dead["traceId"])
        attempts = await deployment.collector.until(2, "horai.attempt", dead["traceId"])
        assert {fire.resource["service.instance.id"]} == {does["scheduler"]}
        assert {span.resource["service.instance.id"] for span in attempts} == {does["executor"]}
        # Dead letter to retry: the replay succeeds, and its event leaves the outbox.
        replayed = await api("POST", f"/api/v1/dlq/{letter['id']}/replay", **{"Idempotency-Key": "once"})
        assert replayed.status in {200, 201}, replayed.json
        again = await api.until_state(replayed.json["instance"]["id"], "SUCCESS")
        assert again["replayOf"] == dead["id"]
        await _told(receiver, "/events", "horai.instance.dead", "horai.instance.done")
        # Workers: the function runs in the process of the worker.
        put = await api("PUT", "/api/v1/jobs/pack/instances/one", {})
        assert put.status == 201, put.json
        packed = await api.until_state(put.json["instance"]["id"], "SUCCESS")
        ran = "select node.name from horai.instance_history past join horai.node on node.incarnation = past.node where past.id = $1"
        assert [row["name"] for row in await connection.fetch(ran, int(packed["id"]))] == ["packer"]
        # Metrics, logs, alert.
        async with api.session.get(f"{api.base}/metrics") as response:
            assert "trigger_delay_p95" in await response.text()
        lines = [line for line in deployment.lines(does["executor"]) if line.get("instance") == dead["id"]]
        assert {line["trace"] for line in lines} == {dead["idempotencyKey"]}
        await _told(receiver, "/alerts", "horai.alert.firing")


async def _outlets(deployment: Deployment) -> None:
    """A sink of the outbox, and an alert for dead letters."""
    for path in ("/events", "/alerts"):
        deployment.receiver.on(path, Answer(200))
    sink = {"kind": "webhook", "url": deployment.receiver.url("/events")}
    assert (await deployment.api("PUT", "/api/v1/sinks/audit", sink)).status == 201
    channel = {"name": "ops", "kind": "webhook", "url": deployment.receiver.url("/alerts")}
    assert (await deployment.api("POST", "/api/v1/alerts/channels", channel)).status == 201
    rule = {"name": "dead", "kind": "INSTANCE_DEAD", "channels": ["ops"], "groupWait": "0s"}
    assert (await deployment.api("POST", "/api/v1/alerts/rules", rule)).status == 201


async def _told(receiver: Receiver, path: str, *types: str) -> None:
    """Wait until messages of these types have arrived."""

    async def has_all() -> bool:
        return {json.loads(hit.body)["type"] for hit in receiver.hits if hit.path == path} >= set(types)

    await until(has_all)
