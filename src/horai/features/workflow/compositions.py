"""Start a composition: a run of the workflow of its form, once for each idempotency key."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import asyncpg
import msgspec

from horai.core.audit import AuditVerb
from horai.core.errors import Conflict, Duplicate, Invalid, NotFound
from horai.core.job import is_builtin
from horai.core.payload_text import payload_text
from horai.core.validation import Validation
from horai.db.claims import Claimable
from horai.db.jobs import jobs_by_name
from horai.db.pool import TenantWrite
from horai.features.workflow import composition_store
from horai.features.workflow.composition_store import TakenKey
from horai.features.workflow.definition import checked_nodes
from horai.features.workflow.forms import Form, FormPlan, plan_of
from horai.features.workflow.graph import NODES_LIMIT
from horai.features.workflow.service import WrittenWorkflow, create_workflow, read_workflow, require_workflow
from horai.features.workflow.store import WorkflowRow
from horai.features.workflow.written_forms import WrittenCall, calls_in
from horai.operations import audit, request_keys
from horai.operations.enqueue import enqueue_within
from horai.operations.scope import Scope
from horai.text import Hint, Refused, Wrong


class StartedComposition(NamedTuple):
    """The run of a composition, and whether this call has started it."""

    run_id: int
    is_new: bool


@dataclass(frozen=True, slots=True)
class FormRun:
    """The run of a composition, and the workflow of its form."""

    run: StartedComposition
    workflow: WorkflowRow
    nodes: Sequence[str]


async def compose(scope: Scope, form: Form, at: datetime | None, key: str | None) -> FormRun:
    """Start a composition as a client has written it, once for each key. Its form is defined if the database does not have it.

    Raises `Invalid` with the path of every call whose job does not exist or cannot be composed.
    """
    await _check_jobs(scope, list(calls_in(form)))
    plan = plan_of(form)
    if len(plan.nodes) > NODES_LIMIT:
        raise Invalid.field("body", Wrong.NODE_COUNT(most=NODES_LIMIT))
    payload = payload_text(msgspec.Raw(plan.payload), "body")
    assert payload is not None  # noqa: S101 — it is an object
    try:
        run = await start_composition(scope, plan.name, at, payload, key, audits=True)
    except NotFound:
        await define_form(scope, plan)
        run = await start_composition(scope, plan.name, at, payload, key, audits=True)
    workflow = (await read_workflow(scope, plan.name)).row
    return FormRun(run, workflow, [node["name"] for node in plan.nodes])


async def _check_jobs(scope: Scope, calls: Sequence[WrittenCall]) -> None:
    """Give each call the payload of its job. Raises `Invalid` with the path of every call that cannot be made."""
    async with scope.read() as connection:
        jobs = await jobs_by_name(connection, scope.tenant_id, sorted({call.job_name for call in calls}))
    faults = Validation()
    for path, call in {call.job_path: call for call in calls}.items():
        job = jobs.get(call.job_name)
        if job is None:
            faults.add(path, Wrong.NO_SUCH_JOB(name=call.job_name[:128]), Hint.CREATE_JOBS_FIRST())
        elif is_builtin(job.document) or job.ticks_for is not None:
            faults.add(path, Wrong.JOB_IS_BUILTIN(name=job.name))
        elif job.is_encrypted or job.search_paths:
            faults.add(path, Wrong.JOB_SEALED(name=job.name), Hint.WORKFLOW_FOR_SEALED())
    faults.raise_if_any()
    for call in calls:
        call.own = jobs[call.job_name].payload
        _check_takes(call, faults)
    faults.raise_if_any()


def _check_takes(call: WrittenCall, faults: Validation) -> None:
    if not isinstance(call.takes, str):
        return
    members = call.members()
    if members is None:
        faults.add(call.payload_path, Wrong.TAKES_BESIDE(name=call.takes[:64]))
    elif call.takes in members:
        faults.add(call.payload_path, Wrong.TAKES_TWICE(name=call.takes[:64]))


async def start_composition(
    scope: Scope, form: str, at: datetime | None, payload: str, key: str | None, *, audits: bool = False
) -> StartedComposition:
    """Start a composition of a form that is defined. With a key the first call starts it; later ones get the same run.

    The key, the run and their bond are one transaction. Raises `NotFound` if the form is not defined, and `Invalid` if the key
    has started another composition. `audits`: the start is recorded in the audit log.
    """
    if key is not None:
        request_keys.check_request_key(key)
    woken = list[Claimable]()
    async with scope.write() as connection:
        if key is not None:
            try:
                taken = await composition_store.take_key(connection, scope.tenant_id, key, form, payload)
            except asyncpg.LockNotAvailableError as error:
                raise Conflict(Refused.KEY_IN_FLIGHT(key=key), Hint.REPEAT_SOON(), extra={"retryAfter": "1"}) from error
            if not taken.is_first:
                return StartedComposition(_first_run(taken, key), is_new=False)
        woken = await enqueue_within(connection, scope.tenant_id, form, [(at, payload)])
        if audits:
            await _audit(connection, scope, form, woken[0].id)
        if key is not None:
            await composition_store.bind_key(connection, scope.tenant_id, key, woken[0].id)
    scope.wakeups.announce_new(woken)
    return StartedComposition(woken[0].id, is_new=True)


async def _audit(connection: TenantWrite, scope: Scope, form: str, instance_id: int) -> None:
    workflow = await require_workflow(connection, scope, form)
    after = {"instance": str(instance_id)}
    await audit.record_write(connection, scope, AuditVerb.WORKFLOW_COMPOSE, workflow.row.id, form, after)


async def define_form(scope: Scope, plan: FormPlan) -> None:
    """Create the workflow of a form. Another process may do the same."""
    nodes = checked_nodes(plan.nodes, [None] * len(plan.nodes))
    with suppress(Duplicate):
        await create_workflow(scope, WrittenWorkflow(plan.document, nodes, None))


def _first_run(taken: TakenKey, key: str) -> int:
    if taken.is_same is None:
        raise request_keys.too_many_keys()
    if not taken.is_same:
        raise Invalid(Refused.KEY_OTHER_COMPOSITION(key=key), Hint.KEY_FOR_EACH_COMPOSITION())
    assert taken.first_instance is not None  # noqa: S101 — the transaction that takes a key binds it
    return taken.first_instance
