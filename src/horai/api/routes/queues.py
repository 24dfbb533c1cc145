"""Queues."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import DryRunDep, ScopeDep, VersionDep, takes
from horai.api.cursors import job_cursor, next_cursor
from horai.api.paging import PageQuery
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, needs
from horai.api.stuck_json import encode_clog
from horai.core.queue import checked
from horai.core.roles import AccessRole
from horai.db import nodes
from horai.db.pool import TenantRead
from horai.db.queues import QueueLoad, QueueRow, list_queues, loads_of_queues
from horai.db.stuck import FULL_QUEUES
from horai.operations import queues, stuck
from horai.operations.dry_run import perhaps
from horai.operations.scope import Scope
from horai.operations.stuck import CloggedQueue
from horai.wire.encode import Encoded
from horai.wire.queues import QueueIn, QueueList, QueueOut

router = APIRouter(prefix="/api/v1/queues", tags=["queues"], route_class=RoleRoute)


async def _shown(scope: Scope, queue: QueueRow) -> Response:
    async with scope.read() as connection:
        loads = await loads_of_queues(connection, [queue.id])
        clogs = await _clogs(connection, scope, queue.name)
    return answer(_encode_queue(queue, loads, clogs), headers={"ETag": f'"{queue.version}"'})


async def _clogs(connection: TenantRead, scope: Scope, name: str | None = None) -> dict[int, CloggedQueue]:
    """Return the clogged queues by id; with a `name`, only that queue."""
    now = await nodes.database_time(connection)
    found = await stuck.clogged_queues(connection, scope.tenant_id, now, FULL_QUEUES, name=name)
    return {queue.id: queue for queue in found}


def _encode_queue(queue: QueueRow, loads: Mapping[int, QueueLoad], clogs: Mapping[int, CloggedQueue]) -> Encoded:
    """Return a queue. With a limit, its permits give `running`; without one, its load does."""
    load, clog = loads.get(queue.id, QueueLoad()), clogs.get(queue.id)
    running = load.running if queue.running is None else queue.running
    clogged = None if clog is None else encode_clog(clog)
    declared = {} if queue.declared_by is None else {"declared_by": queue.declared_by}
    return QueueOut.encode(queue, waiting=load.waiting, running=running, clogged=clogged, **declared)


@router.get("", responses={200: {"model": QueueList}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_queues(scope: ScopeDep, query: Annotated[PageQuery, Query()]) -> Response:
    """List queues, oldest first: those that were configured, and those that jobs use or have used."""
    async with scope.read() as connection:
        rows = await list_queues(connection, scope.tenant_id, job_cursor(query.cursor), query.limit)
        loads = await loads_of_queues(connection, [row.id for row in rows])
        clogs = await _clogs(connection, scope)
    items = [_encode_queue(row, loads, clogs) for row in rows]
    return answer(QueueList.encode(items=items, next_cursor=next_cursor(rows, query.limit)))


@router.get("/{name}", responses={200: {"model": QueueOut}})
@needs(AccessRole.VIEWER)
async def get_queue(scope: ScopeDep, name: str) -> Response:
    """Read a queue. Version 0 means that it was never configured."""
    return await _shown(scope, await queues.read_queue(scope, name))


@router.put("/{name}", responses={200: {"model": QueueOut}}, openapi_extra=takes(QueueIn))
@needs(AccessRole.ADMIN)
async def put_queue(
    scope: ScopeDep,
    name: str,
    body: Annotated[Body[QueueIn], Depends(body_of(QueueIn))],
    if_version: VersionDep,
    dry_run: DryRunDep = False,
) -> Response:
    """Set all limits of a queue. With a lower limit, running instances finish, and none starts until there is room."""
    async with perhaps(scope, is_dry=dry_run) as trial:
        return await _shown(trial, await queues.set_queue(trial, name, checked(body.given()), if_version))
