"""Traces of real processes: from the API call over fire, claim and attempts to the callback, at a real collector."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from collector import Collector, Span
from databases import Superuser, as_node
from harness import Client, NodeProcess
from prometheus_client.parser import text_string_to_metric_families
from receiver import Answer, Receiver
from rows import until

CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
SECRET = "card-4111"
QUICK = {"maxRetry": 3, "base": "10ms", "jitter": "none"}


@dataclass(frozen=True, slots=True)
class Traced:
    """A node in its own process, with its collector and its target."""

    process: NodeProcess
    api: Client
    collector: Collector
    receiver: Receiver

    def lines(self) -> list[dict[str, Any]]:
        """The log lines of the process, which are JSON."""
        lines = self.process.log.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]

    async def job(self, name: str, *answers: Answer, **more: Any) -> str:
        """Create a job that calls the receiver; return its id."""
        self.receiver.on(f"/{name}", *answers)
        headers = {"X-Card": SECRET, "TraceParent": CALLER, "tracestate": "a=b"}
        target = {"type": "http", "url": self.receiver.url(f"/{name}?token={SECRET}"), "headers": headers}
        body = {"name": name, "queue": "mail", "priority": "high", "retry": QUICK, "target": target, **more}
        made = await self.api("POST", "/api/v1/jobs", body)
        assert made.status == 201, made.json
        return made.json["id"]

    async def metric(self, name: str) -> float:
        async with self.api.session.get(f"{self.api.base}/metrics") as response:
            families = text_string_to_metric_families(await response.text())
        return {sample.name: sample.value for family in families for sample in family.samples}[name]


@asynccontextmanager
async def traced(place: Path, url: str, *flags: str, endpoint: str | None = None) -> AsyncGenerator[Traced]:
    """Run a node that sends its traces to `endpoint`, or else to the collector."""
    async with Collector() as collector, Receiver() as receiver, aiohttp.ClientSession() as session:
        process = NodeProcess(
            place / f"node-{os.urandom(4).hex()}", url,
            *("--callback-allow", "127.0.0.0/8", "--log-format", "json", *flags),
            *(("--otlp-endpoint", endpoint or collector.url) if endpoint != "" else ()),
        )  # fmt: skip
        process.start()
        try:
            yield Traced(process, Client(process.base, session), collector, receiver)
        finally:
            process.stop()


def ids(span: Span) -> tuple[str, str]:
    return span.trace_id, span.span_id


async def test_a_trace_follows_an_idem_key_from_the_api_call_to_the_callbacks(short_place: Path, url: str) -> None:
    async with traced(short_place, url) as node:
        collector, receiver = node.collector, node.receiver
        await node.job("mail", Answer(503, body=SECRET.encode()), Answer(200))
        put = await node.api("PUT", f"/api/v1/jobs/mail/instances/{SECRET}", {"payload": SECRET}, traceparent=CALLER)
        id_, idem = put.json["instance"]["id"], put.json["instance"]["idempotencyKey"]
        shown = await node.api.until_state(id_, "SUCCESS")
        trace = shown["traceId"]

        (request,) = await collector.until(1, "horai.api PUT /api/v1/jobs/{job}/instances/{key}")
        (fire,) = await collector.until(1, "horai.fire", trace)
        claims = await collector.until(2, "horai.claim", trace)
        attempts = await collector.until(2, "horai.attempt", trace)
        callbacks = await collector.until(2, "horai.callback", trace)
        settles = await collector.until(2, "horai.settle", trace)

        # The API call continues the trace of its caller, and is linked with the trace of the instance in both directions.
        assert (request.trace_id, request.parent_id) == (CALLER[3:35], CALLER[36:52])
        assert request.links == (ids(fire),)
        assert fire.links == (ids(request),)
        assert request.attributes["http.response.status_code"] == 201
        assert (fire.parent_id, trace) == ("", fire.trace_id)
        # Claims, attempts and settlements are below the fire, each callback is below its attempt.
        assert {span.parent_id for span in (*claims, *attempts, *settles)} == {fire.span_id}
        assert [span.parent_id for span in callbacks] == [span.span_id for span in attempts]
        # The target has received the spans of the callbacks, once each.
        hits = await receiver.wait_for(2)
        assert [hit.headers["traceparent"] for hit in hits] == [span.traceparent for span in callbacks]
        assert [hit.headers["idempotency-key"] for hit in hits] == [idem, idem]
        assert "tracestate" not in hits[0].headers
        # Retries are told apart by number, fence and outcome, and belong to one idem_key.
        assert [span.attributes["horai.attempt"] for span in attempts] == [1, 2]
        assert {span.attributes["horai.idempotency_key"] for span in attempts} == {idem}
        assert [span.attributes["horai.outcome"] for span in attempts] == ["FAIL", "SUCCESS"]
        assert [span.error for span in attempts] == [span.error for span in callbacks] == ["HTTP_503", None]
        assert [span.attributes["http.response.status_code"] for span in callbacks] == [503, 200]
        assert [span.attributes["horai.state"] for span in settles] == ["FAIL", "SUCCESS"]
        fences = [span.attributes["horai.fence"] for span in attempts]
        assert fences[0] < fences[1]
        for spans in (claims, settles):
            assert [span.attributes["horai.fence"] for span in spans] == fences
        for span in (*claims, *attempts):
            assert span.attributes["messaging.system"] == "horai"
            assert span.attributes["messaging.message.id"] == id_
            assert (span.attributes["messaging.destination.name"], span.attributes["horai.priority"]) == (
                "mail",
                "high",
            )
            assert span.resource["service.name"] == "horai"
            assert span.resource["service.instance.id"] == node.process.data_dir.name
        for claim, attempt, callback, settle in zip(claims, attempts, callbacks, settles, strict=True):
            assert claim.ended <= attempt.begun <= callback.begun <= callback.ended <= attempt.ended <= settle.ended
        # REST shows trace and spans, and the log names the trace.
        assert [(each["traceId"], each["spanId"]) for each in shown["attempts"]] == [ids(span) for span in attempts]
        (failed,) = [line for line in node.lines() if line["event"] == "attempt failed"]
        assert (failed["trace_id"], failed["instance"], failed["trace"]) == (trace, id_, idem)
        assert SECRET.encode() not in collector.text, (
            "no span may have a payload, a key, a header, a query or an answer"
        )


async def test_slots_triggers_batches_and_repeats_have_one_fire_each(short_place: Path, url: str) -> None:
    async with traced(short_place, url) as node:
        await node.job("ticks", Answer(200), every="1s")
        fires = await node.collector.until(2, "horai.fire")
        (attempt,) = await node.collector.until(1, "horai.attempt", fires[0].trace_id)
        assert attempt.parent_id == fires[0].span_id
        assert (fires[0].links, fires[0].parent_id) == ((), "")
        assert attempt.attributes["messaging.message.id"] == fires[0].attributes["messaging.message.id"]
        assert (await node.api("POST", "/api/v1/jobs/ticks/pause")).status == 200

        await node.job("calls", Answer(200))
        made = await node.api("POST", "/api/v1/jobs/calls/trigger", Idempotency_Key="1")
        repeated = await node.api("POST", "/api/v1/jobs/calls/trigger", Idempotency_Key="1")
        assert (made.status, repeated.status) == (201, 409)
        items = [{"key": "a"}, {"key": "b"}, {}]
        batch = await node.api("POST", "/api/v1/jobs/calls/instances/batch", {"items": items}, Idempotency_Key="2")
        again = await node.api("POST", "/api/v1/jobs/calls/instances/batch", {"items": items}, Idempotency_Key="2")
        assert again.json == batch.json
        later = {"executeTime": "2999-01-01T00:00:00Z"}
        moved = [await node.api("PUT", "/api/v1/jobs/calls/instances/c", {**later, "version": n}) for n in (1, 2)]
        assert [put.json["decision"] for put in moved] == ["INSERTED", "UPDATED"]
        puts = await node.collector.until(2, "horai.api PUT /api/v1/jobs/{job}/instances/{key}")
        assert [len(put.links) for put in puts] == [1, 0]
        wanted = [made.json["instance"]["id"], *(item["instanceId"] for item in batch.json["items"])]
        for id_ in wanted:
            await node.api.until_state(id_, "SUCCESS")
        calls = await node.collector.until(2, "horai.api POST /api/v1/jobs/{job}/instances/batch")
        assert sorted(len(call.links) for call in calls) == [0, 3]
        traces = [(await node.api("GET", f"/api/v1/instances/{id_}")).json["traceId"] for id_ in wanted]
        for trace in traces:
            await node.collector.until(1, "horai.settle", trace)
            assert len(node.collector.named("horai.fire", trace)) == 1
        spans = node.collector.spans
        assert len({ids(span) for span in spans}) == len(spans), "no span id is used twice"


async def test_a_hostile_traceparent_begins_a_new_trace(short_place: Path, url: str) -> None:
    hostile = ("00-" + "0" * 32 + "-00f067aa0ba902b7-01", "ff" + CALLER[2:], CALLER.upper(), CALLER + "-x", "é" * 50, "0" * 9_000)  # fmt: skip
    async with traced(short_place, url) as node:
        for text in hostile:
            assert (await node.api("GET", "/api/v1/queues", traceparent=text)).status == 200

        requests = await node.collector.until(len(hostile), "horai.api GET /api/v1/queues")
        assert {request.parent_id for request in requests} == {""}
        assert len({request.trace_id for request in requests} - {CALLER[3:35]}) == len(hostile)


async def test_two_traceparents_an_unrecorded_caller_and_unknown_paths_are_handled(short_place: Path, url: str) -> None:
    async with traced(short_place, url) as node:
        base = node.api.base
        both = [("traceparent", CALLER), ("traceparent", CALLER[:-4] + "ff-01")]
        async with node.api.session.get(f"{base}/api/v1/queues", headers=both) as response:
            assert response.status == 200
        (request,) = await node.collector.until(1, "horai.api GET /api/v1/queues")
        assert request.parent_id == ""
        assert (await node.api("GET", "/api/v1/queues", traceparent=CALLER[:-2] + "00")).status == 200
        assert (await node.api("GET", f"/api/v1/nothing/{SECRET}")).status == 404
        assert (await node.api("GET", "/healthz")).status == 200
        (unknown,) = await node.collector.until(1, "horai.api GET")
        assert "http.route" not in unknown.attributes
        assert len(node.collector.named("horai.api GET /api/v1/queues")) == 1, "the caller does not record its trace"
        assert SECRET.encode() not in node.collector.text
        assert [span.name for span in node.collector.spans if "health" in span.name] == []


async def test_the_report_of_an_outcome_is_linked_with_the_attempt(short_place: Path, url: str) -> None:
    async with traced(short_place, url) as node:
        await node.job("later", Answer(202), timeout="30s")
        made = await node.api("POST", "/api/v1/jobs/later/trigger", Idempotency_Key="1")
        id_ = made.json["instance"]["id"]
        (hit,) = await node.receiver.wait_for(1)
        (attempt,) = await node.collector.until(1, "horai.attempt")
        report = {"fence": int(hit.headers["horai-fence"]), "result": "SUCCESS"}
        sent = {"traceparent": hit.headers["traceparent"]}
        assert (await node.api("POST", f"/api/v1/instances/{id_}/outcome", report, **sent)).status == 200

        (request,) = await node.collector.until(1, "horai.api POST /api/v1/instances/{instance}/outcome")
        (callback,) = node.collector.named("horai.callback")
        assert attempt.attributes["horai.outcome"] == "ACCEPTED"
        assert request.links == (ids(attempt),)
        assert (request.trace_id, request.parent_id) == ids(callback)


async def test_the_log_line_of_a_refused_request_names_its_trace(
    short_place: Path, url: str, connection: Superuser
) -> None:
    async with traced(short_place, url) as node:
        async with connection.transaction():
            await connection.execute("lock table horai.queue in access exclusive mode")
            assert (await node.api("GET", "/api/v1/queues", traceparent=CALLER)).status == 503
        (request,) = await node.collector.until(1, "horai.api GET /api/v1/queues")
        (line,) = [line for line in node.lines() if line["event"] == "request refused"]
        assert line["trace_id"] == request.trace_id == CALLER[3:35]
        assert request.error == "503"


async def test_the_ratio_records_no_span_and_still_sends_the_header(short_place: Path, url: str) -> None:
    async with traced(short_place, url, "--trace-ratio", "0") as node:
        await node.job("mail", Answer(200))
        made = await node.api("POST", "/api/v1/jobs/mail/trigger", Idempotency_Key="1")
        shown = await node.api.until_state(made.json["instance"]["id"], "SUCCESS")
        (hit,) = await node.receiver.wait_for(1)
        node.process.stop()
        assert hit.headers["traceparent"][3:35] == shown["traceId"]
        assert hit.headers["traceparent"].endswith("-00")
        assert node.collector.spans == []


async def test_a_stop_exports_the_last_spans(short_place: Path, url: str) -> None:
    async with traced(short_place, url) as node:
        await node.job("mail", Answer(200))
        made = await node.api("POST", "/api/v1/jobs/mail/trigger", Idempotency_Key="1")
        trace = (await node.api.until_state(made.json["instance"]["id"], "SUCCESS"))["traceId"]
        assert await asyncio.to_thread(node.process.stop) == 0
        assert len(node.collector.named("horai.settle", trace)) == 1


async def test_work_goes_on_without_a_collector_and_drops_are_counted(short_place: Path, url: str) -> None:
    async with traced(short_place, url, "--grace", "1s", endpoint="http://127.0.0.1:9") as node:
        await node.job("mail", *[Answer(200)] * 20)
        for number in range(10):
            made = await node.api("POST", "/api/v1/jobs/mail/trigger", Idempotency_Key=str(number))
            await node.api.until_state(made.json["instance"]["id"], "SUCCESS")

        async def is_dropped() -> bool:
            return await node.metric("horai_trace_spans_dropped_total") >= 10

        await until(is_dropped)
        assert await node.metric("horai_trace_spans_exported_total") == 0
        assert await asyncio.to_thread(node.process.stop) == 0
        assert [line for line in node.lines() if line["event"].startswith("spans were")]


async def test_without_the_flag_no_header_is_sent_and_no_trace_id_is_shown(short_place: Path, url: str) -> None:
    async with traced(short_place, url, endpoint="") as node:
        node.receiver.on("/mail", Answer(503), Answer(200))
        target = {"type": "http", "url": node.receiver.url("/mail")}
        assert (
            await node.api("POST", "/api/v1/jobs", {"name": "mail", "target": target, "retry": QUICK})
        ).status == 201
        made = await node.api("POST", "/api/v1/jobs/mail/trigger", Idempotency_Key="1", traceparent=CALLER)
        shown = await node.api.until_state(made.json["instance"]["id"], "SUCCESS")
        hits = await node.receiver.wait_for(2)
        assert [hit for hit in hits if "traceparent" in hit.headers] == []
        assert "traceId" not in shown
        assert "traceId" not in shown["attempts"][0]
        assert [line for line in node.lines() if "trace_id" in line] == []
        assert node.collector.requests == 0


RUN = """
import asyncio, sys
from pathlib import Path
from horai.core.shards import EVERY_ROLE, Role
from horai.engine_node import NodeSettings, run
import horai.cli.main, horai.sdk.worker, horai.isolation.service

async def serve(run, roles) -> None:
    stop = asyncio.Event()
    settings = NodeSettings(Path("/nonexistent"), port=0, database_url=sys.argv[1], roles=roles)
    await run(settings, stop, lambda _: stop.set())
"""
WITHOUT = f"""{RUN}
asyncio.run(serve(run, EVERY_ROLE - {{Role.api}}))
print(sorted(name for name in sys.modules if name.startswith(("opentelemetry", "google"))))
import horai.node
asyncio.run(serve(horai.node.run, EVERY_ROLE))
heavy = ("opentelemetry.sdk", "opentelemetry.exporter", "opentelemetry.proto", "google", "horai.operations.otlp")
print(sorted(name for name in sys.modules if name.startswith(heavy)))
"""
FOREIGN = f"""{RUN}
import urllib.request
import horai.node
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)

async def ask() -> None:
    stop, address = asyncio.Event(), asyncio.get_running_loop().create_future()
    settings = NodeSettings(Path("/nonexistent"), port=0, database_url=sys.argv[1])
    running = asyncio.create_task(horai.node.run(settings, stop, address.set_result))
    url = await address + "/api/v1/instances?key=secret"
    print((await asyncio.to_thread(urllib.request.urlopen, url)).status)
    stop.set()
    await running

asyncio.run(ask())
print(len(exporter.get_finished_spans()))
"""


async def printed(script: str, url: str) -> list[str]:
    """The lines that a script prints, without those of the log."""
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", script, as_node(url)],
        capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if not line.startswith("20") or line.isdecimal()]


async def test_a_process_without_the_flag_imports_nothing_of_opentelemetry(url: str) -> None:
    """FastAPI imports its API by itself; a process that serves none imports nothing at all."""
    assert await printed(WITHOUT, url) == ["[]", "[]"]


async def test_a_provider_of_other_code_gets_no_span_of_a_request(url: str) -> None:
    assert await printed(FOREIGN, url) == ["200", "0"]
