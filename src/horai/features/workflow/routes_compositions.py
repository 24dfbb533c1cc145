"""The HTTP route that starts compositions."""

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import IdempotencyKey, ScopeDep, takes
from horai.api.idempotency import REPLAYED
from horai.api.route import RoleRoute, needs
from horai.core.roles import AccessRole
from horai.features.workflow.compositions import compose
from horai.features.workflow.wire_compositions import CompositionAnswer, CompositionIn
from horai.features.workflow.written_forms import read_form

router = APIRouter(prefix="/api/v1/compositions", tags=["workflows"], route_class=RoleRoute)


@router.post(
    "",
    status_code=202,
    responses={202: {"model": CompositionAnswer}},
    openapi_extra=takes(CompositionIn),
)
@needs(AccessRole.OPERATOR)
async def start_composition(
    scope: ScopeDep,
    body: Annotated[Body[CompositionIn], Depends(body_of(CompositionIn))],
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Start calls of jobs as one run, once per `Idempotency-Key`: a chain, a group, a map or a chord.

    The key is the same for REST, SQL and Python: a repeat gets the response of the first request, and the key of another
    composition is refused. Its form becomes a workflow with the tag `composed`.
    """
    made = await compose(scope, read_form(body.raw), body.shape.at, idempotency_key)
    workflow, run = made.workflow, made.run
    told = CompositionAnswer.encode(id=run.run_id, workflow=workflow.name, workflow_id=workflow.id, nodes=made.nodes)
    headers = {"Location": f"/api/v1/workflows/{workflow.id}/runs/{run.run_id}"}
    return answer(told, 202, headers if run.is_new else {**headers, REPLAYED: "true"})
