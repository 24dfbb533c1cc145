"""HTTP routes for many runs of a workflow at once."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import ConfigDict, Field

from horai.api.answer import answer
from horai.api.context import ScopeDep
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, needs
from horai.core.roles import AccessRole
from horai.features.workflow.grid import GRID_RUNS, Grid, read_grid, read_node_runs
from horai.features.workflow.grid_store import NodeStates
from horai.features.workflow.wire_grid import GridNodeOut, GridOut, MapCountOut, NodeRunList
from horai.wire.encode import Encoded
from horai.wire.fields import Model

router = APIRouter(prefix="/api/v1/workflows", tags=["workflows"], route_class=RoleRoute)


class GridQuery(Model):
    """The number of runs, newest first."""

    model_config = ConfigDict(strict=False, populate_by_name=False)

    limit: Annotated[int, Field(ge=1, le=GRID_RUNS)] = GRID_RUNS


@router.get("/{workflow}/grid", responses={200: {"model": GridOut}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_grid(scope: ScopeDep, workflow: str, query: Annotated[GridQuery, Query()]) -> Response:
    """Read the last started runs of a workflow with the state of each of their nodes."""
    grid = await read_grid(scope, workflow, query.limit)
    return answer(GridOut.encode(runs=grid.runs, nodes=[_encode_node(grid, node) for node in grid.nodes]))


@router.get("/{workflow}/nodes/{node}/runs", responses={200: {"model": NodeRunList}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_node_runs(scope: ScopeDep, workflow: str, node: str, query: Annotated[GridQuery, Query()]) -> Response:
    """Read a node in the last runs of its workflow, with its duration in each."""
    return answer(NodeRunList.encode(items=await read_node_runs(scope, workflow, node, query.limit)))


def _encode_node(grid: Grid, node: NodeStates) -> Encoded:
    counts = [node.maps.get(run.id) for run in grid.runs]
    return GridNodeOut.encode(
        name=node.name,
        states=[node.states.get(run.id) for run in grid.runs],
        maps=[None if count is None else MapCountOut.encode(count) for count in counts] if node.maps else None,
    )
