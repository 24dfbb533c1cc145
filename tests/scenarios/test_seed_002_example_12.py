"""Seed 002 §18, example 12: while the network between two zones jitters, the queue of core work is served without a break."""

import math
from dataclasses import replace
from datetime import timedelta

import harness
import pytest
from harness import FAST, Client
from receiver import Answer, Receiver
from sizes import IS_LONG

from faults.outside import BUSY, until, violations
from faults.proxy import Proxy
from horai.db.pool import Platform

SETTINGS = replace(FAST, in_flight=20, lease=timedelta(seconds=8))
"""Few calls at once, so that core work and reports compete."""
ROUNDS = 30 if IS_LONG else 6
CORE, REPORTS = 20, 400
P95 = timedelta(seconds=2 + BUSY)
WAITS = """
select claimed_at - execute_time as wait, node.name, attempt, state from horai.instance_history past
join horai.job on job.id = past.job_id join horai.node on node.incarnation = past.node where job.name = 'core' order by 1
"""
RUNNING = (
    "select exists (select from horai.instance_live live join horai.job on job.id = live.job_id where job.name = $1)"
)


@pytest.mark.timeout(600 if IS_LONG else 120)
async def test_C59l_the_queue_of_core_work_is_served_while_the_network_between_two_zones_jitters(
    url: str, connection: Platform
) -> None:
    async with (
        Receiver() as receiver,
        Proxy(url).listening() as link,
        harness.node(url, SETTINGS, name="near") as api,
        harness.node(link.url, SETTINGS, name="far"),
    ):
        await declare(api, receiver)
        for number in range(ROUNDS):
            link.set_mode("delay")
            if number % 6 == 1:
                link.break_all()
            if number % 3 == 2:
                link.set_mode("pass")
            batch = await api("POST", "/api/v1/jobs/core/instances/batch", {"items": [{}] * CORE})
            assert batch.status == 200, batch.json

            async def has_ended() -> bool:
                return not await connection.fetchval(RUNNING, "core")

            await until(has_ended, 20, "the core work of the round has ended")
        assert await connection.fetchval(RUNNING, "report"), "else core work had no competition"
        link.set_mode("pass")
        rows = await connection.fetch(WAITS)
    waits = [row["wait"] for row in rows]
    p95 = waits[math.ceil(0.95 * len(waits)) - 1]
    print(f"{len(waits)} core instances: p95 {p95}, worst {waits[-1]}", flush=True)
    assert len(waits) == ROUNDS * CORE
    assert {row["state"] for row in rows} == {2}
    assert p95 < P95
    assert {row["name"] for row in rows} == {"near", "far"}, "both zones serve the queue"
    calls = [hit.headers["idempotency-key"] for hit in receiver.hits if hit.path == "/core"]
    assert len(set(calls)) == len(waits)
    assert await violations(connection) == []


async def declare(api: Client, receiver: Receiver) -> None:
    """Core work, and slow reports of low priority that would fill all calls."""
    receiver.on("/core", Answer(200))
    receiver.on("/report", Answer(200, delay=0.5))
    for name, priority in (("core", "core"), ("report", "low")):
        target = {"type": "http", "url": receiver.url(f"/{name}")}
        made = await api("POST", "/api/v1/jobs", {"name": name, "queue": name, "priority": priority, "target": target})
        assert made.status == 201, made.json
    made = await api("POST", "/api/v1/jobs/report/instances/batch", {"items": [{}] * REPORTS})
    assert made.status == 200, made.json
