"""Routes of assets."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import ScopeDep, takes
from horai.api.cursors import decode_cursor, job_cursor, page_cursor, without_nul
from horai.api.paging import PageQuery
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, needs
from horai.core.roles import AccessRole
from horai.features.assets import service
from horai.features.assets.store import LAST_UPDATE, OutsideUpdate
from horai.features.assets.wire import (
    AssetGraph,
    AssetLink,
    AssetList,
    AssetOut,
    AssetShown,
    AssetUpdateAnswer,
    AssetUpdateIn,
    AssetUpdateOut,
    AssetUseOut,
)

router = APIRouter(prefix="/api/v1", tags=["assets"], route_class=RoleRoute)

AssetPath = Annotated[str, Path(min_length=1, max_length=256)]
"""The name of an asset. A name with a slash is part of the path as it is, or as %2F."""


@router.get("/assets", responses={200: {"model": AssetList}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_assets(scope: ScopeDep, query: Annotated[PageQuery, Query()]) -> Response:
    """List the assets of the tenant by name."""
    after = "" if query.cursor is None else without_nul(decode_cursor(query.cursor))
    rows = await service.list_assets(scope, after, query.limit)
    following = page_cursor(rows[-1].name) if len(rows) == query.limit else None
    return answer(AssetList.encode(items=[AssetOut.encode(row) for row in rows], next_cursor=following))


@router.get("/asset-graph", responses={200: {"model": AssetGraph}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_asset_graph(scope: ScopeDep) -> Response:
    """Read which jobs and workflows update which assets, and which assets start which of them."""
    return answer(AssetGraph.encode(links=[AssetLink.encode(edge) for edge in await service.asset_graph(scope)]))


@router.get("/assets/{name:path}", responses={200: {"model": AssetShown}})
@needs(AccessRole.VIEWER)
async def get_asset(scope: ScopeDep, name: AssetPath, query: Annotated[PageQuery, Query()]) -> Response:
    """Read an asset with the jobs that use it and its updates, newest first."""
    before = LAST_UPDATE if query.cursor is None else job_cursor(query.cursor)
    view = await service.read_asset(scope, name, before, query.limit)
    following = page_cursor(str(view.updates[-1].id)) if len(view.updates) == query.limit else None
    shown = AssetShown.encode(
        view.row,
        uses=[AssetUseOut.encode(use) for use in view.uses],
        history=[AssetUpdateOut.encode(update) for update in view.updates],
        next_cursor=following,
    )
    return answer(shown)


@router.post(
    "/assets/{name:path}/updates",
    status_code=201,
    responses={201: {"model": AssetUpdateAnswer}},
    openapi_extra=takes(AssetUpdateIn, required=False),
)
@needs(AccessRole.OPERATOR)
async def update_asset(
    scope: ScopeDep, name: AssetPath, body: Annotated[Body[AssetUpdateIn], Depends(body_of(AssetUpdateIn))]
) -> Response:
    """Update an asset from outside. The jobs that wait for it start when all, or any, of their assets were updated."""
    interval = body.shape.interval
    update = OutsideUpdate(
        body.text_of("metadata"),
        None if interval is None else interval.start,
        None if interval is None else interval.end,
    )
    update_id, _ = await service.update_asset(scope, name, update)
    return answer(AssetUpdateAnswer.encode(id=update_id, asset=name), 201)
