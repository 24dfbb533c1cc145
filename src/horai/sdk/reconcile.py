"""`@app.reconcile`: compare the instances that a function wants with the instances of a job."""

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any, cast

from horai.core.errors import Invalid, NotFound
from horai.sdk.deferred import runtime
from horai.sdk.instance import Instance
from horai.sdk.job_api import Verbs

PAGE = 1_000
ERROR_SHOWN = 500

Source = Callable[[], Any]
"""A function without arguments: a generator, async or not, or a function that returns an iterable."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A key of the job that the business wants to run at this time. Without a payload, it runs with the job's own."""

    key: str
    at: datetime
    payload: Any = None
    version: int | None = None


def comparison_of(
    client: "Callable[[], Awaitable[runtime.Client]]", function: Source, target: Verbs[..., Any]
) -> Callable[[Instance[Any]], Awaitable[dict[str, Any] | None]]:
    """Return a job's function that compares the rows of `function` with the instances of `target`.

    Its result is the report.
    """
    if inspect.signature(function).parameters:
        raise Invalid.field(
            function.__name__, "takes arguments", "A source of a reconciler takes no arguments: def wanted(): …"
        )

    async def compare(instance: Instance[Any]) -> dict[str, Any] | None:
        scope = (await client()).scope
        try:
            comparison = await _begin(scope, instance, target)
            return await _compare(comparison, function, target)
        except runtime.Overtaken:
            return None
        except Exception as error:
            async with scope.write(runtime.Plans.FRESH, autocommit=True) as connection:
                told = f"{type(error).__name__}: {error}"[:ERROR_SHOWN].replace("\x00", "")
                await runtime.reconcilers.fail_report(connection, int(instance.id), instance.attempt, told)
            raise

    return compare


async def bind_declared(scope: "runtime.Scope", targets: Mapping[str, Verbs[..., Any]]) -> None:
    """Register the jobs of these names as reconcilers, which REST shows.

    A job whose target does not exist yet is registered by its first run.
    """
    for name, target in targets.items():
        async with scope.write() as connection:
            with suppress(NotFound):
                await _bind(connection, scope, name, target)


async def _bind(
    connection: "runtime.TenantWrite", scope: "runtime.Scope", name: str, target: Verbs[..., Any]
) -> "runtime.ReconcilerRow":
    job = await runtime.require_job(connection, scope, name)
    watched = await runtime.require_job(connection, scope, target.name)
    await runtime.reconcilers.bind_reconciler(connection, scope.tenant_id, job.id, watched.id, {"type": "python"})
    reconciler = await runtime.reconcilers.reconciler_of_job(connection, job.id)
    assert reconciler is not None  # noqa: S101 — it was bound just before
    return reconciler


async def _begin(scope: "runtime.Scope", instance: Instance[Any], target: Verbs[..., Any]) -> "runtime.Comparison":
    """Begin a comparison. The reconciler is registered again: its code may be newer than its last registration."""
    async with scope.write() as connection:
        reconciler = await _bind(connection, scope, instance.job, target)
    run = runtime.ReconcileRun(int(instance.id), instance.attempt, begins_anew=True)
    return await runtime.reconciles.begin(scope.write, scope.wakeups, reconciler, run)


async def _compare(comparison: "runtime.Comparison", function: Source, target: Verbs[..., Any]) -> dict[str, Any]:
    report = comparison.report
    if report.finished_at is None:
        async for page in _pages(function):
            await comparison.take([_row(one, target) for one in page], None)
        report = await comparison.finish()
    return {"reportId": str(report.id), **runtime.counts_of(report)}


async def _pages(function: Source) -> AsyncGenerator[list[Any]]:
    """Yield the rows of a function in pages. A function that is not async runs in a thread, off the event loop."""
    is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    source: Any = function() if is_async else await asyncio.to_thread(function)
    if inspect.isawaitable(source):
        source = await source
    if isinstance(source, AsyncIterable):
        page: list[Any] = []
        async for one in cast("AsyncIterable[Any]", source):
            page.append(one)
            if len(page) == PAGE:
                yield page
                page = []
        yield page
        return
    rest = iter(cast("Iterable[Any]", source))
    while page := await asyncio.to_thread(lambda: list(islice(rest, PAGE))):
        yield page


def _row(one: object, target: Verbs[..., Any]) -> "runtime.Row":
    if not isinstance(one, Wanted):
        return runtime.Faulty(None, f"must be a Wanted, not {type(one).__name__}")
    row = runtime.wanted_row(one.key, one.at, None, one.version)
    if isinstance(row, runtime.Faulty):
        return row
    try:
        return replace(row, payload=target.declaration.encode(one.payload))
    except (Invalid, ValueError) as error:
        return runtime.Faulty(row.key, str(error)[: runtime.reconcile_rules.TEXT_SHOWN])
