"""The findings of `horai check`: jobs, workflows and problems of an application, and the effect of a deploy."""

import inspect
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from horai.core.errors import Invalid
from horai.core.queue import parse_rate
from horai.db.migrate import migrations, pending_migrations
from horai.db.pool import close_pool, open_pool, opened
from horai.db.wakeups import Wakeups
from horai.operations.declared_owner import QUEUE_WORD, DeclaredChanges
from horai.sdk.app import NAME_IT, UNNAMED, Horai
from horai.sdk.client import process_keyring, process_scope
from horai.sdk.job import Job
from horai.sdk.payloads import Form, Signature
from horai.sdk.queues import Queue
from horai.sdk.unsafe_calls import unsafe_calls
from horai.sdk.workflow import Workflow

ON_DEMAND = "on demand"


@dataclass(frozen=True, slots=True)
class JobFound:
    """A job as the code declares it, as text."""

    name: str
    schedule: str
    queue: str
    function: str
    payload: str


@dataclass(frozen=True, slots=True)
class WorkflowFound:
    """A workflow as the code declares it; `nodes` are names."""

    name: str
    schedule: str
    queue: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueueFound:
    """A queue as the code declares it; `limits` is text."""

    name: str
    limits: str


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of a check. Without `deploy`, nothing was compared. `migrations` are those that the database lacks.

    `warnings` are calls of durable functions that belong into a step. They do not fail the check.
    """

    application: str | None
    jobs: tuple[JobFound, ...]
    workflows: tuple[WorkflowFound, ...] = ()
    problems: tuple[str, ...] = ()
    hint: str | None = None
    deploy: DeclaredChanges | None = None
    migrations: tuple[str, ...] = field(default=())
    warnings: tuple[str, ...] = ()
    queues: tuple[QueueFound, ...] = ()


async def survey(app: Horai, url: str | None) -> Findings:
    """Check the application and compare it with the database of the URL. Writes nothing."""
    jobs = tuple(described(job) for job in app.jobs.values())
    workflows = tuple(_workflow(workflow) for workflow in app.workflows.values())
    warnings = tuple(text for job in app.jobs.values() for text in _warnings(job))
    queues = tuple(_queue(queue) for queue in app.queues.values())
    found = Findings(app.name, jobs, workflows, warnings=warnings, queues=queues)
    if not found.jobs and not found.workflows:
        return replace(found, problems=(f"No job is declared in {app.title}.",), hint="Declare one: @app.job.")
    if app.name is None:
        return replace(found, problems=(UNNAMED,), hint=NAME_IT)
    if url is None:
        return found
    try:
        lacking, deploy = await _compared(app, url)
    except Invalid as error:
        faults = tuple(f"{fault.field}: {fault.message}" for fault in error.errors) or (error.detail,)
        return replace(found, problems=faults, hint=error.hint)
    return replace(found, deploy=deploy, migrations=lacking)


async def _compared(app: Horai, url: str) -> tuple[tuple[str, ...], DeclaredChanges | None]:
    """Return the missing migrations and the changes of a deploy; the changes are None on an older database."""
    async with opened(url, "horai check") as connection:
        lacking = await pending_migrations(connection)
    if lacking:
        is_empty = len(lacking) == len(migrations())
        names = tuple(f"{migration.number:04d}_{migration.name}" for migration in lacking)
        return names, _all_new(app) if is_empty else None
    pool = await open_pool(url, "horai check", 1)
    try:
        return (), await app.compare_to(await process_scope(pool, Wakeups(), process_keyring(app.place)))
    finally:
        await close_pool(pool)


def _all_new(app: Horai) -> DeclaredChanges:
    """Return the changes of a deploy to an empty database."""
    return DeclaredChanges(created=(*(QUEUE_WORD + name for name in app.queues), *app.jobs, *app.workflows))


def described(job: Job[..., Any]) -> JobFound:
    """Return the texts that describe a job."""
    document = job.declaration.document
    return JobFound(job.name, _schedule(document), document.get("queue", "default"), _function(job), _payload_type(job))


def _warnings(job: Job[..., Any]) -> list[str]:
    return [
        f"{os.path.relpath(found.file)}:{found.line}: {job.name} calls {found.call} outside a step, and the call is"
        f" repeated after each suspension. {found.advice}"
        for found in unsafe_calls(job)
    ]


def _workflow(workflow: Workflow) -> WorkflowFound:
    document, nodes = workflow.written.document, workflow.written.nodes
    queue = document.get("queue", "default")
    return WorkflowFound(workflow.name, _schedule(document), queue, tuple(node.name for node in nodes))


def _queue(queue: Queue) -> QueueFound:
    document = queue.document
    limits = [
        *([f"{most} at once"] if (most := document.get("maxConcurrency")) is not None else []),
        *([str(parse_rate(rate))] if (rate := document.get("rate")) is not None else []),
        *([f"priority {priority}"] if (priority := document.get("priority")) is not None else []),
    ]
    return QueueFound(queue.name, ", ".join(limits) or "no limits")


def _schedule(document: Mapping[str, Any]) -> str:
    if (cron := document.get("cron")) is not None:
        return f"{cron} ({document.get('timezone', 'UTC')})"
    if (every := document.get("every")) is not None:
        return f"every {every}"
    return ON_DEMAND


def _function(job: Job[..., Any]) -> str:
    """Describe the function, for example `async (instance)`, `() in a process` or `() on Ray`."""
    signature = job.declaration.signature
    takes = _takes(signature)
    kind = "async " if signature.is_async else ""
    place = " in a process" if job.declaration.isolation else " on Ray" if job.declaration.ray else ""
    most = f", {job.declaration.concurrency} at once" if job.declaration.concurrency else ""
    return f"{kind}{takes}{place}{most}"


def _takes(signature: Signature) -> str:
    """Return the parameters: the names of several, `payload` for the only one."""
    is_instance = signature.is_given or signature.form is Form.instance
    names = ["payload"] if signature.form is Form.payload else [each.name for each in signature.parameters]
    return f"({', '.join(['instance', *names] if is_instance else names)})"


def _payload_type(job: Job[..., Any]) -> str:
    """Return the type of the payload as its module names it, or `any` without an annotation."""
    signature = job.declaration.signature
    if signature.shape.schema is None:
        return "any"
    parameters = list(inspect.signature(job, eval_str=True).parameters.values())[signature.is_given :]
    if signature.form is Form.instance:
        return _type_name(job, get_args(parameters[0].annotation)[0])
    if signature.form is Form.payload:
        return _type_name(job, parameters[0].annotation)
    return ", ".join(f"{each.name}: {_type_name(job, each.annotation)}" for each in parameters)


def _type_name(job: Job[..., Any], annotation: object) -> str:
    if annotation is inspect.Parameter.empty:
        return "any"
    return inspect.formatannotation(annotation, base_module=job.__module__)
