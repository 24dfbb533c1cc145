"""Reconcilers as a kind of definitions: found, listed, and written from files and kept versions."""

from collections.abc import Mapping
from typing import Any

from horai.core.definitions import patch_between
from horai.core.errors import Invalid
from horai.core.job import checked, document_of
from horai.core.masking import revealed_target
from horai.features.reconcile import service as reconcilers
from horai.features.reconcile.definition import SCHEDULE, job_document, shown_source
from horai.features.reconcile.service import ReconcilerChange, ReconcilerWish
from horai.features.reconcile.store import ReconcilerRow, find_reconciler, list_reconcilers
from horai.features.reconcile.stored_definition import stored_definition
from horai.features.reconcile.wire import ReconcilerIn
from horai.operations import target_secrets
from horai.operations.definitions import DefinitionKind, WrittenDefinition
from horai.operations.scope import Scope
from horai.operations.versions import StoredDefinition
from horai.text import Hint, Wrong

LAST = 2**63 - 1


async def _row(scope: Scope, reference: str) -> ReconcilerRow | None:
    async with scope.read() as connection:
        return await find_reconciler(connection, scope.tenant_id, reference)


async def _find(scope: Scope, reference: str) -> StoredDefinition | None:
    row = await _row(scope, reference)
    return None if row is None else stored_definition(row)


async def _page(scope: Scope, after: int, limit: int) -> list[StoredDefinition]:
    """Return a page, newest first: `after` 0 begins with the newest."""
    async with scope.read() as connection:
        rows = await list_reconcilers(connection, scope.tenant_id, after or LAST, limit)
    return [stored_definition(row) for row in rows]


async def _put(scope: Scope, written: WrittenDefinition, known: StoredDefinition | None) -> None:
    document = {name: value for name, value in written.document.items() if value is not None}
    source = {name: value for name, value in document["source"].items() if value is not None}
    wish = ReconcilerWish(written.name, document["job"], source, document)
    if known is None:
        await reconcilers.create_reconciler(scope, wish)
        return
    row = await _row(scope, str(known.id))
    if row is None:
        raise reconcilers.not_found(known.name)
    if row.target != wish.job:
        raise Invalid.field("job", Wrong.NEVER_CHANGES(), Hint.CREATE_ANOTHER())
    schedule = _schedule(row, document)
    has_source = source != shown_source(row.source) and not await _is_same(scope, row, source)
    if schedule or has_source:
        change = ReconcilerChange(schedule, source if has_source else None, known.version)
        await reconcilers.change_reconciler(scope, str(known.id), change)


def _schedule(row: ReconcilerRow, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the schedule that differ."""
    written = job_document(row.name, document)
    wanted = document_of(checked(written), written)
    now = {field: row.document.get(field) for field in SCHEDULE}
    return patch_between(now, {field: wanted.get(field) for field in SCHEDULE})


async def _is_same(scope: Scope, row: ReconcilerRow, given: Mapping[str, Any]) -> bool:
    """Return whether a source with secret values is the stored one."""
    if dict(given) == shown_source(given):
        return False
    place = target_secrets.place_of_source(row.name, row.source)
    async with scope.read() as connection:
        opened = await target_secrets.opened(connection, scope.keyring, scope.tenant_id, place, row.source)
    return revealed_target(given, opened, "source") == opened


KIND = DefinitionKind("reconciler", ReconcilerIn, _find, _page, _put, reconcilers.not_found)
