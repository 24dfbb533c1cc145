"""Routes of alerts and of the delivery log."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Response

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import takes
from horai.api.cursors import next_cursor
from horai.api.paging import PageQuery
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, needs
from horai.core.roles import AccessRole
from horai.features.alerts import service_firing, store
from horai.features.alerts.scope import AlertScopeDep, owner_of
from horai.features.alerts.store import AlertRow, DeliveryRow
from horai.features.alerts.wire import AcknowledgeIn, AlertList, AlertOut, DeliveryList, DeliveryOut
from horai.wire.encode import Encoded
from horai.wire.fields import Text

router = APIRouter(prefix="/api/v1/alerts", tags=["alerts"], route_class=RoleRoute)

_FIRING = {"FIRING": True, "RESOLVED": False, "ALL": None}


class AlertQuery(PageQuery):
    """The alerts to list: those that fire, unless `status` says otherwise."""

    status: Literal["FIRING", "RESOLVED", "ALL"] = "FIRING"
    rule: Text | None = None


class DeliveryQuery(PageQuery):
    """The deliveries to list."""

    status: Literal["PENDING", "DELIVERED", "FAILED"] | None = None
    channel: Text | None = None
    rule: Text | None = None


@router.get("", responses={200: {"model": AlertList}})
@needs(AccessRole.VIEWER, AccessRole.PLATFORM_ADMIN)
@may_lag
async def get_alerts(scope: AlertScopeDep, query: Annotated[AlertQuery, Query()]) -> Response:
    """List the alerts that fire, newest first. Resolved ones are kept for 30 days."""
    async with scope.read() as connection:
        owner, firing = owner_of(scope), _FIRING[query.status]
        rows = await store.list_alerts(connection, owner, query.before, query.limit, firing, query.rule)
    items = [_encode_alert(row) for row in rows]
    return answer(AlertList.encode(items=items, next_cursor=next_cursor(rows, query.limit)))


@router.get("/deliveries", responses={200: {"model": DeliveryList}})
@needs(AccessRole.VIEWER, AccessRole.PLATFORM_ADMIN)
@may_lag
async def get_deliveries(scope: AlertScopeDep, query: Annotated[DeliveryQuery, Query()]) -> Response:
    """List the messages to channels with their results, newest first. They are kept for 30 days."""
    only = (query.status, query.channel, query.rule)
    async with scope.read() as connection:
        rows = await store.list_deliveries(connection, owner_of(scope), query.before, query.limit, only)
    items = [encode_delivery(row) for row in rows]
    return answer(DeliveryList.encode(items=items, next_cursor=next_cursor(rows, query.limit)))


@router.post(
    "/{alert}/acknowledge",
    responses={200: {"model": AlertOut}},
    openapi_extra=takes(AcknowledgeIn, required=False),
)
@needs(AccessRole.OPERATOR, AccessRole.PLATFORM_ADMIN)
async def acknowledge_alert(
    scope: AlertScopeDep, alert: str, body: Annotated[Body[AcknowledgeIn], Depends(body_of(AcknowledgeIn))]
) -> Response:
    """Acknowledge an alert: no repeats of it are sent until it is resolved or gets worse. A second call changes nothing."""
    return answer(_encode_alert(await service_firing.acknowledge(scope, alert, body.shape.note)))


@router.post("/deliveries/{delivery}/redeliver", status_code=201, responses={201: {"model": DeliveryOut}})
@needs(AccessRole.OPERATOR, AccessRole.PLATFORM_ADMIN)
async def redeliver(scope: AlertScopeDep, delivery: str) -> Response:
    """Send the message of an ended delivery again, as a new delivery to the channel of the same name."""
    return answer(encode_delivery(await service_firing.redeliver(scope, delivery)), 201)


def _encode_alert(row: AlertRow) -> Encoded:
    return AlertOut.encode(row, status="FIRING" if row.resolved_at is None else "RESOLVED")


def encode_delivery(row: DeliveryRow) -> Encoded:
    """Return a line of the delivery log."""
    return DeliveryOut.encode(row, next_try_at=row.next_try_at if row.status == "PENDING" else None)
