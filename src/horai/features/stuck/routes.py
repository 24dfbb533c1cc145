"""Routes of stuck runs, clogged queues and blocked workflow runs. Each answer is computed when it is asked for."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from horai.api.answer import answer
from horai.api.context import ScopeDep
from horai.api.cursors import cursor_after, instance_cursor, job_cursor, next_cursor
from horai.api.paging import PageQuery
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, needs
from horai.api.stuck_json import encode_blocked_run, encode_clogged_queue
from horai.core.roles import AccessRole
from horai.db import nodes
from horai.operations import stuck
from horai.wire.stuck import BlockedRunList, CloggedQueueList, StuckRunList

router = APIRouter(prefix="/api/v1/scheduler", tags=["stuck"], route_class=RoleRoute)


@router.get("/stuck", responses={200: {"model": StuckRunList}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_stuck_runs(scope: ScopeDep, query: Annotated[PageQuery, Query()]) -> Response:
    """List runs that take longer than three times the p95 of their own job, and longer than a minute, longest first.

    The p95 needs 20 successes among the last 200 runs of the job in the last 7 days. With fewer, a run is listed after three times the
    longest of them, and ten minutes; without a success, after 30 minutes.
    """
    after = None if query.cursor is None else instance_cursor(query.cursor)
    async with scope.read() as connection:
        now = await nodes.database_time(connection)
        found = await stuck.stuck_runs(connection, scope.tenant_id, now, query.limit, after)
    last = found[-1].run if len(found) == query.limit else None
    following = None if last is None else cursor_after(last.claimed_at, last.id)
    return answer(StuckRunList.encode(items=found, next_cursor=following))


@router.get("/clogged", responses={200: {"model": CloggedQueueList}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_clogged_queues(scope: ScopeDep, query: Annotated[PageQuery, Query()]) -> Response:
    """List queues whose slots are all held by stuck runs, with these runs."""
    async with scope.read() as connection:
        now = await nodes.database_time(connection)
        found = await stuck.clogged_queues(connection, scope.tenant_id, now, query.limit, job_cursor(query.cursor))
    items = [encode_clogged_queue(queue) for queue in found]
    return answer(CloggedQueueList.encode(items=items, next_cursor=next_cursor(found, query.limit)))


@router.get("/blocked", responses={200: {"model": BlockedRunList}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_blocked_runs(scope: ScopeDep, query: Annotated[PageQuery, Query()]) -> Response:
    """List blocked workflow runs with the dead nodes that block them, newest fire time first."""
    async with scope.read() as connection:
        found = await stuck.blocked_runs(connection, scope.tenant_id, query.limit, instance_cursor(query.cursor))
    last = found[-1].run if len(found) == query.limit else None
    following = None if last is None else cursor_after(last.fire_time, last.id)
    return answer(BlockedRunList.encode(items=[encode_blocked_run(run) for run in found], next_cursor=following))
