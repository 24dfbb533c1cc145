"""Routes for signals and records of durable functions."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import ScopeDep, takes
from horai.api.cursors import job_cursor, page_cursor
from horai.api.instance_id import instance_id_of
from horai.api.paging import PageQuery
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, needs
from horai.core.limits import KEY_LIMIT
from horai.core.put import check_key
from horai.core.roles import AccessRole
from horai.features.steps import service
from horai.features.steps.rules import Signal
from horai.features.steps.store import SentSignal
from horai.features.steps.wire import SignalAnswer, SignalIn, StepList

router = APIRouter(prefix="/api/v1", tags=["instances"], route_class=RoleRoute)

KeyPath = Annotated[str, Path(min_length=1, max_length=KEY_LIMIT)]
SignalBody = Annotated[Body[SignalIn], Depends(body_of(SignalIn))]


@router.post(
    "/instances/{instance}/signals/{name}",
    responses={200: {"model": SignalAnswer}},
    openapi_extra=takes(SignalIn, required=False),
)
@needs(AccessRole.OPERATOR)
async def signal_instance(scope: ScopeDep, instance: str, name: str, body: SignalBody) -> Response:
    """Send a signal to a live instance. It is stored first, and taken once by `wait_for` of its function."""
    id_ = instance_id_of(instance)
    return _sent(id_, name, await service.signal_by_id(scope, id_, Signal(name, body.text_of("payload"))))


@router.get("/instances/{instance}/steps", responses={200: {"model": StepList}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_steps(scope: ScopeDep, instance: str, query: Annotated[PageQuery, Query()]) -> Response:
    """List the records of a durable function: its steps, sleeps, waits, calls and compensations, in their order."""
    after = job_cursor(query.cursor)
    page = await service.list_steps(scope, instance_id_of(instance), after, query.limit)
    following = page_cursor(str(after + query.limit)) if len(page.rows) == query.limit else None
    return answer(StepList.encode(page, items=page.rows, next_cursor=following))


@router.post(
    "/jobs/{job}/instances/{key:path}/signals/{name}",
    responses={200: {"model": SignalAnswer}},
    openapi_extra=takes(SignalIn, required=False),
)
@needs(AccessRole.OPERATOR)
async def signal_key(scope: ScopeDep, job: str, key: KeyPath, name: str, body: SignalBody) -> Response:
    """Send a signal to the live instance of a key."""
    signal = Signal(name, body.text_of("payload"))
    id_, sent = await service.signal_by_key(scope, job, check_key(key), signal)
    return _sent(id_, name, sent)


def _sent(instance_id: int, name: str, sent: SentSignal) -> Response:
    woken = sent.lane is not None
    return answer(SignalAnswer.encode(id=sent.id, instance_id=instance_id, name=name, woken=woken))
