"""Operations of remote workers in the database: the start of a session, and reports of attempts that it does not hold."""

import json
from typing import Any, cast

from msgspec import Raw, UnsetType

from horai.api.body import payload_text
from horai.core.audit import AuditEntry, AuditVerb
from horai.core.errors import Invalid, NotFound, StaleOutcome
from horai.core.outcome import Outcome
from horai.core.wakes import EverywhereWake
from horai.features.remote_workers import store
from horai.features.remote_workers.phrases import WorkerWords
from horai.features.remote_workers.session import Ref, WorkerSession
from horai.operations import audit, declarations
from horai.operations.declarations import DeclaredJob
from horai.operations.declared_owner import Owner
from horai.operations.outcome import report_outcome
from horai.operations.scope import Scope
from horai.wire.worker_messages import Answer, ApplicationPart, DeclaredPart, Hello


async def record_start(scope: Scope, session: WorkerSession, hello: Hello) -> list[str]:
    """Record in the audit log that a worker has connected. Return its handlers for which the tenant has no job."""
    names = [offered.name for offered in hello.handlers]
    after = {"handlers": names, "queues": hello.queues, "credits": hello.credits}
    async with scope.write() as connection:
        entry = AuditEntry(AuditVerb.WORKER_CONNECT, "worker", session.id, session.name, after=after)
        await audit.record(connection, scope.tenant_id, scope.actor, entry)
        known = await store.handlers_of_tenant(connection, scope.tenant_id, names)
    return [name for name in names if name not in known]


async def declare_jobs(scope: Scope, application: ApplicationPart) -> None:
    """Update the queues and jobs of the tenant to match the code of an application. Raise `Invalid` if one cannot be declared."""
    owner = Owner(application.name, frozenset(application.formerly))
    try:
        queues = [_document(each, "queue") for each in application.queues]
        await declarations.declare(scope, owner, [_declared(each) for each in application.jobs], queues)
    except ValueError as error:
        raise Invalid(WorkerWords.NOT_DECLARED(error=str(error)[:200])) from error
    scope.wakeups.publish(EverywhereWake())


def _declared(given: DeclaredPart) -> DeclaredJob:
    document = _document(given.document, "job")
    payload = None if isinstance(given.payload, UnsetType) else payload_text(given.payload, "payload")
    return DeclaredJob(document, payload)


def _document(given: Raw, kind: str) -> dict[str, Any]:
    document = json.loads(bytes(given))
    if not isinstance(document, dict):
        raise Invalid(WorkerWords.NOT_DECLARED(error=f"the document of a {kind} is not an object"))
    return cast("dict[str, Any]", document)


async def settle_report(scope: Scope, ref: Ref, outcome: Outcome) -> Answer:
    """Settle an attempt that this server does not wait for: the server that leased it is gone, or its session has ended.

    The tenant, the fence and the state of the row decide. A repeated report gets the answer of the first one.
    """
    instance, fence = str(ref[0]), ref[1]
    try:
        await report_outcome(scope, ref[0], fence, outcome)
    except StaleOutcome as stale:
        return Answer(instance, fence, "stale", str(stale))
    except NotFound:
        return Answer(instance, fence, "stale", str(WorkerWords.NO_SUCH_ATTEMPT()))
    return Answer(instance, fence, "settled")
