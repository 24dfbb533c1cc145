"""`/metrics` of a running server, its dashboard and its alert rules."""

import json
import os
import re
from pathlib import Path
from typing import Any

import harness
from harness import Client
from keys import created, holder, holding
from prometheus_client.parser import text_string_to_metric_families
from receiver import HOLD, Answer, Receiver
from rows import until

from horai.core.health import EngineHealth
from horai.core.run_totals import SECONDS
from horai.core.shards import Role

ROOT = Path(__file__).parents[3]
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


async def scraped(api: Client, **headers: str) -> Samples:
    """Return the samples by name and labels, as a Prometheus reads them."""
    async with api.session.get(f"{api.base}/metrics", headers=headers) as response:
        assert response.status == 200
        assert response.headers["content-type"].startswith("text/plain")
        families = text_string_to_metric_families(await response.text())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


async def run(api: Client, name: str, *states: str) -> None:
    made = await api("POST", f"/api/v1/jobs/{name}/trigger", Idempotency_Key=os.urandom(8).hex())
    await api.until_state(made.json["instance"]["id"], *states)


async def test_F3_the_four_figures_of_the_thresholds_have_their_names_and_follow_the_attempts(url: str) -> None:
    async with Receiver() as receiver, harness.node(url) as api:
        receiver.on("/good", *[Answer(200)] * 9)
        receiver.on("/bad", *[Answer(400)] * 9)
        for name in ("good", "bad"):
            target = {"type": "http", "url": receiver.url(f"/{name}")}
            assert (await api("POST", "/api/v1/jobs", {"name": name, "target": target})).status == 201
        before = await scraped(api)
        assert before["trigger_delay_p95", ()] == 0
        assert before["run_success_rate_10m", ()] == 1
        assert before["retry_backlog", ()] == before["dlq_growth_rate", ()] == 0
        for _ in range(3):
            await run(api, "good", "SUCCESS")
        await run(api, "bad", "DEAD")
        after = await scraped(api)
        assert 0 < after["trigger_delay_p95", ()] < 2000
        assert after["run_success_rate_10m", ()] == 0.75
        assert after["dlq_growth_rate", ()] == 1
        assert after["horai_attempts_total", (("outcome", "SUCCESS"),)] == 3
        assert after["horai_attempts_total", (("outcome", "DEAD"),)] == 1
        assert after["horai_trigger_delay_seconds_count", ()] == 4
        assert after["horai_run_duration_seconds_count", ()] == 4
        assert after["horai_mode", (("mode", "NORMAL"),)] == 1
        assert after["horai_lease_held", ()] == after["horai_nodes", ()] == 1


async def test_the_depth_of_queues_and_the_wait_for_a_limit_are_no_trigger_delay(url: str) -> None:
    async with Receiver() as receiver, harness.node(url) as api:
        receiver.on("/hook", *[Answer(200)] * 9)
        body = {"name": "slow", "queue": "narrow", "target": {"type": "http", "url": receiver.url("/hook")}}
        assert (await api("POST", "/api/v1/jobs", body)).status == 201
        assert (await api("PUT", "/api/v1/queues/narrow", {"paused": True})).status == 200
        made = await api("POST", "/api/v1/jobs/slow/trigger", Idempotency_Key="1")
        instance = made.json["instance"]["id"]

        async def has_waited() -> bool:
            oldest = (await scraped(api))["horai_queue_oldest_wait_seconds", (("priority", "normal"),)]
            return oldest > 1.5  # a process reads changed limits at most once a second

        await until(has_waited)
        assert (await scraped(api))["horai_queue_depth", (("priority", "normal"),)] == 1
        assert (await api("PUT", "/api/v1/queues/narrow", {"paused": False})).status == 200
        await api.until_state(instance, "SUCCESS")
        after = await scraped(api)
        assert after["horai_queue_depth", (("priority", "normal"),)] == 0
        assert after["horai_limit_wait_seconds_count", ()] == 1
        assert after["horai_limit_wait_seconds_sum", ()] > 1.4
        assert after["horai_trigger_delay_seconds_sum", ()] < 1.0


async def test_the_desired_dispatchers_count_nodes_with_the_role_executor_and_the_request_of_the_governor(
    url: str,
) -> None:
    async with (
        Receiver() as receiver,
        harness.node(url, roles=frozenset({Role.api, Role.scheduler}), name="front") as api,
        harness.node(url, roles=frozenset({Role.executor}), name="first", in_flight=10),
        harness.node(url, roles=frozenset({Role.executor}), name="second", in_flight=10),
    ):
        receiver.on("/slow", HOLD)
        target = {"type": "http", "url": receiver.url("/slow")}
        assert (await api("POST", "/api/v1/jobs", {"name": "slow", "target": target, "timeout": "60s"})).status == 201
        assert (await scraped(api))["desired_dispatchers", ()] == 1
        for number in range(32):  # one of each shard
            await api("POST", "/api/v1/jobs/slow/trigger", Idempotency_Key=str(number))

        async def desired(count: int) -> bool:
            return (await scraped(api))["desired_dispatchers", ()] == count

        await until(lambda: desired(3))  # 20 calls fill both nodes, and one is full with 7 of its 10
        receiver.let_go()
        await until(lambda: desired(1))
        forced = {"mode": "SHED_LOW", "state": "ON"}
        assert (await api("POST", "/api/v1/scheduler/mode", forced)).status == 200
        await until(lambda: desired(3))  # two dispatchers and half as many again; the node with the API is none


async def test_metrics_need_the_role_of_the_platform_once_there_are_keys(url: str) -> None:
    async with harness.node(url) as api:
        root = holding(api, (await created(api, "platform-admin"))["key"])
        admin = await holder(root, "admin", "default")
        assert (await api("GET", "/metrics")).status == 401
        assert (await admin("GET", "/metrics")).status == 403
        assert await scraped(api, Authorization=f"Bearer {root.key}")


async def test_no_label_has_a_value_that_users_choose(url: str) -> None:
    async with harness.node(url) as api:
        body = {"name": "unmistakable", "queue": "unmistakable-queue", "tags": ["unmistakable-tag"]}
        assert (await api("POST", "/api/v1/jobs", body)).status == 201
        assert "unmistakable" not in str(await scraped(api))


async def test_the_dashboard_and_the_alert_rules_name_only_metrics_that_exist(url: str) -> None:
    async with harness.node(url) as api:
        known = {name for name, _ in await scraped(api)}
    dashboard: Any = json.loads((ROOT / "deploy/grafana/horai.json").read_text())
    texts = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    rules = (ROOT / "deploy/prometheus/horai.rules.yml").read_text()
    texts += re.findall(r"expr: (.+)", rules)
    named = {
        name for text in texts for name in re.findall(r"\b(?:horai_\w+|\w+_p95|\w+_10m|retry_backlog|dlq_\w+)\b", text)
    }
    assert len(texts) > 20
    assert named <= known, named - known


def test_delays_keep_their_class_in_the_histogram_that_is_shown() -> None:
    health = EngineHealth()
    health.observe_delays(0.0, [1, 1, 1], [0.001, 1.5, 100_000.0])
    counts = dict(zip([*SECONDS, "more"], health.totals.delays.counts, strict=True))
    assert {bound: count for bound, count in counts.items() if count} == {0.005: 1, 2.0: 1, "more": 1}
    assert health.totals.delays.total == 100_001.501
