"""The remote worker: a process that runs an application's functions for a server, without access to its database.

The server claims, settles and retries; the worker runs. It begins a call only while the server counts on it, and reports
an outcome until it has an answer, over any number of connections.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import msgspec
import structlog
from msgspec import UNSET, Raw, UnsetType

from horai.core.calls import Call
from horai.core.errors import Invalid
from horai.core.outcome import FailedRetryable, NotSent, Outcome, outcome_of
from horai.core.shares import Shares
from horai.isolation.pool import SUSPECTS, IsolatedFunctions
from horai.sdk.app import NO_DATABASE, Horai
from horai.sdk.functions import AsyncFunction, Crew, ThreadedFunction
from horai.sdk.job import Job
from horai.sdk.remote_link import RemoteLink
from horai.sdk.remote_messages import call_of_lease, report_of
from horai.sdk.remote_outbox import Ref, RemoteOutbox
from horai.wire.worker_messages import (
    PROTOCOL,
    Answer,
    Answers,
    ApplicationPart,
    AttemptRef,
    Bye,
    Cancel,
    Credits,
    DeclaredPart,
    Drain,
    HandlerOffer,
    Heartbeat,
    Hello,
    LeasedAttempt,
    Leases,
    ServerMessage,
    Welcome,
    WorkerError,
)

log = structlog.get_logger(__name__)

FunctionExecutor = AsyncFunction | ThreadedFunction | IsolatedFunctions
STOPPED = FailedRetryable("WORKER_STOPPED", "The worker stopped before the call had ended.")
ANSWERS_WITHIN = 5.0
"""Seconds that a stop waits for the answers to the last reports."""


@dataclass(frozen=True, slots=True)
class RemoteSettings:
    """The settings of a remote worker. `servers` are the addresses of one cluster; the worker uses one at a time.

    `reference` (`module:app`) is where processes of isolated functions find the application. Without it, an instance that
    was lost with its workers runs beside others.
    The key is not in the repr.
    """

    servers: Sequence[str]
    api_key: str | None = field(default=None, repr=False)
    concurrency: int = 100
    queues: frozenset[str] | None = None
    isolated: int = field(default_factory=lambda: os.cpu_count() or 1)
    reference: str | None = None
    name: str = field(default_factory=socket.gethostname)
    grace: timedelta = timedelta(seconds=10)


async def run(app: Horai, settings: RemoteSettings, stop: asyncio.Event, ready: Callable[[str], None]) -> None:
    """Run the worker until `stop` is set; running functions may then end within the grace period."""
    jobs = {name: job for name, job in app.jobs.items() if name not in app.reconcilers}
    if not jobs:
        raise Invalid(f"No job that a remote worker can run is declared in {app.title}.", "Declare one: @app.job.")
    if on_ray := [name for name, job in jobs.items() if job.declaration.ray is not None]:
        raise Invalid(
            f"The job {on_ray[0]!r} runs as a Ray task, which a remote worker does not submit.",
            "Start a worker beside the database for it: `horai worker` without --server.",
        )
    for name in app.reconcilers:
        log.warning("A reconciler needs the database: a worker beside the database runs it.", job=name)
    os.environ[NO_DATABASE] = "1"  # also for the processes of isolated functions
    async with app.lifecycle.opened():
        await RemoteWorker(jobs, settings, _application(app, jobs)).run(stop, ready)


def _application(app: Horai, jobs: dict[str, Job[..., Any]]) -> ApplicationPart | None:
    """Return the jobs and queues to declare; None if the application has no name to own them."""
    if app.name is None:
        return None
    if app.workflows:
        log.warning("Workflows are declared by a worker beside the database.", workflows=list(app.workflows))
    declared = [DeclaredPart(_raw(job.declaration.document), _payload(job)) for job in jobs.values()]
    queues = [_raw(queue) for queue in app.declared_queues()]
    return ApplicationPart(app.name, declared, sorted(app.formerly), queues)


def _raw(document: Any) -> Raw:
    return Raw(msgspec.json.encode(document))


def _payload(job: Job[..., Any]) -> Raw | UnsetType:
    payload = job.declaration.payload
    return UNSET if payload is None else Raw(payload.encode())


class RemoteWorker:
    """The functions of a process, and the attempts that they run for a server."""

    def __init__(
        self, jobs: dict[str, Job[..., Any]], settings: RemoteSettings, application: ApplicationPart | None = None
    ) -> None:
        self._settings = settings
        self._jobs = jobs
        self._outbox = RemoteOutbox()
        self._link = RemoteLink(settings.servers, settings.api_key, self._hello, self._hear, self._outbox, application)
        own = [job for job in jobs.values() if not _is_isolated(job)]
        shares = Shares(settings.concurrency, (), _caps(own))
        self._crew = Crew(settings.concurrency, self._outbox, self._is_held, shares)
        self._isolated = self._processes(settings.isolated) if len(own) < len(jobs) else None
        self._alone = None if settings.reference is None else self._processes(SUSPECTS, max_runs=1)
        self._pools = [pool for pool in (self._isolated, self._alone) if pool is not None]
        self._executors: dict[str, FunctionExecutor] = {
            name: self._isolated if self._isolated is not None and _is_isolated(job) else job.executor(self._crew)
            for name, job in jobs.items()
        }
        self._running: dict[Ref, asyncio.Task[None]] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._is_stopping = False

    def _processes(self, count: int, **more: int) -> IsolatedFunctions:
        if self._settings.reference is None:
            raise Invalid(
                "A job runs in its own process, which does not know where to find the application.",
                "Start the worker with `horai worker module:app`.",
            )
        waiting = max(self._settings.concurrency // 2, 1)
        app, is_held = self._settings.reference, self._is_held
        made = IsolatedFunctions(app, count, waiting=waiting, environment=None, is_held=is_held, **more)
        made.notes = self._outbox
        return made

    async def run(self, stop: asyncio.Event, ready: Callable[[str], None]) -> None:
        """Work until `stop` is set. `ready` is called once a server has accepted the worker."""
        linked = asyncio.create_task(self._link.run())
        told = asyncio.create_task(stop.wait())
        welcomed = asyncio.create_task(self._link.welcomed.wait())
        try:
            await asyncio.wait({linked, told, welcomed}, return_when=asyncio.FIRST_COMPLETED)
            if welcomed.done():
                ready(f"worker {self._settings.name} ({', '.join(self._jobs)})")
            await asyncio.wait({linked, told}, return_when=asyncio.FIRST_COMPLETED)
            if linked.done():
                linked.result()
            await self._drain()
        finally:
            for task in (linked, told, welcomed, *self._running.values()):
                task.cancel()
            await asyncio.gather(linked, told, welcomed, *self._running.values(), return_exceptions=True)
            self._crew.close()
            for pool in self._pools:
                await pool.close()

    async def _drain(self) -> None:
        """Take no more work, let functions end within the grace period, and wait for the answers to their reports."""
        self._is_stopping = True
        self._link.send(Credits(0))
        try:
            async with asyncio.timeout(self._settings.grace.total_seconds()):
                await self._idle.wait()
        except TimeoutError:
            for task in list(self._running.values()):
                task.cancel()
        try:
            async with asyncio.timeout(ANSWERS_WITHIN):
                await self._idle.wait()
                while self._outbox.reports:
                    await self._link.heard()
        except TimeoutError:
            log.warning(
                "not all reports were answered; the server settles their instances", reports=len(self._outbox.reports)
            )
        self._link.send(Bye())
        await self._link.left()

    def _hello(self) -> Hello:
        caps = _caps(self._jobs.values())
        refs = dict.fromkeys((*self._running, *self._outbox.reports))
        return Hello(
            PROTOCOL,
            self._settings.name,
            [HandlerOffer(name, caps.get(name, 0)) for name in self._jobs],
            self._settings.concurrency,
            None if self._settings.queues is None else sorted(self._settings.queues),
            [AttemptRef(str(instance), fence) for instance, fence in refs],
        )

    def _hear(self, message: ServerMessage) -> None:
        match message:
            case Welcome():
                self._enter(message)
            case Leases(leases):
                for lease in leases:
                    self._begin(lease)
            case Answers(answers):
                self._take_answers(answers)
            case Cancel(attempts):
                self._cancel(attempts)
            case Drain():
                self._link.move_on()
            case WorkerError():
                log.warning("The server has refused a message.", detail=message.detail, hint=message.hint)
            case Heartbeat():
                pass

    def _enter(self, welcome: Welcome) -> None:
        if welcome.unknown_handlers:
            log.warning("The tenant has no job for these functions.", functions=welcome.unknown_handlers)
        if self._is_stopping:
            self._link.send(Credits(0))

    def _take_answers(self, answers: Sequence[Answer]) -> None:
        for answer in answers:
            known = self._outbox.answered((int(answer.instance), answer.fence))
            if known is not None and answer.result != "settled":
                log.warning("A report came too late.", instance=answer.instance, detail=answer.detail)

    def _cancel(self, attempts: Sequence[AttemptRef]) -> None:
        for each in attempts:
            for runner in (self._crew, *self._pools):
                runner.claim_over(int(each.instance), each.fence)

    def _begin(self, lease: LeasedAttempt) -> None:
        """Begin an attempt, unless it runs already: a lease that was lost on the way is sent again."""
        welcome = self._link.welcome
        ref = (int(lease.instance), lease.fence)
        if welcome is None or ref in self._running or ref in self._outbox.reports:
            return
        task = asyncio.create_task(self._attempt(self._executor(lease), call_of_lease(lease, welcome.tenant)))
        self._running[ref] = task
        self._idle.clear()

    def _executor(self, lease: LeasedAttempt) -> FunctionExecutor | None:
        """Return the executor. An instance that may have killed its workers gets a process of its own."""
        usual = self._executors.get(lease.handler)
        is_suspect = lease.alone and usual is not None and usual is not self._isolated
        return self._alone or usual if is_suspect else usual

    async def _attempt(self, executor: FunctionExecutor | None, call: Call) -> None:
        """Run an attempt and report its outcome."""
        outcome: Outcome = STOPPED
        try:
            if executor is not None and self._is_held(call):
                outcome = await outcome_of(executor.run(call))
            else:
                outcome = NotSent()
        finally:
            self._running.pop((call.instance_id, call.fence), None)
            self._outbox.add(report_of(call, outcome))
            if not self._running:
                self._idle.set()

    def _is_held(self, _: Call) -> bool:
        """Return whether a call may begin: the server counts on this worker, and would not lease the call again."""
        return self._link.is_trusted


def _caps(jobs: Any) -> dict[str, int]:
    """Return the functions that have a limit of their own."""
    return {job.name: job.declaration.concurrency for job in jobs if job.declaration.concurrency is not None}


def _is_isolated(job: Job[..., Any]) -> bool:
    return job.declaration.isolation == "process"
