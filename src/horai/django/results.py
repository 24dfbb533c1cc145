"""Instances as the results of Django's tasks."""

import builtins
import json
import socket
from datetime import datetime
from typing import Any

from django.utils import timezone  # pyright: ignore[reportMissingTypeStubs]

from horai.core.states import State
from horai.db.instance_queries import InstanceRow
from horai.django.framework import base
from horai.sdk.instance import Instance

STATUS = {
    State.RUNNING: base.TaskResultStatus.RUNNING,
    State.SUCCESS: base.TaskResultStatus.SUCCESSFUL,
    State.DEAD: base.TaskResultStatus.FAILED,
    State.CANCELLED: base.TaskResultStatus.FAILED,
}
"""An instance in any other state waits: it is due later, or will be tried again."""
FAILED = "horai.InstanceFailed"


def result_of(task: Any, row: InstanceRow) -> Any:
    """Return the result of an instance as it is stored now."""
    stored = json.loads(row.payload or "{}")
    result = base.TaskResult(
        task=task,
        id=str(row.id),
        status=STATUS.get(row.state, base.TaskResultStatus.READY),
        enqueued_at=row.created_at,
        started_at=row.claimed_at,
        finished_at=row.finished_at,
        last_attempted_at=row.claimed_at,
        args=stored.get("args", []),
        kwargs=stored.get("kwargs", {}),
        backend=task.backend,
        errors=_errors(row),
        worker_ids=[row.node] * row.attempt if row.node else [],
    )
    if row.state is State.SUCCESS and row.kept_result is not None:
        _set(result, "_return_value", json.loads(row.kept_result))
    return result


def new_result(task: Any, instance_id: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Return the result of a call that was just stored."""
    return _result(task, instance_id, args, kwargs, timezone.now())


def running_result(task: Any, instance: Instance[Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Return the result of an attempt that begins, for the context and the signals of Django."""
    result = _result(task, instance.id, args, kwargs, instance.fire_time)
    _set(result, "status", base.TaskResultStatus.RUNNING)
    _set(result, "started_at", begun := timezone.now())
    _set(result, "last_attempted_at", begun)
    _set(result, "worker_ids", [socket.gethostname()] * instance.attempt)
    return result


def finished_result(result: Any, value: Any) -> Any:
    """Note the return value in the result of an attempt, and return the value."""
    _set(result, "_return_value", value)
    _set(result, "status", base.TaskResultStatus.SUCCESSFUL)
    return value


def failed_result(result: Any) -> None:
    """Note that an attempt has failed."""
    _set(result, "status", base.TaskResultStatus.FAILED)


def _result(task: Any, instance_id: str, args: list[Any], kwargs: dict[str, Any], enqueued_at: datetime) -> Any:
    return base.TaskResult(
        task=task,
        id=instance_id,
        status=base.TaskResultStatus.READY,
        enqueued_at=enqueued_at,
        started_at=None,
        finished_at=None,
        last_attempted_at=None,
        args=args,
        kwargs=kwargs,
        backend=task.backend,
        errors=[],
        worker_ids=[],
    )


def _errors(row: InstanceRow) -> list[Any]:
    """Return the error of the last attempt. Horai stores the name of its class; only builtin ones are found by it."""
    if row.error_code is None:
        return []
    known = getattr(builtins, row.error_code, None)
    path = f"builtins.{row.error_code}" if isinstance(known, type) and issubclass(known, BaseException) else FAILED
    return [base.TaskError(exception_class_path=path, traceback=row.error_msg or row.error_code)]


def _set(result: Any, name: str, value: Any) -> None:
    object.__setattr__(result, name, value)  # results are frozen
