"""Compositions: calls that run one after the other or side by side, as one run, without a declared workflow.

`chain(load.s("a"), clean.s(), save.s())`, `group(resize.s(i) for i in ids)`, `chord(group(…), publish.s())`. A composition is
started by one instance, in one statement: all of it runs, or nothing. It is a run of a workflow, which is defined once for
each form of composition; the arguments come with the run.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeAlias, TypeVar

from horai.core.errors import Invalid, NotFound
from horai.sdk.call_options import CallOptions, payload_of_call, when_of
from horai.sdk.composed_run import ComposedRun, SyncComposedRun
from horai.sdk.declaration import Duration
from horai.sdk.deferred import runtime
from horai.sdk.job_api import Home, Verbs
from horai.sdk.parameters import ArgumentsShape
from horai.sdk.payloads import Form
from horai.sdk.portal import PORTAL
from horai.sdk.runs import Run, RunInfo
from horai.sdk.sync import run_here

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class ComposedCall(Generic[R]):
    """A call in a composition. `job.s(…)` makes one that takes the result before it as its first argument."""

    job: Verbs[..., R]
    arguments: Sequence[Any] = ()
    named: Mapping[str, Any] = field(default_factory=dict[str, Any])
    takes_result: bool = True

    @property
    def job_name(self) -> str:
        """Return the name of the job."""
        return self.job.name

    @property
    def payload(self) -> str:
        """Return the payload of the call without a result, as JSON text."""
        declaration = self.job.declaration
        return (
            declaration.encode(payload_of_call(declaration, self.arguments, self.named))
            or declaration.payload
            or "null"
        )

    def template(self, before: "runtime.FormEnds") -> str:
        """Return the payload that waits for the results before the call. Raises `Invalid` if it cannot take them."""
        signature = self.job.declaration.signature
        takes = runtime.TakenResults(list(before.nodes), before.is_list)
        if isinstance(signature.shape, ArgumentsShape):
            takes.name, others = signature.shape.bind_result(self.arguments, self.named)
            return runtime.template_of(takes, others)
        if self.arguments or self.named or signature.form is Form.nothing:
            taken = "one payload, which is that result" if signature.form is not Form.nothing else "no argument"
            raise Invalid(
                f"{self.job.name}.s(…) takes the result before it as its first argument, and its function takes {taken}.",
                f"Write {self.job.name}.si(…) for a call that takes no result.",
            )
        return runtime.template_of(takes, None)


class Composition:
    """Calls that become one run. The result is that of the last call, or of a group a list in the order of its calls."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    @property
    def form(self) -> "runtime.ChainForm | runtime.GroupForm":
        """Return the form of the composition, with its calls."""
        raise NotImplementedError

    def calls(self) -> Iterable[ComposedCall[Any]]:
        """Return the calls, in order."""
        raise NotImplementedError

    @property
    def sync(self) -> "SyncComposition":
        """The same methods without `await`."""
        return SyncComposition(self)

    async def enqueue(
        self,
        *,
        at: datetime | None = None,
        delay: Duration | None = None,
        idempotency_key: str | None = None,
        conn: Any = None,
    ) -> ComposedRun:
        """Start the composition: now, at a time, after a delay, or with the commit of the transaction of `conn`.

        With an `idempotency_key` the first call starts it; later calls get the same run, with `duplicate` set. The key of another
        composition is refused.
        """
        jobs = _jobs_of(self.calls())
        plan = runtime.plan_of(self.form)
        first = next(iter(jobs.values()))
        options: CallOptions = {"at": at, "delay": delay}
        when, name, payload = (
            when_of(options),
            plan.name,
            first.declaration.signature.shape.within_limit(plan.payload),
        )
        made, is_new = await _served(
            first.home, plan, jobs, conn, lambda means: _start(means, name, when, payload, idempotency_key)
        )
        now = datetime.now(UTC)
        info = RunInfo(str(made), name, "PENDING", at or now, None, now, None)
        shapes = {node["name"]: jobs[node["job"]].declaration.result for node in plan.nodes}
        run = Run(first.home, info, shapes)
        return ComposedRun(first.home, run, plan.ends.nodes, is_list=plan.ends.is_list, duplicate=not is_new)


async def _start(means: "Means", form: str, when: "runtime.When", payload: str, key: str | None) -> tuple[int, bool]:
    """Start a composition; return the id of its run, and whether this call started it. Without a key, calls share a statement."""
    if key is None:
        return await means.enqueue(form, when, payload), True
    return await means.start_composition(form, when, payload, key)


def _jobs_of(calls: Iterable[ComposedCall[Any]]) -> dict[str, Verbs[..., Any]]:
    """Return the jobs of calls by name. Raises `Invalid` without calls, and for a job that is encrypted."""
    jobs = dict[str, Verbs[..., Any]]()
    for call in calls:
        jobs.setdefault(call.job.name, call.job)
    if not jobs:
        raise Invalid("The composition has no call.")
    for job in jobs.values():
        if job.declaration.is_encrypted:
            raise Invalid(f"{job.name!r} is encrypted: its calls cannot be composed.", "Declare a workflow with it.")
    return jobs


Means: TypeAlias = "runtime.Client | runtime.CallersTransaction"
Jobs: TypeAlias = Mapping[str, Verbs[..., Any]]


async def _served(
    home: Home, plan: "runtime.FormPlan", jobs: Jobs, conn: Any, serve: Callable[["Means"], Awaitable[tuple[int, bool]]]
) -> tuple[int, bool]:
    """Run `serve`; if the database does not have this form of composition, define it, and run `serve` again."""
    means = await home.client() if conn is None else runtime.CallersTransaction(conn)
    try:
        return await serve(means)
    except NotFound:
        if conn is not None and runtime.is_sync(conn):
            PORTAL.run(_define(home, plan, jobs))
        else:
            await _define(home, plan, jobs)
        return await serve(means)


async def _define(home: Home, plan: "runtime.FormPlan", jobs: Jobs) -> None:
    """Declare missing jobs, and define the form. Another process may do the same."""
    for job in jobs.values():
        await home.declare_missing(job)
    await runtime.define_form((await home.client()).scope, plan)


class Chain(Composition):
    """Calls one after the other: each takes the result of the one before it. `chain(…)` makes one."""

    def __init__(self, parts: Sequence["ComposedCall[Any] | Composition"]) -> None:
        self._parts = parts

    @property
    def form(self) -> "runtime.ChainForm":
        """Return the parts, one after the other."""
        return runtime.ChainForm([part.form if isinstance(part, Composition) else part for part in self._parts])

    def calls(self) -> Iterable[ComposedCall[Any]]:
        """Return the calls, in order."""
        return _calls_in(self._parts)


class Group(Composition):
    """Calls side by side; their results are a list. `group(…)` makes one."""

    def __init__(self, parts: Sequence["ComposedCall[Any] | Chain"]) -> None:
        self._parts = parts

    @property
    def form(self) -> "runtime.GroupForm":
        """Return the parts, side by side. Calls of one job that take no result are the items of a map: there may be 100,000."""
        return runtime.GroupForm([part.form if isinstance(part, Composition) else part for part in self._parts])

    def calls(self) -> Iterable[ComposedCall[Any]]:
        """Return the calls, in order."""
        return _calls_in(self._parts)


def _calls_in(parts: Sequence["ComposedCall[Any] | Composition"]) -> Iterator[ComposedCall[Any]]:
    for part in parts:
        if isinstance(part, Composition):
            yield from part.calls()
        else:
            yield part


def chain(*parts: "ComposedCall[Any] | Composition") -> Chain:
    """Run calls one after the other. Each `job.s(…)` takes the result before it as its first argument; `job.si(…)` does not.

    A group in a chain passes the list of its results on.
    """
    return Chain(parts)


def group(*parts: "ComposedCall[Any] | Chain | Iterable[ComposedCall[Any] | Chain]") -> Group:
    """Run calls side by side, given one by one or as an iterable. The result is the list of theirs, in this order."""
    calls = list["ComposedCall[Any] | Chain"]()
    for part in parts:
        if isinstance(part, ComposedCall | Chain):
            calls.append(part)
        else:
            calls += part
    return Group(calls)


def chord(calls: Group, callback: ComposedCall[Any]) -> Chain:
    """Run a group, and then a call that takes the list of its results as its first argument."""
    return Chain([calls, callback])


class SyncComposition:
    """The methods of a composition without `await`."""

    def __init__(self, composition: Composition) -> None:
        self._composition = composition

    def enqueue(
        self,
        *,
        at: datetime | None = None,
        delay: float | str | timedelta | None = None,
        idempotency_key: str | None = None,
        conn: Any = None,
    ) -> SyncComposedRun:
        """Start the composition, once for each `idempotency_key`."""
        made = self._composition.enqueue(at=at, delay=delay, idempotency_key=idempotency_key, conn=conn)
        return SyncComposedRun(run_here(made) if conn is not None else PORTAL.run(made))
