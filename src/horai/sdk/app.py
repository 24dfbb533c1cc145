"""Horai: the jobs and workflows of an application, and its connection to the database."""

import asyncio
import inspect
import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack, cast, overload
from weakref import WeakKeyDictionary

from horai.core.assets import ASSET_NAME
from horai.core.errors import Invalid
from horai.sdk.assets import Asset
from horai.sdk.declaration import Declaration, Options, declaration_of
from horai.sdk.deferred import runtime
from horai.sdk.deferred import workflow as workflow_module
from horai.sdk.handle import Handle, handle_of
from horai.sdk.instance import Instance
from horai.sdk.job import FunctionJob, InstanceJob, Job, JobDecorator
from horai.sdk.job_api import Verbs
from horai.sdk.lifecycle import (
    Hook,
    Lifecycle,
    Middleware,
    Resource,
    checked_hook,
    checked_middleware,
    checked_resource,
)
from horai.sdk.payloads import Form, shape_of
from horai.sdk.portal import PORTAL
from horai.sdk.queues import Queue, QueueOptions, queue_of
from horai.sdk.reconcile import Source, bind_declared, comparison_of
from horai.text import Hint

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
H = TypeVar("H", bound=Hook)

UNNAMED = "The application has no name, and declaring its jobs requires one."
NAME_IT = 'Name it: app = Horai("shop"). Without a name, it runs only under `horai up --app` on the embedded database.'


NO_DATABASE = "HORAI_REMOTE_WORKER"
"""The variable that is set in the processes of a remote worker, which has no database."""


class NoDatabaseHere(Invalid):
    """A function in a remote worker has called a method that needs the database."""


class Unnamed(Invalid):
    """An application without a name was asked to declare its jobs."""


class Horai:
    """An application: its jobs by name, and one client of the database per event loop, opened on first use.

    Without a `database_url`, it uses the database of HORAI_DATABASE_URL, or the embedded database of a running `horai
    up` in `data_dir` (HORAI_DATA_DIR, or the default directory). It never starts a database.

    `name` is the owner of the jobs that the code declares: no other application on the same database can declare them.
    An application without a name only adds instances of jobs that exist; `horai up --app` on its embedded database runs
    its functions too. `formerly` are former names: the application takes over the jobs that it declared under them.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        formerly: str | Sequence[str] = (),
        database_url: str | None = None,
        data_dir: str | Path | None = None,
    ) -> None:
        self.name = name
        self._formerly = frozenset([formerly] if isinstance(formerly, str) else formerly)
        self._database_url = database_url
        self._data_dir = None if data_dir is None else Path(data_dir)
        self._jobs: dict[str, Job[..., Any]] = {}
        self._workflows: dict[str, workflow_module.Workflow] = {}
        self._queues: dict[str, Queue] = {}
        self._watched: dict[str, Verbs[..., Any]] = {}
        self._lifecycle = Lifecycle()
        self.births: runtime.Births | None = None
        """The claims at birth of the worker that runs this application in this process."""
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Task[runtime.Client]] = WeakKeyDictionary()

    @property
    def title(self) -> str:
        """Return the application as messages name it."""
        return "the application without a name" if self.name is None else f"the application {self.name!r}"

    @property
    def jobs(self) -> Mapping[str, Job[..., Any]]:
        """The application's jobs by name."""
        return MappingProxyType(self._jobs)

    @property
    def queues(self) -> Mapping[str, Queue]:
        """The queues that the application declares, by name."""
        return MappingProxyType(self._queues)

    @property
    def workflows(self) -> "Mapping[str, workflow_module.Workflow]":
        """The application's workflows by name."""
        return MappingProxyType(self._workflows)

    @property
    def place(self) -> "runtime.DatabaseLocation":
        """The location of the application's database."""
        return runtime.choose_database(self._database_url, self._data_dir, os.environ)

    @overload
    def job(
        self, function: Callable[[Instance[T]], Coroutine[Any, Any, R]], /, **options: Unpack[Options]
    ) -> InstanceJob[T, Coroutine[Any, Any, R], R]: ...
    @overload
    def job(
        self,
        function: Callable[Concatenate[Instance[Any], P], Coroutine[Any, Any, R]],
        /,
        **options: Unpack[Options],
    ) -> FunctionJob[Concatenate[Instance[Any], P], Coroutine[Any, Any, R], P, R]: ...
    @overload
    def job(
        self, function: Callable[P, Coroutine[Any, Any, R]], /, **options: Unpack[Options]
    ) -> FunctionJob[P, Coroutine[Any, Any, R], P, R]: ...
    @overload
    def job(self, function: Callable[[Instance[T]], R], /, **options: Unpack[Options]) -> InstanceJob[T, R, R]: ...
    @overload
    def job(
        self, function: Callable[Concatenate[Instance[Any], P], R], /, **options: Unpack[Options]
    ) -> FunctionJob[Concatenate[Instance[Any], P], R, P, R]: ...
    @overload
    def job(self, function: Callable[P, R], /, **options: Unpack[Options]) -> FunctionJob[P, R, P, R]: ...
    @overload
    def job(self, /, **options: Unpack[Options]) -> JobDecorator: ...
    def job(self, function: Callable[..., Any] | None = None, /, **options: Unpack[Options]) -> Any:
        """Declare a job: `@app.job` or `@app.job(cron="0 9 * * *", timezone="Asia/Shanghai")`.

        The function takes no argument, the `Instance`, or parameters with the types of its payload. The `Instance` may
        come before them. It may be async or not.
        """
        if function is None:
            return partial(self._declare, options)
        return self._declare(options, function)

    def _declare(self, options: Options, function: Callable[..., Any]) -> Job[..., Any]:
        return self._add(declaration_of(function, options), function)

    def queue(self, name: str, /, **options: Unpack[QueueOptions]) -> Queue:
        """Declare a queue and its limits: `mail = app.queue("mail", max_concurrency=5)`, and `@app.job(queue=mail)`.

        A start of the application sets what the options say, and defaults for the others. A pause is left to the operator.
        """
        made = queue_of(name, options)
        if name in self._queues:
            raise Invalid(
                f"The queue {name!r} is declared twice in {self.title}.", "Declare it once, and share the object."
            )
        self._queues[name] = made
        return made

    def take_jobs(self, other: "Horai", but: str) -> None:
        """Declare the jobs of another application here too, with the same functions and options, except `but`.

        Its queues are declared here as well.
        """
        self._queues |= other.queues
        for job in other.jobs.values():
            if job.name != but:
                self._add(job.declaration, inspect.unwrap(cast("Callable[..., Any]", job)))

    def _add(self, declaration: Declaration, function: Callable[..., Any]) -> Job[..., Any]:
        if declaration.name in self._jobs:
            raise Invalid(
                f"The job {declaration.name!r} is declared twice in {self.title}.", 'Give one of them name="…".'
            )
        kind = InstanceJob if declaration.signature.form is Form.instance else FunctionJob
        job = cast("Job[..., Any]", kind(self, function, declaration))
        self._jobs[job.name] = job
        return job

    @property
    def lifecycle(self) -> Lifecycle:
        """The hooks, resources and middleware of the application."""
        return self._lifecycle

    def on_startup(self, hook: H) -> H:
        """Run a function, async or not, in each process that runs functions, before its first call.

        It runs after the resources are open. An error ends the start of the process.
        """
        self._lifecycle.startup.append(checked_hook(hook))
        return hook

    def on_shutdown(self, hook: H) -> H:
        """Run a function, async or not, in each process that runs functions, after its last call.

        A process that is killed does not run it. An error is logged.
        """
        self._lifecycle.shutdown.append(checked_hook(hook))
        return hook

    def resource(self, make: Callable[[], AsyncGenerator[T]]) -> Resource[T]:
        """Declare a value that the functions of a process share: `@app.resource` on an async generator that yields it.

        Each process that runs functions opens it once, before its first call. Functions read it with `get()`.
        """
        made = checked_resource(make)
        self._lifecycle.resources.append(made)
        return made

    def middleware(self, middleware: Middleware) -> Middleware:
        """Run `async def m(instance, call_next)` around each call of a function; the first declared is the outermost.

        It returns the result of the function, or another one, and sees the errors that the function raises.
        """
        self._lifecycle.middleware.append(checked_middleware(middleware))
        return middleware

    def workflow(
        self,
        name: str,
        /,
        nodes: "Sequence[workflow_module.Node]",
        *,
        params: "workflow_module.Params | None" = None,
        **options: Unpack[Options],
    ) -> "workflow_module.Workflow":
        """Declare a workflow: `app.workflow("nightly", [Node(load), Node(report, after=[load])], cron="0 2 * * *")`.

        A node begins when all nodes in its `after` have succeeded. Its payload has their results as `parents`. The
        payload of every run has to fit `params`, a type or a JSON Schema.
        """
        if name in self._jobs or name in self._workflows:
            raise Invalid(f"The name {name!r} is declared twice in {self.title}.", "Give one of them another name.")
        made = self._workflows[name] = workflow_module.Workflow(self, name, nodes, options, params)
        return made

    def reconcile(self, *, job: Verbs[..., Any], **options: Unpack[Options]) -> "Callable[[Source], Job[..., Any]]":
        """Declare a reconciler: `@app.reconcile(every="5m", job=publish)` on a function that yields `Wanted(key, at)`.

        The reconciler creates an instance of `publish` for each wanted key that has none, live or ended. The function
        takes no argument; async or not, it yields the `Wanted` objects or returns them.
        """

        def declare(function: Source) -> Job[..., Any]:
            named: Options = {"name": function.__name__, "overlap": "skip", **options}
            if "cron" not in options and "every" not in options:
                named.pop("overlap", None)
            made = self._declare(named, comparison_of(self._client_now, function, job))
            self._watched[made.name] = job
            return made

        return declare

    async def _client_now(self) -> "runtime.Client":
        """Return the current client. Looked up at each call, because a test harness replaces it."""
        return await self.client()

    def asset(self, name: str) -> Asset:
        """Return the handle of a data asset, for `produces` and `when`, and to update it from outside."""
        if not ASSET_NAME.fullmatch(name):
            raise Invalid.field("name", f"{name[:40]!r} is not the name of an asset", str(Hint.NAME_ASSET()))
        return Asset(self, name)

    @property
    def formerly(self) -> frozenset[str]:
        """Return the former names of the application."""
        return self._formerly

    @property
    def _owner(self) -> "runtime.Owner":
        return runtime.Owner(self.name, self._formerly)

    @property
    def reconcilers(self) -> frozenset[str]:
        """Return the names of the jobs that compare a source with the database."""
        return frozenset(self._watched)

    async def client(self) -> "runtime.Client":
        """Return the client of this event loop; open it on first use. Raise `NoDatabaseHere` in a remote worker."""
        if os.environ.get(NO_DATABASE):
            raise NoDatabaseHere(
                "A remote worker has no database: its functions cannot add, move or read instances with the SDK.",
                "Call the REST API with a key of the role operator, or run this function in a worker beside the database.",
            )
        loop = asyncio.get_running_loop()
        opening = self._clients.get(loop)
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception() is not None)):
            opening = self._clients[loop] = asyncio.create_task(runtime.open_client(self.place, lambda: self.births))
        return await asyncio.shield(opening)

    def handle(self, instance_id: str | int) -> Handle[Any]:
        """Return a handle of an instance by its id. Its methods raise `NotFound` if there is none.

        `job.handle(id)` has the type of the job's result.
        """
        return handle_of(instance_id, self, shape_of(Any, "result"))

    def handle_sync(self, instance_id: str | int) -> "runtime.SyncHandle[Any]":
        """Return a handle of an instance by its id, with methods without `await`."""
        return runtime.SyncHandle(self.handle(instance_id))

    async def ended(self, instance_id: int) -> "runtime.EndedInstance":
        """Wait until the instance is final and return it."""
        return await (await self.client()).ended(instance_id)

    async def standing(self, instance_id: int) -> str:
        """Describe the state of the instance now, for a message."""
        return await (await self.client()).standing(instance_id)

    async def signal(
        self, instance: str, name: str, payload: object = None, *, idempotency_key: str | None = None
    ) -> bool:
        """Send a signal to a live instance by its id. Return False if the idempotency key was used before."""
        sent = runtime.signal_of(name, payload, idempotency_key)
        return (await runtime.signal_by_id((await self.client()).scope, int(instance), sent)).is_new

    async def declare(self) -> "runtime.DeclaredChanges":
        """Update the queues and jobs in the database to match the code. An operator's pause is kept."""
        return await self.declare_to((await self.client()).scope)

    async def declare_to(self, scope: "runtime.Scope", *, may_be_unnamed: bool = False) -> "runtime.DeclaredChanges":
        """Declare the queues and jobs in another scope, then the reconcilers and workflows, which are made of the jobs.

        Raises `Unnamed` for an application without a name, unless the caller knows that no other one uses the database.
        """
        if not may_be_unnamed:
            self.require_name()
        applied = await runtime.declarations.declare(scope, self._owner, self.declared(), self.declared_queues())
        await bind_declared(scope, self._watched)
        return applied + await runtime.declare_workflows(scope, self._owner, self.declared_workflows())

    def require_name(self) -> None:
        """Raise `Unnamed` if the application has no name."""
        if self.name is None:
            raise Unnamed(UNNAMED, NAME_IT)

    async def compare_to(self, scope: "runtime.Scope") -> "runtime.DeclaredChanges":
        """Return the changes that `declare_to` would make, without making them."""
        applied = await runtime.declarations.compare(scope, self._owner, self.declared(), self.declared_queues())
        return applied + await runtime.compare_workflows(scope, self._owner, self.declared_workflows(), self._jobs)

    async def declare_missing(self, job: Verbs[..., Any]) -> None:
        """Declare a job, and its queue, if the database does not have the job. Other jobs do not change.

        Raises `Unnamed` if the job is missing and the application has no name to own it.
        """
        scope = (await self.client()).scope
        async with scope.read() as connection:
            if await runtime.stored_jobs.find_job(connection, scope.tenant_id, job.name) is not None:
                return
        self.require_name()
        queue = self._queues.get(job.declaration.document.get("queue", ""))
        queues = [] if queue is None else [queue.document]
        await runtime.declarations.declare(scope, self._owner, [_declared(job)], queues)

    def declared(self) -> "list[runtime.DeclaredJob]":
        """Return the application's jobs as they are declared."""
        return [_declared(job) for job in self._jobs.values()]

    def declared_queues(self) -> list[dict[str, Any]]:
        """Return the application's queues as they are declared: documents with their names."""
        return [dict(queue.document) for queue in self._queues.values()]

    def declared_workflows(self) -> "list[runtime.WrittenWorkflow]":
        """Return the application's workflows as they are declared."""
        return [workflow.written for workflow in self._workflows.values()]

    async def close(self) -> None:
        """Close the client of this event loop."""
        opening = self._clients.pop(asyncio.get_running_loop(), None)
        if opening is not None:
            await (await opening).close()

    def close_sync(self) -> None:
        """Close the client of the methods without `await`."""
        PORTAL.run(self.close())

    async def __aenter__(self) -> Self:
        await self.client()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        await self.close()


def _declared(job: Verbs[..., Any]) -> "runtime.DeclaredJob":
    return runtime.DeclaredJob(job.declaration.document, job.declaration.payload)
