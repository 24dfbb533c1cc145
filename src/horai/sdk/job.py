"""Job: the result of `@app.job` on a function."""

from collections.abc import Callable, Coroutine, Iterable
from datetime import datetime
from functools import update_wrapper
from typing import Any, Concatenate, Generic, NoReturn, ParamSpec, Protocol, TypeVar, overload

from horai.core.errors import Invalid
from horai.sdk.call_options import payload_of_call
from horai.sdk.code_versions import CodeVersion, by_version, refuse_other
from horai.sdk.declaration import Declaration, Duration
from horai.sdk.deferred import composition, runtime
from horai.sdk.handle import Handle
from horai.sdk.instance import Instance
from horai.sdk.job_api import Home, Verbs
from horai.sdk.lifecycle import around
from horai.sdk.payloads import signature_of

P = ParamSpec("P")
R = TypeVar("R")
Q = ParamSpec("Q")
C = TypeVar("C")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class Job(Verbs[P, R]):
    """A function with a name, a schedule and policies. Calling it only runs the function, here and now.

    `P` are the parameters of the function without the instance, `R` is the type of its result.
    """

    def __init__(self, home: Home, function: Callable[..., Any], declaration: Declaration) -> None:
        super().__init__(home, declaration)
        self._function = function
        self._versions: dict[int, Callable[..., Any]] = {}
        update_wrapper(self, function)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._function(*arguments, **named)

    def __repr__(self) -> str:
        return f"<Job {self.name!r}>"

    @property
    def sync(self) -> "runtime.SyncVerbs[P, R]":
        """The same methods without `await`."""
        return runtime.SyncVerbs(self)

    def s(self, *arguments: Any, **named: Any) -> "composition.ComposedCall[R]":
        """Return a call for `chain`, `group` and `chord`. In a chain it takes the result before it as its first argument."""
        return composition.ComposedCall(self, arguments, named)

    def si(self, *arguments: P.args, **named: P.kwargs) -> "composition.ComposedCall[R]":
        """Return a call for `chain`, `group` and `chord` that takes no result, with all its arguments."""
        return composition.ComposedCall(self, arguments, named, takes_result=False)

    async def map(
        self, payloads: Iterable[object], *, idempotency_key: str | None = None, conn: Any = None
    ) -> "runtime.ComposedRun":
        """Run the job once for each item, as one run. Its result is the list of the results, in this order."""
        calls = composition.Group([composition.ComposedCall(self, (payload,)) for payload in payloads])
        return await calls.enqueue(idempotency_key=idempotency_key, conn=conn)

    async def continue_as_new(self, *arguments: P.args, **named: P.kwargs) -> NoReturn:
        """End this attempt of the job's own function, which begins again with these arguments and without its steps.

        It stays the same instance, and neither a failure nor an attempt is counted. For loops without an end: an instance
        has at most 10,000 records. Compensations of the steps so far are given up.
        """
        await runtime.start_over(
            self.name, self.declaration.encode(payload_of_call(self.declaration, arguments, named))
        )

    def version(self, number: int) -> Callable[[F], F]:
        """Declare an earlier version of a durable function, for instances that began in it: `@checkout.version(1)`.

        It takes the same arguments. Instances that have no record yet run in the version of the job itself.
        """

        def declare(function: F) -> F:
            refuse_other(self.name, number, {self.declaration.code.number, *self._versions}, function)
            own, declared = signature_of(function, self.name), self.declaration.signature
            if (own.form, own.shape.schema) != (declared.form, declared.shape.schema):
                raise Invalid(
                    f"The version {number} of {self.name!r} takes other arguments.",
                    "Give it the parameters of the job's function.",
                )
            self._versions[number] = function
            return function

        return declare

    def executor(self, crew: "runtime.Crew") -> "runtime.AsyncFunction | runtime.ThreadedFunction":
        """Return the executor that runs the job's attempts in this process."""
        signature, code = self.declaration.signature, self.declaration.code
        written = self._function
        if self._versions:
            written = by_version(written, self._versions)
            code = CodeVersion(code.number, code.continues, frozenset(self._versions))
        function = runtime.with_fresh_connections(written, is_async=signature.is_async)
        if self.home.lifecycle.middleware:
            function, signature = around(function, signature, self.home.lifecycle.middleware)
        executor = runtime.executor_of(function, signature, crew, self.name)
        executor.code = code
        return executor


class FunctionJob(Job[P, R], Generic[Q, C, P, R]):
    """A job with the types of its function for calls here: it takes `Q` and returns `C`."""

    def __call__(self, *arguments: Q.args, **named: Q.kwargs) -> C:
        return self._function(*arguments, **named)


class InstanceJob(FunctionJob[[Instance[T]], C, ..., R], Generic[T, C, R]):
    """A job whose function takes only the instance, with a payload of type `T`, or none."""

    async def enqueue(  # pyright: ignore[reportIncompatibleMethodOverride] — it narrows the type of the payload
        self,
        payload: T | None = None,
        *,
        at: datetime | None = None,
        delay: Duration | None = None,
        idempotency_key: str | None = None,
        conn: Any = None,
    ) -> Handle[R]:
        """Add an instance: now, at a time, or after a delay. Without a payload it has the job's own."""
        return await self.add(payload, {"at": at, "delay": delay, "idempotency_key": idempotency_key, "conn": conn})


class JobDecorator(Protocol):
    """The decorator that `@app.job(…)` returns."""

    @overload
    def __call__(
        self, function: Callable[[Instance[T]], Coroutine[Any, Any, R]], /
    ) -> InstanceJob[T, Coroutine[Any, Any, R], R]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Instance[Any], P], Coroutine[Any, Any, R]], /
    ) -> FunctionJob[Concatenate[Instance[Any], P], Coroutine[Any, Any, R], P, R]: ...
    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> FunctionJob[P, Coroutine[Any, Any, R], P, R]: ...
    @overload
    def __call__(self, function: Callable[[Instance[T]], R], /) -> InstanceJob[T, R, R]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Instance[Any], P], R], /
    ) -> FunctionJob[Concatenate[Instance[Any], P], R, P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> FunctionJob[P, R, P, R]: ...
    def __call__(self, function: Any, /) -> Any: ...
