"""One idem_key through every box of the architecture: next fire, slot, queue, shard, worker, retry, dead letter, and out.

The same instance is in the trace, the log, the metrics, two sinks and an alert.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from receiver import Answer, Receiver
from rows import until

from horai.core.limits import SHARDS
from scenarios.test_traces import Traced, traced

TIMES = {"base": "10ms", "cap": "20ms", "jitter": "none", "maxRetry": 1}


def bodies(receiver: Receiver, path: str) -> list[dict[str, Any]]:
    return [json.loads(hit.body) for hit in receiver.hits if hit.path == path]


async def outlets(node: Traced) -> None:
    """Two sinks with positions of their own, and an alert by webhook."""
    for path in ("/audit", "/monitoring", "/alerts"):
        node.receiver.on(path, Answer(200))
    for name in ("audit", "monitoring"):
        sink = {"kind": "webhook", "url": node.receiver.url(f"/{name}")}
        assert (await node.api("PUT", f"/api/v1/sinks/{name}", sink)).status == 201
    channel = {"name": "ops", "kind": "webhook", "url": node.receiver.url("/alerts")}
    made = await node.api("POST", "/api/v1/alerts/channels", channel)
    assert made.status == 201, made.json
    rule = {"name": "dead", "kind": "INSTANCE_DEAD", "channels": ["ops"], "groupWait": "0s"}
    made = await node.api("POST", "/api/v1/alerts/rules", rule)
    assert made.status == 201, made.json


async def test_C25_C64_one_idem_key_is_the_same_in_trace_log_metrics_events_and_alert(
    short_place: Path, url: str
) -> None:
    async with traced(short_place, url) as node:
        await outlets(node)
        job = await node.job("clearing", Answer(503), retry=TIMES, cron="0/2 * * * * ?")
        following = (await node.api("GET", f"/api/v1/jobs/{job}/next?count=3")).json["fires"]

        async def has_died() -> bool:
            found = (await node.api("GET", f"/api/v1/jobs/{job}/instances?state=DEAD&limit=1")).json["items"]
            return bool(found) and len(bodies(node.receiver, "/alerts")) > 0

        await until(has_died)
        assert (await node.api("POST", f"/api/v1/jobs/{job}/pause")).status == 200
        [alert] = bodies(node.receiver, "/alerts")[0]["alerts"][:1]
        found = (await node.api("GET", f"/api/v1/instances/{alert['data']['instance']}")).json
        idem, instance, trace = found["idempotencyKey"], found["id"], found["traceId"]

        # Next fire, slot: the instance is one of the fires that were announced, or follows them in the same rhythm.
        fire_time = datetime.fromisoformat(found["fireTime"])
        first = datetime.fromisoformat(following[0]["fireTime"])
        assert (fire_time - first).total_seconds() % 2 == 0
        assert idem == f"{job}:{int(fire_time.astimezone(UTC).timestamp() * 1000)}"
        # Queue and shard: the node that ran it holds the lease of its shard.
        assert found["queue"] == "mail"
        shards = (await node.api("GET", "/api/v1/scheduler/shards")).json["items"]
        [owner] = {each["node"] for each in shards if each["shard"] == int(instance) % SHARDS}
        # Dispatch, worker, retry, dead letter.
        [fire] = await node.collector.until(1, "horai.fire", trace)
        attempts = await node.collector.until(2, "horai.attempt", trace)
        callbacks = await node.collector.until(2, "horai.callback", trace)
        settles = await node.collector.until(2, "horai.settle", trace)
        assert len(await node.collector.until(2, "horai.claim", trace)) == 2
        assert {span.attributes["horai.idempotency_key"] for span in attempts} == {idem}
        assert [span.attributes["horai.outcome"] for span in attempts] == ["FAIL", "FAIL"]
        assert [span.attributes["horai.state"] for span in settles] == ["FAIL", "DEAD"]
        assert {span.parent_id for span in (*attempts, *settles)} == {fire.span_id}
        assert owner is not None
        calls = [hit for hit in node.receiver.hits if hit.headers.get("idempotency-key") == idem]
        assert [hit.headers["traceparent"] for hit in calls] == [span.traceparent for span in callbacks]
        [letter] = (await node.api("GET", f"/api/v1/dlq?job={job}&limit=500&instance={instance}")).json["items"]
        assert letter["instanceId"] == instance
        # Events: both sinks have the failure and the death of this idem_key, in this order.
        for name in ("/audit", "/monitoring"):

            async def is_told(path: str = name) -> bool:
                return len(told(node, path, idem)) == 2

            await until(is_told)
            assert told(node, name, idem) == ["horai.instance.failed", "horai.instance.dead"]
        # Log: the lines of both failures name the trace and the idem_key.
        lines = [line for line in node.lines() if line.get("instance") == instance and "trace_id" in line]
        assert {(line["trace_id"], line["trace"]) for line in lines} == {(trace, idem)}
        assert len(lines) == 2

        # Metrics: as many attempts as dead letters and failures of all instances. Others run until the pause holds their retries.
        async def is_counted() -> bool:
            everything = (await node.api("GET", f"/api/v1/jobs/{job}/instances?limit=500")).json["items"]
            dead = [each for each in everything if each["state"] == "DEAD"]
            failed = [each for each in everything if each["state"] == "FAIL"]
            outcomes = await attempts_total(node)
            return (outcomes["DEAD"], outcomes["FAIL"]) == (len(dead), len(dead) + len(failed))

        await until(is_counted)
        # Alert: about this instance and its error.
        assert (alert["object"], alert["job"], alert["data"]["errorCode"]) == (instance, "clearing", found["errorCode"])
        # Degradation: the mode in force is in the metrics, and the reason why the next instance of the job waits.
        mode = {"mode": "CORE_ONLY", "state": "ON", "note": "drill"}
        assert (await node.api("POST", "/api/v1/scheduler/mode", mode)).status == 200
        assert (await node.api("POST", f"/api/v1/jobs/{job}/resume")).status == 200
        put = await node.api("PUT", f"/api/v1/jobs/{job}/instances/held", {})
        why = (await node.api("GET", f"/api/v1/instances/{put.json['instance']['id']}/why")).json
        assert "MODE" in json.dumps(why)
        held = (await node.api("GET", f"/api/v1/instances/{put.json['instance']['id']}")).json
        assert (held["state"], held["traceId"] != trace) == ("INIT", True)
        assert 'horai_mode{mode="CORE_ONLY"} 1.0' in await exposition(node)


def told(node: Traced, path: str, idem: str) -> list[str]:
    return [event["type"] for event in bodies(node.receiver, path) if event["data"].get("idemKey") == idem]


async def attempts_total(node: Traced) -> dict[str, int]:
    found = [line for line in (await exposition(node)).splitlines() if line.startswith("horai_attempts_total{")]
    return {line.split('"')[1]: int(float(line.rpartition(" ")[2])) for line in found}


async def exposition(node: Traced) -> str:
    async with node.api.session.get(f"{node.api.base}/metrics") as response:
        return await response.text()
