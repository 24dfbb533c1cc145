"""The worker: a process that runs an application's functions, declares its jobs and claims its lanes itself."""

import asyncio
import os
import socket
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import structlog

from horai.core.calls import Call
from horai.core.errors import Invalid
from horai.core.health import EngineHealth, health_over
from horai.core.settings import EngineSettings
from horai.core.shards import Role
from horai.core.shares import Shares
from horai.core.wakes import CallsWake, EverywhereWake
from horai.db import stage_connection
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.db.watch import watched
from horai.embedded.visit import directory_of, require_url
from horai.engine.dispatch.attempts import Executor
from horai.engine.dispatch.scans import Reach
from horai.isolation.pool import SUSPECTS, IsolatedFunctions
from horai.operations.declared_owner import DeclaredChanges
from horai.operations.keyring import keyring_of, with_process_keys
from horai.operations.scope import Scope
from horai.operations.trace_export import child_variables, opened_traces
from horai.operations.traces import Traces
from horai.process import pool, prepare, until_stopped
from horai.ray_tasks.executor import RayFunction
from horai.ray_tasks.start import address_of, follow_cluster, ray_tasks, require_ray
from horai.ray_tasks.tasks import RayTasks
from horai.sdk.app import Horai
from horai.sdk.client import process_scope
from horai.sdk.functions import Crew
from horai.sdk.job import Job
from horai.sdk.step_writer import StepWriter
from horai.stages import Engine

log = structlog.get_logger(__name__)

CONCURRENCY = 100
BATCH, IN_HAND = 2_000, 8_000
"""The most instances in one statement and in flight. Functions can be shorter than any HTTP call: batches larger than a
node's keep the worker busy while it waits for commits."""


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """The settings of a worker: it runs at most `concurrency` functions at once, from these `queues` (None: from all).

    `isolated` is the number of processes for functions with `isolation="process"`; `reference` (`module:app`) is where
    they find the application. Without it, an instance that was lost with its workers cannot run alone and runs beside
    others.
    `may_be_unnamed` accepts an application without a name: no other application uses the database.
    `ray_address` is the cluster of functions with `executor="ray"`.
    """

    concurrency: int = CONCURRENCY
    queues: frozenset[str] | None = None
    isolated: int = field(default_factory=lambda: os.cpu_count() or 1)
    reference: str | None = None
    name: str = field(default_factory=socket.gethostname)
    engine: EngineSettings = field(default_factory=EngineSettings)
    may_be_unnamed: bool = False
    ray_address: str = field(default_factory=lambda: address_of(os.environ))


async def run(app: Horai, settings: WorkerSettings, stop: asyncio.Event, ready: Callable[[str], None]) -> None:
    """Run the worker until `stop` is set; running functions may then end within the grace period.

    `ready` is called once the worker claims.
    """
    if not app.jobs:
        raise Invalid(f"No job is declared in {app.title}.", "Declare one: @app.job.")
    if not settings.may_be_unnamed:
        app.require_name()
    require_ray(app, settings.reference, settings.ray_address)
    async with AsyncExitStack() as stack:
        url = require_url(app.place)
        await prepare(url, settings.engine)
        await stack.enter_async_context(watched(url))
        requests = pool(url, "horai worker", settings.engine.idle_in_transaction, stage_connection.REST_AFTER)
        connections = await stack.enter_async_context(requests)
        wakeups = Wakeups()
        data_dir = directory_of(app.place) if app.place.url is None else None
        keys = await asyncio.to_thread(with_process_keys, settings.engine, os.environ, data_dir)
        settings = replace(settings, engine=keys)
        scope = await process_scope(connections, wakeups, keyring_of(settings.engine).forget_when_erased(wakeups))
        report(await app.declare_to(scope, may_be_unnamed=settings.may_be_unnamed))
        traces = await stack.enter_async_context(
            opened_traces(settings.engine, connections, wakeups, settings.name, has_functions=True)
        )
        engine = await stack.enter_async_context(working(url, app, settings, scope, traces=traces))
        # The other processes were not notified of the declared jobs: the notifier runs only from here on. Notify them
        # even if nothing was declared: an earlier start may have been interrupted between the two steps.
        wakeups.publish(EverywhereWake())
        ready(f"worker {settings.name} ({', '.join(app.jobs)})")
        await until_stopped(stop, engine)


@asynccontextmanager
async def working(
    url: str,
    app: Horai,
    settings: WorkerSettings,
    scope: Scope,
    health: EngineHealth | None = None,
    traces: Traces | None = None,
) -> AsyncGenerator[Engine]:
    """Run an engine that runs only the application's functions, between the hooks of its start and its end."""
    async with app.lifecycle.opened(), _running(url, app, settings, scope, health, traces) as engine:
        yield engine


@asynccontextmanager
async def _running(
    url: str,
    app: Horai,
    settings: WorkerSettings,
    scope: Scope,
    health: EngineHealth | None,
    traces: Traces | None,
) -> AsyncGenerator[Engine]:
    told = health or health_over(settings.engine.figure_window)

    def is_held(call: Call) -> bool:
        return told.holds_lease(time.monotonic()) and call.node == told.incarnation

    def count_late(records: int) -> None:
        told.late_results += records

    shares = _shares(app, settings.concurrency)
    crew = Crew(settings.concurrency, None, is_held, shares)
    isolated, alone = _isolated(url, app, settings, is_held), _alone(url, settings, is_held)
    tasks = ray_tasks(app, settings.reference, settings.ray_address)
    engine = Engine(
        url,
        settings.name,
        {name: _executor(job, crew, isolated, tasks) for name, job in app.jobs.items()},
        scope.wakeups,
        told,
        _paced(settings),
        frozenset({Role.worker}),
        Reach(scope.tenant_id, settings.queues),
        shares,
        {} if alone is None else {name: alone for name, job in app.jobs.items() if not _is_elsewhere(job)},
        traces,
    )
    crew.left = engine.make_room
    steps = crew.steps = StepWriter(StageConnection(url, "horai steps"))
    steps.on_rejected = count_late
    steps.on_called = lambda children: scope.wakeups.publish(CallsWake(children))
    for runner in filter(None, (crew, isolated, alone, tasks)):
        runner.notes = engine.progress_writer
        engine.claim_revoker.listen(runner.claim_over)
    if tasks is not None:
        follow_cluster(tasks, app, shares, engine.make_room)
    await engine.start()
    app.births = engine.births(scope.tenant_id)
    try:
        if tasks is not None:
            tasks.start()
        yield engine
    finally:
        app.births = None
        await engine.stop()
        await steps.close()
        crew.close()
        for processes in filter(None, (isolated, alone, tasks)):
            await processes.close()


def _paced(settings: WorkerSettings) -> EngineSettings:
    return replace(
        settings.engine, concurrency=settings.concurrency, claim_batch=BATCH, settle_batch=BATCH, in_flight=IN_HAND
    )


def _shares(app: Horai, concurrency: int) -> Shares:
    """Return the places of the functions that run in this process itself, with the limit of each function."""
    here = [job for job in app.jobs.values() if job.declaration.isolation is None]
    caps = {job.name: job.declaration.concurrency for job in here if job.declaration.concurrency is not None}
    return Shares(concurrency, (job.name for job in here), caps)


def _isolated(
    url: str, app: Horai, settings: WorkerSettings, is_held: Callable[[Call], bool]
) -> IsolatedFunctions | None:
    """Return the processes for isolated functions; None if there are none. They take at most half of the places."""
    wanting = [job.name for job in app.jobs.values() if _is_isolated(job)]
    if not wanting:
        return None
    if settings.reference is None:
        raise Invalid(
            f"The job {wanting[0]!r} runs in its own process, which does not know where to find the application.",
            "Start the worker with `horai worker module:app`.",
        )
    return _processes(url, settings, settings.reference, settings.isolated, is_held)


def _alone(url: str, settings: WorkerSettings, is_held: Callable[[Call], bool]) -> IsolatedFunctions | None:
    """Return the processes for instances that were lost with their workers: one call each, so a crash has one cause.

    Return None if the application has no `module:app` reference.
    """
    if settings.reference is None:
        return None
    return _processes(url, settings, settings.reference, SUSPECTS, is_held, max_runs=1)


def _processes(
    url: str, settings: WorkerSettings, app: str, count: int, is_held: Callable[[Call], bool], **more: int
) -> IsolatedFunctions:
    waiting = max(settings.concurrency // 2, 1)
    return IsolatedFunctions(
        app,
        count,
        waiting=waiting,
        environment={"HORAI_DATABASE_URL": url} | child_variables(settings.engine, settings.name),
        is_held=is_held,
        **more,
    )


def _is_isolated(job: Job[..., Any]) -> bool:
    return job.declaration.isolation == "process"


def _is_elsewhere(job: Job[..., Any]) -> bool:
    """Return whether the function never runs in the process of the worker, which it could kill."""
    return _is_isolated(job) or job.declaration.ray is not None


def _executor(job: Job[..., Any], crew: Crew, isolated: IsolatedFunctions | None, tasks: RayTasks | None) -> Executor:
    if tasks is not None and job.declaration.ray is not None:
        return RayFunction(tasks, crew, job.name, job.declaration.ray.options())
    return isolated if isolated is not None and _is_isolated(job) else job.executor(crew)


def report(applied: DeclaredChanges) -> None:
    """Log the changes that the start made to jobs and queues."""
    changes: dict[str, Any] = {"created": list(applied.created), "changed": list(applied.changed)}
    if any(changes.values()):
        log.info("Jobs declared.", **{verb: names for verb, names in changes.items() if names})
    if applied.removed_jobs:
        log.warning(
            "Jobs are no longer in the code, and still in the database: delete them if they are done.",
            jobs=list(applied.removed_jobs),
        )
    if applied.removed_queues:
        log.warning(
            "Queues are no longer in the code, and keep their limits: `horai queues set` removes them.",
            queues=list(applied.removed_queues),
        )
