"""Kinds of work by the command line: one-off, delayed and periodic. Backfills are in test_backfills_command.py."""

import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from harness import HoraiProcess
from terminal import Terminal

SECOND = timedelta(seconds=1)


def create(horai: Terminal, server: HoraiProcess, name: str, *when: str) -> Any:
    made = horai("jobs", "create", name, *when, "--url", f"{server.base}/healthz", "--method", "GET", "--json")
    assert made.code == 0, made.err
    return made.json


def done(horai: Terminal, job: str, count: int = 1) -> list[Any]:
    """Wait until so many instances of the job have succeeded; return all its instances, newest fire time first."""
    deadline = time.monotonic() + 20
    while len(horai("instances", "list", "--job", job, "--state", "done", "--json").json["items"]) < count:
        assert time.monotonic() < deadline, horai("instances", "list", "--job", job).out
        time.sleep(0.05)
    return horai("instances", "list", "--job", job, "--json").json["items"]


def lateness(instance: Any) -> timedelta:
    return datetime.fromisoformat(instance["startedAt"]) - datetime.fromisoformat(instance["executeTime"])


def test_C1e_F6b_a_job_created_for_a_time_runs_once_at_that_time(horai: Terminal, server: HoraiProcess) -> None:
    assert horai("health").code == 0  # the first command takes seconds
    at = datetime.now(UTC).replace(microsecond=0) + 2 * SECOND
    create(horai, server, "once-at", "--at", at.isoformat())

    (ran,) = done(horai, "once-at")

    assert (ran["state"], datetime.fromisoformat(ran["executeTime"])) == ("SUCCESS", at)
    assert timedelta(0) <= lateness(ran) < 3 * SECOND


def test_C1f_a_job_created_with_a_delay_runs_once_after_it(horai: Terminal, server: HoraiProcess) -> None:
    made = create(horai, server, "once-after", "--delay", "300ms")

    (ran,) = done(horai, "once-after")

    assert ran["state"] == "SUCCESS"
    waited = datetime.fromisoformat(ran["startedAt"]) - datetime.fromisoformat(made["createdAt"])
    assert timedelta(milliseconds=290) <= waited < 3 * SECOND


def test_C1g_a_job_created_with_an_interval_runs_at_each_of_its_fire_times(
    horai: Terminal, server: HoraiProcess
) -> None:
    create(horai, server, "each-second", "--every", "1s")

    made = done(horai, "each-second", 2)
    assert horai("jobs", "delete", "each-second", "--yes").code == 0

    fires = [datetime.fromisoformat(instance["fireTime"]) for instance in made]
    assert {later - earlier for later, earlier in pairwise(fires)} == {SECOND}
    ran = [instance for instance in made if instance["state"] == "SUCCESS"]
    assert all(timedelta(0) <= lateness(instance) < 3 * SECOND for instance in ran)
