"""Traces of workers, and the flags that turn traces on."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from collector import Collector
from terminal import Terminal
from workers import Shop, elsewhere, until

SOURCE = """
import asyncio
import logging
from opentelemetry import trace

from horai import Horai, Retry

app = Horai("shop")
log = logging.getLogger("shop.orders")
tracer = trace.get_tracer("shop")


def work(instance):
    log.warning("working")
    with tracer.start_as_current_span("own work"):
        pass
    return {"traceparent": instance.traceparent}


@app.job
async def at_once(instance):
    return work(instance)


@app.job
async def waits(instance):
    await asyncio.sleep(0.01)
    return work(instance)


@app.job
def in_a_thread(instance):
    return work(instance)


@app.job(isolation="process")
def apart(instance):
    return work(instance)


@app.job(retry=Retry(max=1, base="10ms", jitter="none"))
async def fails(instance):
    raise KeyError("card-4111")


@app.job
async def after(instance):
    return {"current": trace.get_current_span().get_span_context().span_id, "traceparent": instance.traceparent}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "shop", SOURCE)


async def test_functions_get_the_traceparent_and_their_spans_are_below_their_attempts(url: str, shop: Shop) -> None:
    async with Collector() as collector, elsewhere(url) as jobs:
        flags = ("--log-format", "json", "--isolated", "1", "--otlp-endpoint", collector.url)
        with shop.worker(url, *flags) as worker:
            worker.started()
            results: dict[str, Any] = {}
            for name in ("at_once", "waits", "in_a_thread", "apart"):
                handle = await jobs(name).enqueue()
                results[name] = (await handle.result(), handle.id)
            worker.signal(signal.SIGTERM)  # an isolated process exports its spans when it ends
            assert worker.ends() == 0
            own = await collector.until(4, "own work")
            attempts = {span.attributes["horai.job"]: span for span in await collector.until(4, "horai.attempt")}
            lines = [json.loads(line) for line in worker.log.splitlines() if line.startswith("{")]
    said = {line["job"]: line for line in lines if line["event"] == "working"}
    assert sorted(span.parent_id for span in own) == sorted(span.span_id for span in attempts.values())
    for name, (result, id_) in results.items():
        attempt = attempts[name]
        assert result == {"traceparent": attempt.traceparent}
        assert attempt.attributes["messaging.message.id"] == id_
        assert (said[name]["trace_id"], said[name]["span_id"]) == (attempt.trace_id, attempt.span_id)
        assert [span for span in own if span.trace_id == attempt.trace_id], name


async def test_a_failed_function_is_a_failed_span_without_its_message(url: str, shop: Shop) -> None:
    async with Collector() as collector, elsewhere(url) as jobs:
        with shop.worker(url, "--log-format", "json", HORAI_OTLP_ENDPOINT=collector.url) as worker:
            worker.started()
            handle = await jobs("fails").enqueue()
            await until(lambda: "dead letter" in worker.log)
            attempts = await collector.until(2, "horai.attempt")
            lines = [json.loads(line) for line in worker.log.splitlines() if line.startswith("{")]
    assert [span.error for span in attempts] == ["KeyError", "KeyError"]
    (dead,) = [line for line in lines if line["event"] == "dead letter"]
    assert (dead["instance"], dead["trace_id"]) == (handle.id, attempts[0].trace_id)
    assert b"card-4111" not in collector.text


async def test_without_the_flag_functions_get_no_traceparent(url: str, shop: Shop) -> None:
    async with elsewhere(url) as jobs:
        with shop.worker(url) as worker:
            worker.started()
            handle = await jobs("after").enqueue()
            assert await handle.result() == {"current": 0, "traceparent": None}


@pytest.mark.parametrize(
    "endpoint",
    ["collector:4318", "ftp://collector:4318", "http://", "http://collector:99999", "http://[::1", "/v1/traces"],
)
@pytest.mark.parametrize("command", [("up",), ("node", "--database-url", "postgresql://x"), ("worker", "shop:app")])
def test_an_endpoint_that_is_no_address_is_refused(endpoint: str, command: tuple[str, ...]) -> None:
    ended = Terminal()(*command, "--otlp-endpoint", endpoint)

    assert ended.code == 2
    assert "--otlp-endpoint" in ended.err
    assert "must be an address such as http://127.0.0.1:4318" in ended.err


@pytest.mark.parametrize("endpoint", ["http://user:card-4111@collector", "http://collector/?key=card-4111"])
def test_an_endpoint_with_a_secret_is_refused_without_showing_it(endpoint: str) -> None:
    ended = Terminal()("up", HORAI_OTLP_ENDPOINT=endpoint)

    assert ended.code == 2
    assert "OTEL_EXPORTER_OTLP_HEADERS" in ended.err
    assert "card-4111" not in ended.err


@pytest.mark.parametrize("ratio", ["-0.1", "1.1", "nan", "inf", "half", ""])
def test_a_ratio_outside_of_zero_to_one_is_refused(ratio: str) -> None:
    ended = Terminal()("up", "--trace-ratio", ratio)

    assert ended.code == 2
    assert "is not a number from 0 to 1" in ended.err


def test_a_missing_package_is_named_with_the_command_that_installs_it() -> None:
    script = (
        "import sys; sys.modules['opentelemetry.exporter'] = None\n"
        "sys.argv = ['horai', 'up', '--otlp-endpoint', 'http://127.0.0.1:4318']\n"
        "from horai.cli.main import run; run()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "error: Traces need OpenTelemetry, which is not installed.",
        "hint: Install it: pip install 'horai[otel]'.",
    ]
