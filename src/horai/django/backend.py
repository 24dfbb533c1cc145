"""The backend of Django's task framework: each task is a job, each call an instance."""

from collections.abc import Mapping, Sequence
from typing import Any

from horai.core.errors import NotFound
from horai.django.framework import backends, database, exceptions, module_loading, signals
from horai.django.results import new_result, result_of
from horai.django.tasks import tasks_of
from horai.sdk.call_options import CallOptions
from horai.sdk.sync_handle import SyncHandle


class HoraiBackend(backends.BaseTaskBackend):  # pyright: ignore[reportUntypedBaseClass]
    """Named in `TASKS` as `horai.django.backend.HoraiBackend`."""

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: Mapping[str, Any]) -> None:
        super().__init__(alias, params)  # pyright: ignore[reportUnknownMemberType]
        self.tasks = tasks_of(alias, params.get("OPTIONS", {}))

    def validate_task(self, task: Any) -> None:
        """Check a task, and declare it as a job: Django calls this for each task that a module defines."""
        super().validate_task(task)  # pyright: ignore[reportUnknownMemberType]
        self.tasks.declare(task)

    def enqueue(self, task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Store a call. If Horai's tables are in a database of Django, the call commits with its transaction."""
        self.validate_task(task)
        job, alias = self.tasks.declare(task), self.tasks.database
        given: list[Any] = list(args)
        options: CallOptions = {} if task.run_after is None else {"at": task.run_after}
        if alias is None:
            handle = job.sync.options(**options).enqueue(given, dict(kwargs))
        else:
            with database.transaction.atomic(using=alias):
                options["conn"] = database.connections[alias]
                handle = job.sync.options(**options).enqueue(given, dict(kwargs))
        result = new_result(task, handle.id, given, dict(kwargs))
        signals.task_enqueued.send(type(self), task_result=result)
        return result

    def handle(self, result: Any) -> SyncHandle[Any]:
        """Return the handle of a call: it waits for the end, cancels, and reads progress and logs."""
        return self.tasks.app.handle_sync(result.id)

    def get_result(self, result_id: str) -> Any:
        """Read a call by its id. Raise `TaskResultDoesNotExist` if it is not a call of a task."""
        try:
            row = self.tasks.read(result_id)
            task = self.tasks.task_named(row.job) or module_loading.import_string(row.job)
        except (NotFound, ValueError, ImportError) as error:
            raise exceptions.TaskResultDoesNotExist(result_id) from error
        return result_of(task, row)
