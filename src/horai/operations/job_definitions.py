"""Definitions of jobs as files and as kept versions."""

from collections.abc import Mapping
from typing import Any

from horai.core.definitions import OF_CODE, patch_between, same_json, shown_document
from horai.core.job import checked, document_of, is_builtin, with_instants
from horai.core.job_patch import NESTED
from horai.core.masking import revealed_target
from horai.db.job_lists import JobFilter, list_jobs
from horai.db.jobs import JobRow, find_job
from horai.operations import jobs, target_secrets
from horai.operations.definitions import DefinitionKind, WrittenDefinition
from horai.operations.job_rows import JobDocument
from horai.operations.scope import Scope, job_not_found
from horai.operations.versions import StoredDefinition
from horai.wire.jobs import JobIn


async def _find(scope: Scope, reference: str) -> StoredDefinition | None:
    async with scope.read() as connection:
        job = await find_job(connection, scope.tenant_id, reference)
    return None if job is None or job.ticks_for is not None or is_builtin(job.document) else jobs.definition(job)


async def _page(scope: Scope, after: int, limit: int) -> list[StoredDefinition]:
    async with scope.read() as connection:
        rows = await list_jobs(connection, scope.tenant_id, after, limit, JobFilter())
        whole = [await find_job(connection, scope.tenant_id, str(row.id)) if _is_cut(row) else row for row in rows]
    return [jobs.definition(row) for row in whole if row is not None]


def _is_cut(row: JobRow) -> bool:
    """Return whether a list has left out the payload of a job."""
    return row.payload is None and row.payload_size is not None


async def _put(scope: Scope, written: WrittenDefinition, known: StoredDefinition | None) -> None:
    document = {name: value for name, value in written.document.items() if value is not None}
    if known is None:
        await jobs.create_job(scope, JobDocument(document, written.payload))
        return
    async with scope.read() as connection:
        job = await find_job(connection, scope.tenant_id, str(known.id))
    if job is None:
        raise job_not_found(known.name)
    fields = await _fields(scope, job, document)
    keeps_payload = job.is_encrypted and written.payload is None
    sets_payload = not keeps_payload and (job.is_encrypted or not same_json(job.payload, written.payload))
    if fields or sets_payload:
        await jobs.change_job(scope, job.name, jobs.JobChange(fields, written.payload, sets_payload, known.version))


async def _fields(scope: Scope, job: JobRow, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields in which a written job differs from the stored one, as a PATCH has them."""
    jobs.refuse_builtin(document)
    definition = checked(with_instants(document))
    wanted = document_of(definition, document)
    fields = patch_between(shown_document(job.document), shown_document(wanted), NESTED)
    fields = {name: value for name, value in fields.items() if name not in OF_CODE}
    if "target" in fields or await _gives_secrets(scope, job, wanted["target"]):
        fields["target"] = document.get("target") or wanted["target"]
    if document.get("status") not in {None, job.status.name}:
        fields["status"] = document["status"]
    return fields


async def _gives_secrets(scope: Scope, job: JobRow, target: Mapping[str, Any]) -> bool:
    """Return whether a target that is shown like the stored one has other secret values than it."""
    if target == shown_document({"target": target})["target"]:
        return False
    stored = job.document["target"]
    place = target_secrets.place_of_target(job.name, stored)
    async with scope.read() as connection:
        opened = await target_secrets.opened(connection, scope.keyring, scope.tenant_id, place, stored)
    return revealed_target(target, opened, "target") != opened


KIND = DefinitionKind("job", JobIn, _find, _page, _put, job_not_found)
