"""The life of a worker process: hooks at its start and its end, resources that its functions share, and middleware.

Each process that runs functions has its own: a worker, a child for isolated functions, a test. A process that only adds
instances runs none of them. Without hooks, resources and middleware, nothing of this is on the way of a call.
"""

import asyncio
import contextvars
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import reduce
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from horai.core.errors import Invalid
from horai.sdk.deferred import runtime
from horai.sdk.instance import Instance
from horai.sdk.payloads import Form, Signature

T = TypeVar("T")
Hook = Callable[[], Any]
CallNext = Callable[[Instance[Any]], Coroutine[Any, Any, Any]]
Middleware = Callable[[Instance[Any], CallNext], Awaitable[Any]]


class ResourceClosed(RuntimeError):
    """A resource was read in a process that has not opened it."""


class Resource(Generic[T]):
    """A value that the functions of a process share: opened before its first call and closed after its last."""

    def __init__(self, name: str, make: Callable[[], AsyncGenerator[T]]) -> None:
        self.name = name
        self._make = make
        self._values: list[T] = []

    def __repr__(self) -> str:
        return f"<Resource {self.name!r} {'open' if self._values else 'closed'}>"

    def get(self) -> T:
        """Return the value. Raises `ResourceClosed` outside of a worker process."""
        if not self._values:
            raise ResourceClosed(
                f"The resource {self.name!r} is not open: workers open it before their first call, other processes do not."
            )
        return self._values[-1]

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Open the resource, and close it at the end: the generator continues after its yield, also after an error."""
        generator = self._make()
        value = await anext(generator)
        self._values.append(value)
        try:
            yield
        finally:
            self._values.remove(value)
            with suppress(StopAsyncIteration):
                await anext(generator)
            await generator.aclose()


class Lifecycle:
    """The hooks, resources and middleware of an application."""

    def __init__(self) -> None:
        self.startup: list[Hook] = []
        self.shutdown: list[Hook] = []
        self.resources: list[Resource[Any]] = []
        self.middleware: list[Middleware] = []

    @property
    def needs_process(self) -> bool:
        """Return whether a process must be prepared before its first call."""
        return bool(self.startup or self.shutdown or self.resources)

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Open the resources and run the start-up hooks, both in order; at the end undo it in reverse order.

        An error at the start ends the start. An error of a shut-down hook is logged, and the others run.
        """
        async with AsyncExitStack() as stack:
            for resource in self.resources:
                await stack.enter_async_context(resource.opened())
            for hook in self.shutdown:
                stack.push_async_callback(_run_at_end, hook)
            for hook in self.startup:
                await _run(hook)
            yield


async def _run(hook: Hook) -> None:
    found = hook()
    if inspect.isawaitable(found):
        await found


async def _run_at_end(hook: Hook) -> None:
    try:
        await _run(hook)
    except Exception as error:
        log = runtime.structlog.get_logger(__name__)
        log.warning("a shut-down hook failed", hook=getattr(hook, "__name__", repr(hook)), error=repr(error))


def checked_resource(make: Callable[[], AsyncGenerator[T]]) -> Resource[T]:
    """Return the resource of an async generator. Raises `Invalid` for another function."""
    name = getattr(make, "__name__", type(make).__name__)
    if not inspect.isasyncgenfunction(make) or inspect.signature(make).parameters:
        raise Invalid.field(
            name, "is not an async generator without parameters", "Write async def pool(): … yield value …"
        )
    return Resource(name, make)


def checked_hook(hook: Hook) -> Hook:
    """Return the hook. Raises `Invalid` for a function that takes arguments."""
    if not callable(hook) or inspect.signature(hook).parameters:
        raise Invalid.field(
            getattr(hook, "__name__", str(hook)), "takes arguments", "A hook takes none: def prepare(): …"
        )
    return hook


def checked_middleware(middleware: Middleware) -> Middleware:
    """Return the middleware. Raises `Invalid` unless it is an async function of the instance and the next call."""
    if not inspect.iscoroutinefunction(middleware) or len(inspect.signature(middleware).parameters) != 2:
        raise Invalid.field(
            getattr(middleware, "__name__", str(middleware)),
            "is not an async function of two parameters",
            "Write async def timed(instance, call_next): return await call_next(instance).",
        )
    return middleware


def around(
    function: Callable[..., Any], signature: Signature, middleware: Sequence[Middleware]
) -> tuple[Callable[..., Any], Signature]:
    """Return the function inside its middleware, the first one outermost, and its signature.

    The middleware is async. A function that is not async still runs in its thread, with the context variables of the
    middleware. Call this in the event loop of the executor.
    """
    adapted, form = signature.adapted(function)

    def core(instance: Instance[Any]) -> Any:
        if form is Form.nothing:
            return adapted()
        return adapted(instance.payload if form is Form.payload else instance)

    def chain(innermost: CallNext) -> CallNext:
        return reduce(_wrapped, reversed(middleware), innermost)

    async def awaited(instance: Instance[Any]) -> Any:
        return await core(instance)

    chained = chain(awaited)

    async def in_task(instance: Instance[Any]) -> Any:
        return await asyncio.create_task(chained(instance))  # context variables that it sets end with the call

    wrapped = in_task if signature.is_async else _in_thread(core, chain, asyncio.get_running_loop())
    return wrapped, Signature(Form.instance, signature.shape, signature.is_async)


def _wrapped(inner: CallNext, outer: Middleware) -> CallNext:
    async def call(instance: Instance[Any]) -> Any:
        return await outer(instance, inner)

    return call


class _Errand:
    """A call of the function, asked for by the middleware in the event loop and made by the thread."""

    def __init__(self, instance: Instance[Any]) -> None:
        self.instance = instance
        self.context = contextvars.copy_context()
        self.loop = asyncio.get_running_loop()
        self.made: asyncio.Future[Any] = self.loop.create_future()

    def make(self, function: Callable[[Instance[Any]], Any]) -> None:
        """Call the function in this thread, and give its result or its error to the middleware."""
        try:
            value = self.context.run(function, self.instance)
        except BaseException as error:  # SystemExit too: it ends a function, never a worker
            self.loop.call_soon_threadsafe(self._end, None, error)
        else:
            self.loop.call_soon_threadsafe(self._end, value, None)

    def _end(self, value: Any, error: BaseException | None) -> None:
        if self.made.done():
            return
        if error is None:
            self.made.set_result(value)
        else:
            self.made.set_exception(RuntimeError("StopIteration") if isinstance(error, StopIteration) else error)


def _in_thread(
    core: Callable[[Instance[Any]], Any], chain: Callable[[CallNext], CallNext], loop: asyncio.AbstractEventLoop
) -> Callable[[Instance[Any]], Any]:
    """Return a function for a thread: the middleware runs in the event loop, and the thread makes the calls."""

    def call(instance: Instance[Any]) -> Any:
        errands: SimpleQueue[_Errand | None] = SimpleQueue()

        async def innermost(given: Instance[Any]) -> Any:
            errand = _Errand(given)
            errands.put(errand)
            return await errand.made

        async def run() -> Any:
            try:
                return await chain(innermost)(instance)
            finally:
                errands.put(None)

        running = asyncio.run_coroutine_threadsafe(run(), loop)
        while (errand := errands.get()) is not None:
            errand.make(core)
        return running.result()

    return call
