"""Executors with spans: they wrap the others in a process whose traces are on, and are not there when they are off."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from types import MappingProxyType

from horai.core.calls import Call
from horai.core.outcome import Ending, Outcome
from horai.engine.dispatch.attempts import Executor
from horai.operations.traces import AttemptSpan, Traces

Leave = Callable[[], None]


class TracedExecutor:
    """Runs each attempt of another executor in a span."""

    def __init__(self, executor: Executor, traces: Traces, *, is_http: bool) -> None:
        self._executor = executor
        self._traces = traces
        self._is_http = is_http

    def run(self, call: Call) -> Outcome | Awaitable[Ending]:
        """Begin an attempt, in the context of its span if it is a function."""
        span = self._traces.begin(call, is_http=self._is_http)
        enter, traceparent = self._traces.enter_function, span.call.traceparent
        leave = None if enter is None or traceparent is None else enter(traceparent)
        try:
            run = self._executor.run(span.call)
        except BaseException:
            self._end(span, None, leave)
            raise
        if isinstance(run, Awaitable):
            return self._follow(span, run, leave)
        self._end(span, run, leave)
        return run

    async def _follow(self, span: AttemptSpan, run: Awaitable[Ending], leave: Leave | None) -> Ending:
        outcome: Ending | None = None
        try:
            outcome = await run
            return outcome
        finally:
            self._end(span, outcome, leave)

    def _end(self, span: AttemptSpan, outcome: Ending | None, leave: Leave | None) -> None:
        self._traces.attempted(span, outcome)
        if leave is not None:
            leave()


class TracedExecutors(Mapping[str, Executor]):
    """The executors of a process whose handlers change while it runs, each with spans."""

    def __init__(self, executors: Mapping[str, Executor], traces: Traces) -> None:
        self._executors = executors
        self._traces = traces

    def __getitem__(self, handler: str) -> Executor:
        return TracedExecutor(self._executors[handler], self._traces, is_http=not handler)

    def __contains__(self, handler: object) -> bool:
        return handler in self._executors

    def __iter__(self) -> Iterator[str]:
        return iter(self._executors)

    def __len__(self) -> int:
        return len(self._executors)


def traced(executors: Mapping[str, Executor], traces: Traces | None) -> Mapping[str, Executor]:
    """Return the executors by handler, with spans if traces are on. The empty handler is HTTP."""
    if traces is None:
        return executors
    if not isinstance(executors, dict | MappingProxyType):
        return TracedExecutors(executors, traces)
    return {name: TracedExecutor(each, traces, is_http=not name) for name, each in executors.items()}
