"""The program of a task, run here without Ray: what it yields, and how it hears that its claim is over."""

import logging
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import structlog

from horai.core.outcome import FailedRetryable, FailedUnrecoverable, Lost, Outcome, Succeeded
from horai.isolation.frames import Begun, CallEnded, NoteFrame, begin, outcome_of, unpack
from horai.ray_tasks.messages import FROM_TASK
from horai.ray_tasks.task import attempt
from isolation.isolated_calls import call


@pytest.fixture(autouse=True)
def log_as_before() -> Generator[None]:
    """A task writes its log to the standard error of its process, which is that of all tests here."""
    before, root = structlog.get_config(), logging.getLogger()
    handlers, level = [*root.handlers], root.level
    yield
    structlog.configure(**before)
    root.handlers[:] = handlers
    root.setLevel(level)


def told(handler: str, payload: Any = None, timeout: float | None = None, app: str = "ray_app:app") -> Generator[Any]:
    """The messages of a task, one by one."""
    for message in attempt(app, begin(call(handler, payload), handler), timeout):
        yield unpack(FROM_TASK, message)


def ended(handler: str, *arguments: Any, **more: Any) -> Outcome | Lost:
    """The outcome of a task that has begun."""
    begun, *_, answer = told(handler, *arguments, **more)
    assert begun == Begun()
    assert isinstance(answer, CallEnded)
    return outcome_of(answer)


def test_a_task_returns_the_result_of_its_function():
    assert ended("square", 12) == Succeeded("144")


def test_a_task_reports_the_notes_of_its_function_in_their_order():
    notes = [(each.progress, each.message) for each in told("tells") if isinstance(each, NoteFrame)]

    assert notes[0] == (None, "begins")
    assert notes[-1] == (1.0, "done")
    assert [progress for progress, _ in notes[1:]] == sorted(progress or 0 for progress, _ in notes[1:])


def test_an_error_that_cannot_be_pickled_arrives_with_its_name_and_text():
    failed = ended("raises", "retryable")

    assert isinstance(failed, FailedRetryable)
    assert failed.code == "Unpicklable"
    assert "no luck" in failed.message


def test_unrecoverable_errors_and_wrong_payloads_are_not_retried():
    spent, misfit = ended("raises", "never"), ended("square", "three")

    assert isinstance(spent, FailedUnrecoverable)
    assert spent.tags == ("own",)
    assert isinstance(misfit, FailedUnrecoverable)
    assert misfit.code == "PAYLOAD_INVALID"


def test_a_timeout_ends_an_async_function():
    timed_out = ended("sleeps", timeout=0.1)

    assert isinstance(timed_out, FailedRetryable)
    assert timed_out.code == "TIMEOUT"


def test_a_task_is_told_of_its_timeout_and_ends_with_its_function(tmp_path: Path):
    timed_out = ended("waits", str(tmp_path / "seen"), timeout=0.1)

    assert isinstance(timed_out, FailedRetryable)
    assert timed_out.code == "TIMEOUT"
    assert (tmp_path / "seen").read_text() == "cancelled"


def test_a_cancelled_task_tells_its_function_and_reports_nothing_more(tmp_path: Path):
    before = signal.getsignal(signal.SIGINT)
    task = told("waits", str(tmp_path / "seen"))
    assert next(task) == Begun()
    assert isinstance(next(task), NoteFrame)

    signal.raise_signal(signal.SIGINT)  # as `ray.cancel` does

    assert list(task) == []
    assert (tmp_path / "seen").read_text() == "cancelled"
    assert signal.getsignal(signal.SIGINT) is before


def test_a_task_that_is_cancelled_before_it_begins_runs_nothing(tmp_path: Path):
    task = told("needs_gpu", str(tmp_path / "seen"))
    assert next(task) == Begun()

    signal.raise_signal(signal.SIGINT)

    assert list(task) == []
    assert not (tmp_path / "seen").exists()


@pytest.mark.parametrize(
    ("app", "handler", "code", "says"),
    [
        ("ray_app:app", "gone", "HANDLER_MISSING", "no such job"),
        ("ray_gone:app", "square", "RAY_TASK_FAILED", "No module named 'ray_gone'"),
        ("ray_app:SOON", "square", "RAY_TASK_FAILED", "is not a Horai application"),
    ],
)
def test_a_node_without_the_code_says_so(app: str, handler: str, code: str, says: str):
    (answer,) = told(handler, app=app)

    outcome = outcome_of(answer)
    assert isinstance(outcome, FailedRetryable)
    assert outcome.code == code
    assert says in outcome.message
