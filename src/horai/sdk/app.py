"""Horai: the jobs and workflows of an application, and its connection to the database."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Protocol, Self, TypeVar, Unpack, overload
from weakref import WeakKeyDictionary

from horai.core.errors import Invalid
from horai.db import jobs as stored_jobs
from horai.db.database_location import DatabaseLocation, choose_database
from horai.db.instance_queries import EndedInstance
from horai.engine.dispatch.births import Births
from horai.features.workflow.declare import compare_workflows, declare_workflows
from horai.features.workflow.service import WrittenWorkflow
from horai.operations import declarations
from horai.operations.declarations import DeclaredChanges, DeclaredJob, Owner
from horai.operations.scope import Scope
from horai.sdk.client import Client, open_client
from horai.sdk.declaration import Options, declaration_of
from horai.sdk.job import Job
from horai.sdk.job_api import Verbs
from horai.sdk.portal import PORTAL
from horai.sdk.reconcile import Source, bind_declared, comparison_of
from horai.sdk.workflow import Node, Workflow

R = TypeVar("R")

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
        self._owner = Owner(name, frozenset([formerly] if isinstance(formerly, str) else formerly))
        self._database_url = database_url
        self._data_dir = None if data_dir is None else Path(data_dir)
        self._jobs: dict[str, Job[Any]] = {}
        self._workflows: dict[str, Workflow] = {}
        self._watched: dict[str, Verbs[Any]] = {}
        self.births: Births | None = None
        """The claims at birth of the worker that runs this application in this process."""
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Task[Client]] = WeakKeyDictionary()

    @property
    def title(self) -> str:
        """Return the application as messages name it."""
        return "the application without a name" if self.name is None else f"the application {self.name!r}"

    @property
    def jobs(self) -> Mapping[str, Job[Any]]:
        """The application's jobs by name."""
        return MappingProxyType(self._jobs)

    @property
    def workflows(self) -> Mapping[str, Workflow]:
        """The application's workflows by name."""
        return MappingProxyType(self._workflows)

    @property
    def place(self) -> DatabaseLocation:
        """The location of the application's database."""
        return choose_database(self._database_url, self._data_dir, os.environ)

    @overload
    def job(self, function: Callable[..., Awaitable[R]], /, **options: Unpack[Options]) -> Job[R]: ...
    @overload
    def job(self, function: Callable[..., R], /, **options: Unpack[Options]) -> Job[R]: ...
    @overload
    def job(self, /, **options: Unpack[Options]) -> "_Decorator": ...
    def job(self, function: Callable[..., Any] | None = None, /, **options: Unpack[Options]) -> Any:
        """Declare a job: `@app.job` or `@app.job(cron="0 9 * * *", timezone="Asia/Shanghai")`.

        The function takes no argument, the `Instance`, or (by its annotation) the payload. It may be async or not.
        """
        if function is None:
            return partial(self._declare, options)
        return self._declare(options, function)

    def _declare(self, options: Options, function: Callable[..., Any]) -> Job[Any]:
        declaration = declaration_of(function, options)
        if declaration.name in self._jobs:
            raise Invalid(
                f"The job {declaration.name!r} is declared twice in {self.title}.", 'Give one of them name="…".'
            )
        job: Job[Any] = Job(self, function, declaration)
        self._jobs[job.name] = job
        return job

    def workflow(self, name: str, /, nodes: Sequence[Node], **options: Unpack[Options]) -> Workflow:
        """Declare a workflow: `app.workflow("nightly", [Node(load), Node(report, after=[load])], cron="0 2 * * *")`.

        A node begins when all nodes in its `after` have succeeded. Its payload has their results as `parents`.
        """
        if name in self._jobs or name in self._workflows:
            raise Invalid(f"The name {name!r} is declared twice in {self.title}.", "Give one of them another name.")
        made = self._workflows[name] = Workflow(self, name, nodes, options)
        return made

    def reconcile(self, *, job: Verbs[Any], **options: Unpack[Options]) -> "Callable[[Source], Job[Any]]":
        """Declare a reconciler: `@app.reconcile(every="5m", job=publish)` on a function that yields `Wanted(key, at)`.

        The reconciler creates an instance of `publish` for each wanted key that has none, live or ended. The function
        takes no argument; async or not, it yields the `Wanted` objects or returns them.
        """

        def declare(function: Source) -> Job[Any]:
            named: Options = {"name": function.__name__, "overlap": "skip", **options}
            if "cron" not in options and "every" not in options:
                named.pop("overlap", None)
            made = self._declare(named, comparison_of(self._client_now, function, job))
            self._watched[made.name] = job
            return made

        return declare

    async def _client_now(self) -> Client:
        """Return the current client. Looked up at each call, because a test harness replaces it."""
        return await self.client()

    @property
    def formerly(self) -> frozenset[str]:
        """Return the former names of the application."""
        return self._owner.formerly

    @property
    def reconcilers(self) -> frozenset[str]:
        """Return the names of the jobs that compare a source with the database."""
        return frozenset(self._watched)

    async def client(self) -> Client:
        """Return the client of this event loop; open it on first use. Raise `NoDatabaseHere` in a remote worker."""
        if os.environ.get(NO_DATABASE):
            raise NoDatabaseHere(
                "A remote worker has no database: its functions cannot add, move or read instances with the SDK.",
                "Call the REST API with a key of the role operator, or run this function in a worker beside the database.",
            )
        loop = asyncio.get_running_loop()
        opening = self._clients.get(loop)
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception() is not None)):
            opening = self._clients[loop] = asyncio.create_task(open_client(self.place, lambda: self.births))
        return await asyncio.shield(opening)

    async def ended(self, instance_id: int) -> EndedInstance:
        """Wait until the instance is final and return it."""
        return await (await self.client()).ended(instance_id)

    async def standing(self, instance_id: int) -> str:
        """Describe the state of the instance now, for a message."""
        return await (await self.client()).standing(instance_id)

    async def declare(self) -> DeclaredChanges:
        """Update the jobs in the database to match the code. An operator's pause is kept."""
        return await self.declare_to((await self.client()).scope)

    async def declare_to(self, scope: Scope, *, may_be_unnamed: bool = False) -> DeclaredChanges:
        """Declare the jobs in another scope, then the reconcilers and workflows, which are made of the jobs.

        Raises `Unnamed` for an application without a name, unless the caller knows that no other one uses the database.
        """
        if not may_be_unnamed:
            self.require_name()
        applied = await declarations.declare(scope, self._owner, self.declared())
        await bind_declared(scope, self._watched)
        return applied + await declare_workflows(scope, self._owner, self.declared_workflows())

    def require_name(self) -> None:
        """Raise `Unnamed` if the application has no name."""
        if self.name is None:
            raise Unnamed(UNNAMED, NAME_IT)

    async def compare_to(self, scope: Scope) -> DeclaredChanges:
        """Return the changes that `declare_to` would make, without making them."""
        applied = await declarations.compare(scope, self._owner, self.declared())
        return applied + await compare_workflows(scope, self._owner, self.declared_workflows(), self._jobs)

    async def declare_missing(self, job: Verbs[Any]) -> bool:
        """Declare a job that the database does not have; return False if it has it. Other jobs do not change.

        Raises `Unnamed` if the job is missing and the application has no name to own it.
        """
        scope = (await self.client()).scope
        async with scope.read() as connection:
            if await stored_jobs.find_job(connection, scope.tenant_id, job.name) is not None:
                return False
        self.require_name()
        await declarations.declare(scope, self._owner, [_declared(job)])
        return True

    def declared(self) -> list[DeclaredJob]:
        """Return the application's jobs as they are declared."""
        return [_declared(job) for job in self._jobs.values()]

    def declared_workflows(self) -> list[WrittenWorkflow]:
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


class _Decorator(Protocol):
    """The decorator that `@app.job(…)` returns."""

    @overload
    def __call__(self, function: Callable[..., Awaitable[R]], /) -> Job[R]: ...
    @overload
    def __call__(self, function: Callable[..., R], /) -> Job[R]: ...
    def __call__(self, function: Any, /) -> Any: ...


def _declared(job: Verbs[Any]) -> DeclaredJob:
    return DeclaredJob(job.declaration.document, job.declaration.payload)
