"""The signals of Django around each attempt at a task."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from horai.django.framework import signals
from horai.django.results import failed_result


@contextmanager
def told_around(result: Any) -> Generator[None]:
    """Send `task_started` before the block and `task_finished` after it, from the backend of the task."""
    sender = result.task.get_backend().__class__
    signals.task_started.send(sender, task_result=result)
    try:
        yield
    except Exception:
        failed_result(result)
        signals.task_finished.send(sender, task_result=result)
        raise
    signals.task_finished.send(sender, task_result=result)
