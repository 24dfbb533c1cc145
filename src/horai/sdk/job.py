"""Job: the result of `@app.job` on a function."""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypeVar

from horai.sdk.declaration import Declaration
from horai.sdk.django import with_fresh_connections
from horai.sdk.functions import AsyncFunction, Crew, ThreadedFunction, executor_of
from horai.sdk.job_api import Home, Verbs
from horai.sdk.sync import SyncVerbs

R = TypeVar("R")


class Job(Verbs[R]):
    """A function with a name, a schedule and policies. Calling it only runs the function, here and now."""

    def __init__(self, home: Home, function: Callable[..., Any], declaration: Declaration) -> None:
        super().__init__(home, declaration)
        self._function = function
        update_wrapper(self, function)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._function(*arguments, **named)

    def __repr__(self) -> str:
        return f"<Job {self.name!r}>"

    @property
    def sync(self) -> SyncVerbs[R]:
        """The same methods without `await`."""
        return SyncVerbs(self)

    def executor(self, crew: Crew) -> AsyncFunction | ThreadedFunction:
        """Return the executor that runs the job's attempts in this process."""
        signature = self.declaration.signature
        function = with_fresh_connections(self._function, is_async=signature.is_async)
        return executor_of(function, signature, crew, self.name)
