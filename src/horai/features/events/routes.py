"""HTTP routes for parked events: list, retry and discard."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import ScopeDep, takes
from horai.api.cursors import job_cursor, next_cursor
from horai.api.paging import PageQuery
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, needs
from horai.core.digits import number_in
from horai.core.roles import AccessRole
from horai.features.events import parked
from horai.features.events.parked import parked_not_found
from horai.features.events.service import AppliedChange, Fate, NotNow, PutAside
from horai.features.events.store import Parked
from horai.features.events.wire import ParkedDetail, ParkedList, ParkedOut, RetryAnswer, RetryIn
from horai.wire.encode import Encoded
from horai.wire.fields import DiscardIn, Text

router = APIRouter(prefix="/api/v1/events/parked", tags=["events"], route_class=RoleRoute)

PREVIEW = 500
"""The number of bytes of a body that a list shows."""


class ParkedQuery(PageQuery):
    """The filter and paging parameters of a list of parked events."""

    source: Text | None = None


@router.get("", responses={200: {"model": ParkedList}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_parked_events(scope: ScopeDep, query: Annotated[ParkedQuery, Query()]) -> Response:
    """List events that could not take effect, oldest first."""
    rows = await parked.read_page(scope, query.source, job_cursor(query.cursor), query.limit)
    items = [_encode_parked(row) for row in rows]
    return answer(ParkedList.encode(items=items, next_cursor=next_cursor(rows, query.limit)))


@router.get("/{event}", responses={200: {"model": ParkedDetail}})
@needs(AccessRole.VIEWER)
async def get_parked_event(scope: ScopeDep, event: str) -> Response:
    """Read one parked event, with its headers and the stored part of its body."""
    row = await parked.read_one(scope, _id(event))
    shown = {"preview": _preview(row), "headers": dict(row.headers), "body": _text(row.body)}
    return answer(ParkedDetail.encode(row, **shown))


@router.post("/{event}/retry", responses={200: {"model": RetryAnswer}}, openapi_extra=takes(RetryIn, required=False))
@needs(AccessRole.OPERATOR)
async def retry_parked_event(
    scope: ScopeDep, event: str, body: Annotated[Body[RetryIn], Depends(body_of(RetryIn))]
) -> Response:
    """Retry a parked event; it leaves the list if it takes effect now or did so before."""
    fate = await parked.retry_one(scope, _id(event), body.shape.job)
    return answer(_encode_fate(_id(event), fate))


@router.post("/{event}/discard", responses={200: {"model": ParkedOut}}, openapi_extra=takes(DiscardIn, required=False))
@needs(AccessRole.OPERATOR)
async def discard_parked_event(
    scope: ScopeDep, event: str, body: Annotated[Body[DiscardIn], Depends(body_of(DiscardIn))]
) -> Response:
    """Discard a parked event permanently."""
    (row,) = await parked.discard(scope, [_id(event)], body.shape.reason)
    return answer(_encode_parked(row))


def _id(text: str) -> int:
    if (number := number_in(text)) is None:
        raise parked_not_found(text)
    return number


def _encode_parked(row: Parked) -> Encoded:
    return ParkedOut.encode(row, preview=_preview(row))


def _encode_fate(event_id: int, fate: Fate) -> Encoded:
    return RetryAnswer.encode(
        id=event_id,
        decision=fate.word,
        reason=fate.reason if isinstance(fate, PutAside | NotNow) else None,
        instance_id=fate.instance_id if isinstance(fate, AppliedChange) else None,
    )


def _preview(row: Parked) -> str:
    return _text(row.body[:PREVIEW])


def _text(body: bytes) -> str:
    """Return a body as text; bytes that are not UTF-8 become escapes."""
    return body.decode("utf-8", "backslashreplace")
