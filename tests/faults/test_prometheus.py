"""The metrics, the alert rules and the configuration, as a real Prometheus reads them."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from socket import create_server
from typing import Any

import aiohttp
import harness
import pytest
from harness import Client
from keys import created, holding
from receiver import Answer, Receiver
from sizes import IS_LONG

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "prometheus" / "horai.rules.yml"
CONFIGURATION = ROOT / "deploy" / "prometheus" / "prometheus.yml"
MISSING = "prometheus is not installed: apt-get install prometheus"


def program(name: str) -> str:
    """Return the path of a program of the package; without it the test is skipped, and in the long form it fails."""
    found = shutil.which(name)
    if found is None:
        pytest.fail(MISSING) if IS_LONG else pytest.skip(MISSING)
    return found


def promtool(*arguments: str, stdin: bytes = b"") -> str:
    done = subprocess.run([program("promtool"), *arguments], input=stdin, capture_output=True, check=False)
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, said
    return said


def test_promtool_accepts_the_configuration_and_the_alert_rules(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("hk_test")
    written = CONFIGURATION.read_text().replace("/etc/prometheus/horai-key", str(key))
    (tmp_path / "prometheus.yml").write_text(written)
    shutil.copy(RULES, tmp_path)
    assert "SUCCESS" in promtool("check", "config", str(tmp_path / "prometheus.yml"))


async def test_promtool_finds_nothing_to_improve_in_the_metrics_of_a_server(url: str) -> None:
    async with harness.node(url) as api, api.session.get(f"{api.base}/metrics") as response:
        said = promtool("check", "metrics", stdin=await response.read())
    complaints = [line for line in said.splitlines() if not line.startswith(_SEED_NAMES)]
    assert complaints == []


_SEED_NAMES = ("trigger_delay_p95", "run_success_rate_10m", "retry_backlog", "dlq_growth_rate")
"""The names of the thresholds are those of their specification: promtool would have units in them."""


@asynccontextmanager
async def prometheus(place: Path, api: Client, key: str) -> AsyncGenerator[str]:
    """The address of a Prometheus that scrapes the server every second and loads the alert rules."""
    with create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    (place / "key").write_text(key)
    written = CONFIGURATION.read_text().replace("/etc/prometheus/horai-key", str(place / "key"))
    written = written.replace("15s", "1s").replace("127.0.0.1:8470", api.base.removeprefix("http://"))
    (place / "prometheus.yml").write_text(written)
    shutil.copy(RULES, place)
    process = await asyncio.create_subprocess_exec(
        program("prometheus"),
        f"--config.file={place / 'prometheus.yml'}",
        f"--storage.tsdb.path={place / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        await process.wait()


async def value_of(session: aiohttp.ClientSession, base: str, query: str) -> float | None:
    try:
        async with session.get(f"{base}/api/v1/query", params={"query": query}) as response:
            told: Any = await response.json()
    except aiohttp.ClientConnectionError:
        return None
    result = told["data"]["result"]
    return float(result[0]["value"][1]) if result else None


async def test_a_prometheus_scrapes_a_server_with_a_key_and_evaluates_the_rules(url: str, tmp_path: Path) -> None:
    program("prometheus")
    async with Receiver() as receiver, harness.node(url) as api:
        root = holding(api, (await created(api, "platform-admin"))["key"])
        tenant = await created(root, "admin", "default")
        networks = {"quotas": {"callbackNetworks": ["127.0.0.0/8"]}}
        assert (await root("PATCH", "/api/v1/tenants/default", networks)).status == 200
        admin = holding(api, tenant["key"])
        receiver.on("/hook", Answer(200))
        target = {"type": "http", "url": receiver.url("/hook")}
        assert (await admin("POST", "/api/v1/jobs", {"name": "hook", "target": target})).status == 201
        made = await admin("POST", "/api/v1/jobs/hook/trigger", Idempotency_Key=os.urandom(8).hex())
        await admin.until_state(made.json["instance"]["id"], "SUCCESS")
        override = {"mode": "CORE_ONLY", "state": "ON"}
        assert (await root("POST", "/api/v1/scheduler/mode", override)).status == 200
        async with prometheus(tmp_path, api, root.key) as base, asyncio.timeout(60):
            while await value_of(api.session, base, 'horai_attempts_total{outcome="SUCCESS"}') != 1:
                await asyncio.sleep(0.2)
            assert await value_of(api.session, base, "max(run_success_rate_10m)") == 1
            assert (await value_of(api.session, base, "max(trigger_delay_p95)") or 0) > 0
            while await value_of(api.session, base, 'ALERTS{alertname="HoraiMode", mode="CORE_ONLY"}') != 1:
                await asyncio.sleep(0.5)
