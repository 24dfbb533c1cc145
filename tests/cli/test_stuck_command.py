"""`horai stuck`, against a server with a run that hangs and a workflow run that is blocked."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from databases import superuser
from harness import HoraiProcess
from long_runs import begun, past
from receiver import HANG, Receiver
from terminal import Terminal

from horai.core.stuck import SAMPLES


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    """The event loop of the target that hangs."""
    with asyncio.Runner() as running:
        yield running


def until(look: Callable[[], Any]) -> Any:
    """Return what `look` finds, once it finds something."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if found := look():
            return found
    raise AssertionError(look)


async def make_stuck(server: HoraiProcess, job: str, instance: str) -> None:
    """Give the job a past of short runs, and let its run have begun an hour ago."""
    url = Terminal()("db", "url", "--admin", "--data-dir", str(server.data_dir)).out.strip()
    connection = await superuser(url)
    await past(connection, int(job), SAMPLES, timedelta(seconds=1))
    await begun(connection, int(instance), timedelta(hours=1))
    await connection.close()


def test_a_run_that_hangs_and_the_queue_that_it_clogs_are_listed(
    horai: Terminal, server: HoraiProcess, runner: asyncio.Runner
) -> None:
    receiver = runner.run(Receiver().__aenter__())
    receiver.on("/hang", HANG)
    horai("queues", "set", "narrow", "--max-concurrency", "1")
    created = ("jobs", "create", "hangs", "--url", receiver.url("/hang"), "--queue", "narrow", "--timeout", "60s")
    job = horai(*created, "--json").json["id"]
    instance = horai("jobs", "trigger", "hangs", "--json").json["instance"]["id"]
    until(lambda: horai("instances", "show", instance, "--json").json["state"] == "RUNNING")
    runner.run(make_stuck(server, job, instance))

    shown = horai("stuck", "runs").out
    clogged = horai("stuck", "queues").out
    queue = horai("queues", "show", "narrow").out
    horai("instances", "cancel", instance)
    runner.run(receiver.__aexit__(None, None, None))

    assert [instance, "hangs", "narrow"] in [line.split()[:3] for line in shown.splitlines()]
    assert ["narrow", "1", "0"] in [line.split()[:3] for line in clogged.splitlines()]
    assert clogged.splitlines()[-1].split()[-1] == instance
    assert ["held", "by", instance] in [line.split() for line in queue.splitlines()]


def test_a_blocked_workflow_run_is_listed_and_shown_with_its_root_cause(horai: Terminal, server: HoraiProcess) -> None:
    for name, path in (("breaks", "api/v1/no-such-page"), ("waits", "healthz")):
        horai("jobs", "create", name, "--url", f"{server.base}/{path}", "--method", "GET")
    nodes = [{"name": "breaks"}, {"name": "waits", "after": ["breaks"]}]
    horai("workflows", "create", "-f", "-", stdin=json.dumps({"name": "chain", "nodes": nodes}))
    run = horai("workflows", "trigger", "chain", "--json").json["run"]["id"]
    found = until(lambda: [one for one in horai("stuck", "workflows", "--json").json["items"] if one["id"] == run])

    listed = horai("stuck", "workflows").out
    shown = horai("workflows", "run", "chain", run).out

    dead = found[0]["rootCauses"][0]["instanceId"]
    assert f"breaks (instance {dead}): HTTP_404" in listed
    assert f"breaks (instance {dead}): HTTP_404" in shown
    assert f"replay the dead letter of instance {dead}" in shown
