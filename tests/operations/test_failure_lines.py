"""The lines of failures: what each one says, and how many a process writes."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from structlog.testing import capture_logs

from horai.core.outcome import Bury, RetryAt
from horai.db.claims import Claim
from horai.operations.failure_log import LINES, LINES_PER_JOB, WINDOW, FailureLog, Origin

HELD = Claim(7, 3, 2, 9, 1, 1)
AGAIN = RetryAt(timedelta(seconds=1.5), "HTTP_500", "the target answered 500\nthe body of the answer")
DEAD = Bury("HTTP_404", "the target answered 404\nthe body of the answer", ("unrecoverable",))


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def origin(job: str = "invoice", tenant: str = "default") -> Origin:
    return Origin(tenant, job, "3:0:7", "Traceback …")


def left_out(logs: list[Any]) -> list[Mapping[str, Any]]:
    return [line for line in logs if line["event"] == "failures left out of the log"]


async def test_a_line_names_the_instance_and_only_the_first_line_of_the_message() -> None:
    with capture_logs() as logs:
        FailureLog().note(origin(), HELD, AGAIN)
    assert logs == [
        {
            "event": "attempt failed",
            "log_level": "warning",
            "job": "invoice",
            "tenant": "default",
            "instance": "7",
            "attempt": 2,
            "trace": "3:0:7",
            "code": "HTTP_500",
            "error": "the target answered 500",
            "exception": "Traceback …",
            "retry_in_s": 1.5,
        }
    ]


async def test_a_late_failure_is_no_dead_letter() -> None:
    with capture_logs() as logs:
        FailureLog().note(origin(), HELD, DEAD, is_late=True)
        FailureLog().note(origin(), HELD, DEAD)
    assert [line["log_level"] for line in logs] == ["warning", "error"]


async def test_a_flood_of_one_job_is_bounded_and_counted_and_hides_no_other_job() -> None:
    clock = Clock()
    lines = FailureLog(clock)
    with capture_logs() as logs:
        for _ in range(1_000):
            lines.note(origin(), HELD, AGAIN)
        lines.note(origin("receipt"), HELD, AGAIN)
        lines.note(origin(tenant="other"), HELD, AGAIN)
        lines.note(origin(), HELD, DEAD)
        assert len(logs) == LINES_PER_JOB + 3
        clock.now += WINDOW
        lines.note(origin(), HELD, AGAIN)
    (summary,) = left_out(logs)
    assert summary["suppressed"] == 1_000 - LINES_PER_JOB
    assert summary["jobs"] == ["invoice"]
    assert logs[-1]["event"] == "attempt failed"


async def test_a_flood_of_many_jobs_is_bounded_for_the_process() -> None:
    lines = FailureLog(Clock())
    with capture_logs() as logs:
        for number in range(1_000):
            lines.note(origin(f"job-{number}"), HELD, AGAIN)
        assert len(logs) == LINES
        lines.flush()
    assert left_out(logs)[0]["suppressed"] == 1_000 - LINES


async def test_the_end_of_a_flood_is_counted_without_another_failure() -> None:
    lines = FailureLog()
    with capture_logs() as logs:
        for _ in range(LINES_PER_JOB + 5):
            lines.note(origin(), HELD, AGAIN)
        async with asyncio.timeout(10 * WINDOW):
            while not left_out(logs):
                await asyncio.sleep(0.05)
    assert left_out(logs)[0]["suppressed"] == 5
