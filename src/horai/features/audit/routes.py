"""Routes for the audit log: list, verify, export."""

from collections.abc import AsyncIterator
from typing import Annotated

import msgspec
from fastapi import APIRouter, FastAPI, Query, Request, Response
from pydantic import ConfigDict, Field
from starlette.responses import StreamingResponse

from horai.api.answer import NO_STORE, answer
from horai.api.authentication import Caller
from horai.api.context import AccessScopeDep, CallerDep
from horai.api.cursors import cursor_after, instance_cursor
from horai.api.paging import PageQuery
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, needs
from horai.core.audit import AuditVerb
from horai.core.errors import Invalid
from horai.core.roles import AccessRole
from horai.features.audit import service, store
from horai.features.audit.rules import parse_head
from horai.features.audit.signing import load_key
from horai.features.audit.store import AuditFilter, AuditRow, RowsOf
from horai.features.audit.wire import AuditActor, AuditList, AuditObject, AuditOut, ChainOut
from horai.operations.scope import PlatformScope
from horai.text import Hint, Wrong
from horai.wire.encode import Encoded
from horai.wire.fields import Instant, Model, Text

router = APIRouter(prefix="/api/v1/audit", tags=["audit"], route_class=RoleRoute)

LINES = "application/x-ndjson"
EXPORTED = {
    "description": "One `AuditOut` per line, oldest first.",
    "content": {LINES: {"schema": {"type": "string"}}},
}


class ExportQuery(Model):
    """A filter for the audit log. An actor and an object are given by id or by name."""

    model_config = ConfigDict(strict=False, populate_by_name=False)

    actor: Text | None = None
    verb: Text | None = None
    object: Text | None = None
    object_kind: Text | None = None
    from_: Annotated[Instant | None, Field(alias="from")] = None
    to: Instant | None = None


class AuditQuery(PageQuery, ExportQuery):
    """A filter for the audit log, with paging."""


class VerifyQuery(Model):
    """`head` is a head that was published earlier; `from` the seal to begin with."""

    model_config = ConfigDict(strict=False, populate_by_name=False)

    head: Text | None = None
    from_: Annotated[int, Field(alias="from", ge=1, lt=10**18)] = 1


def _filter(asked: ExportQuery) -> AuditFilter:
    if asked.verb is not None and asked.verb not in set(AuditVerb):
        raise Invalid.field("verb", Wrong.NO_VERB(word=asked.verb[:60]), Hint.KNOWN(words=", ".join(AuditVerb)))
    return AuditFilter(asked.actor, asked.verb, asked.object, asked.object_kind, asked.from_, asked.to)


@router.get("", responses={200: {"model": AuditList}})
@needs(AccessRole.ADMIN, AccessRole.PLATFORM_ADMIN)
@may_lag
async def get_audit(scope: AccessScopeDep, caller: CallerDep, query: Annotated[AuditQuery, Query()]) -> Response:
    """List the writes of this tenant, newest first. A key of the platform reads those of no tenant."""
    before, only = instance_cursor(query.cursor), _filter(query)
    async with scope.read() as connection:
        rows = await store.list_audit(connection, _rows_of(caller), before, query.limit, only)
    cursor = cursor_after(rows[-1].at, rows[-1].id) if len(rows) == query.limit else None
    return answer(AuditList.encode(items=[_encode(row) for row in rows], next_cursor=cursor))


@router.get("/verify", responses={200: {"model": ChainOut}})
@needs(AccessRole.ADMIN, AccessRole.PLATFORM_ADMIN)
async def verify_audit(request: Request, scope: AccessScopeDep, query: Annotated[VerifyQuery, Query()]) -> Response:
    """Recompute the chain of seals, and name the seal and the row of each difference.

    The chain covers all tenants. With `head`, a chain that was cut or rewritten after that head is detected as well.
    """
    head = None if query.head is None else parse_head(query.head)
    if query.head is not None and head is None:
        raise Invalid.field("head", Wrong.NOT_A_HEAD(), Hint.GIVE_A_HEAD())
    report = await service.verify_chain(scope, request.app.state.audit_key, head, query.from_)
    return answer(ChainOut.encode(report))


@router.get("/export", response_class=Response, responses={200: EXPORTED})
@needs(AccessRole.ADMIN, AccessRole.PLATFORM_ADMIN)
async def export_audit(scope: AccessScopeDep, caller: CallerDep, query: Annotated[ExportQuery, Query()]) -> Response:
    """Stream the writes of this tenant, oldest first, as JSON lines."""
    return StreamingResponse(_lines(scope, _rows_of(caller), _filter(query)), media_type=LINES, headers=NO_STORE)


async def _lines(scope: PlatformScope, whose: RowsOf, only: AuditFilter) -> AsyncIterator[bytes]:
    async for page in service.export_pages(scope, whose, only):
        yield b"".join(msgspec.json.encode(_encode(row)) + b"\n" for row in page)


def _rows_of(caller: Caller) -> RowsOf:
    return RowsOf(caller.tenant_id, caller.is_platform)


def _encode(row: AuditRow) -> Encoded:
    return AuditOut.encode(row, actor=AuditActor.encode(row), object=AuditObject.encode(row))


def prepare(app: FastAPI) -> None:
    """Read the key that verifies signatures."""
    app.state.audit_key = load_key(app.state.context.audit_key_file)
