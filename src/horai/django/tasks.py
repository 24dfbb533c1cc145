"""The tasks of one backend as jobs of one application, shared by all threads of the process.

Django creates a backend object for each thread. The application and its connections exist once for an alias.
"""

import threading
from collections.abc import Callable, Mapping
from inspect import iscoroutinefunction
from typing import Any, cast

from django.core.exceptions import ImproperlyConfigured  # pyright: ignore[reportMissingTypeStubs]

from horai.db.instance_queries import InstanceRow
from horai.django.database import url_of
from horai.django.framework import InvalidTask, base
from horai.django.results import finished_result, running_result
from horai.django.signals import told_around
from horai.sdk.app import Horai
from horai.sdk.declaration import Options, Retry
from horai.sdk.instance import Instance
from horai.sdk.job import Job
from horai.sdk.portal import PORTAL

KNOWN = ("name", "database", "database_url", "retry", "timeout")
"""The OPTIONS of a backend."""

_made: dict[str, "DjangoTasks"] = {}
_making = threading.Lock()


def tasks_of(alias: str, options: Mapping[str, Any]) -> "DjangoTasks":
    """Return the tasks of a backend, created by the first call in this process."""
    with _making:
        if alias not in _made:
            _made[alias] = DjangoTasks(alias, options)
        return _made[alias]


class DjangoTasks:
    """The tasks that a backend has seen, each as a job with the path of its function as its name.

    `database` is the alias of the Django database that holds Horai's tables; None if Horai has another database.
    """

    def __init__(self, alias: str, options: Mapping[str, Any]) -> None:
        if unknown := sorted(set(options) - set(KNOWN)):
            raise ImproperlyConfigured(f"TASKS[{alias!r}]: unknown option {unknown[0]!r}. The options are {KNOWN}.")
        if "database" in options and "database_url" in options:
            raise ImproperlyConfigured(f"TASKS[{alias!r}]: give database or database_url, not both.")
        self.alias = alias
        self.database: str | None = options.get("database")
        url = options.get("database_url") if self.database is None else url_of(self.database)
        self.app = Horai(options.get("name", "django"), database_url=url)
        self._retry = options.get("retry")
        self._timeout = options.get("timeout")
        self._jobs: dict[str, tuple[Any, Job[..., Any]]] = {}
        self._declaring = threading.Lock()

    def declare(self, task: Any) -> Job[..., Any]:
        """Return the job of a task. Raise `InvalidTask` if the task was declared with another queue or priority."""
        with self._declaring:
            if task.module_path not in self._jobs:
                self._jobs[task.module_path] = task, self._job(task)
            first, job = self._jobs[task.module_path]
        if (first.queue_name, _priority(first.priority)) != (task.queue_name, _priority(task.priority)):
            raise InvalidTask(
                f"{task.module_path} is declared with queue_name={first.queue_name!r} and priority={first.priority}. Horai takes"
                " both from the decorator: declare a second task for another queue or priority."
            )
        return job

    def task_named(self, path: str) -> Any:
        """Return the task of a job; None if this process has not imported it."""
        found = self._jobs.get(path)
        return None if found is None else found[0]

    def read(self, instance_id: str) -> InstanceRow:
        """Return an instance. Raises `NotFound`."""

        async def reading() -> InstanceRow:
            return await (await self.app.client()).instance(int(instance_id))

        return PORTAL.run(reading())

    def _job(self, task: Any) -> Job[..., Any]:
        options: Options = {"name": task.module_path, "queue": task.queue_name}
        if (priority := _priority(task.priority)) is not None:
            options["priority"] = priority
        if self._retry is not None:
            options["retry"] = Retry(max=self._retry)
        if self._timeout is not None:
            options["timeout"] = self._timeout
        return cast("Any", self.app.job(**options))(_function_of(task))


def _priority(number: int) -> Any:
    """Return the priority of a job: Django's are whole numbers, and a job has one of three."""
    return None if number == 0 else "high" if number > 0 else "low"


def _function_of(task: Any) -> Callable[..., Any]:
    """Return the function that a worker calls: it takes the arguments of the call as they are stored."""

    def leading(instance: Instance[Any], args: list[Any], kwargs: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
        result = running_result(task, instance, args, kwargs)
        return result, (base.TaskContext(task_result=result),) if task.takes_context else ()

    if iscoroutinefunction(task.func):

        async def run_async(instance: Instance[Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
            result, first = leading(instance, args, kwargs)
            with told_around(result):
                return finished_result(result, await task.func(*first, *args, **kwargs))

        return run_async

    def run(instance: Instance[Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
        result, first = leading(instance, args, kwargs)
        with told_around(result):
            return finished_result(result, task.func(*first, *args, **kwargs))

    return run
