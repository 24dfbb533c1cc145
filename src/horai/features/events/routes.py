"""HTTP routes for parked events: list, retry and discard."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response

from horai.api.body import Body, body_of
from horai.api.context import ScopeDep, takes
from horai.api.idempotency import RepeatSafe
from horai.api.json import answer, job_cursor, page_cursor
from horai.api.paging import PageQuery
from horai.features.events import parked
from horai.features.events.parked import parked_not_found
from horai.features.events.service import AppliedChange, Fate, NotNow, PutAside
from horai.features.events.store import Parked
from horai.features.events.wire import ParkedDetail, ParkedList, ParkedOut, RetryAnswer, RetryIn
from horai.wire.fields import DiscardIn, Text

router = APIRouter(prefix="/api/v1/events/parked", tags=["events"], route_class=RepeatSafe)

PREVIEW = 500
"""The number of bytes of a body that a list shows."""


class ParkedQuery(PageQuery):
    """The filter and paging parameters of a list of parked events."""

    source: Text | None = None


@router.get("", responses={200: {"model": ParkedList}})
async def get_parked_events(scope: ScopeDep, query: Annotated[ParkedQuery, Query()]) -> Response:
    """List events that could not take effect, oldest first."""
    rows = await parked.read_page(scope, query.source, job_cursor(query.cursor), query.limit)
    cursor = page_cursor(str(rows[-1].id)) if len(rows) == query.limit else None
    return answer({"items": [parked_json(row) for row in rows], "nextCursor": cursor})


@router.get("/{event}", responses={200: {"model": ParkedDetail}})
async def get_parked_event(scope: ScopeDep, event: str) -> Response:
    """Read one parked event, with its headers and the stored part of its body."""
    row = await parked.read_one(scope, _id(event))
    return answer({**parked_json(row), "headers": dict(row.headers), "body": _text(row.body)})


@router.post("/{event}/retry", responses={200: {"model": RetryAnswer}}, openapi_extra=takes(RetryIn, required=False))
async def retry_parked_event(
    scope: ScopeDep, event: str, body: Annotated[Body[RetryIn], Depends(body_of(RetryIn))]
) -> Response:
    """Retry a parked event; it leaves the list if it takes effect now or did so before."""
    fate = await parked.retry_one(scope, _id(event), body.shape.job)
    return answer(fate_json(event, fate))


@router.post("/{event}/discard", responses={200: {"model": ParkedOut}}, openapi_extra=takes(DiscardIn, required=False))
async def discard_parked_event(
    scope: ScopeDep, event: str, body: Annotated[Body[DiscardIn], Depends(body_of(DiscardIn))]
) -> Response:
    """Discard a parked event permanently."""
    (row,) = await parked.discard(scope, [_id(event)], body.shape.reason)
    return answer(parked_json(row))


def _id(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise parked_not_found(text)
    return int(text)


def parked_json(row: Parked) -> dict[str, Any]:
    """Return a parked event as a list shows it."""
    return {
        "id": str(row.id),
        "source": row.source,
        "place": row.place,
        "subject": row.subject,
        "reason": row.reason,
        "at": row.at,
        "size": row.size,
        "isWhole": row.is_whole,
        "preview": _text(row.body[:PREVIEW]),
    }


def fate_json(event: str, fate: Fate) -> dict[str, Any]:
    """Return the result of a retry."""
    made = fate.instance_id if isinstance(fate, AppliedChange) else None
    return {
        "id": str(int(event)),
        "decision": fate.word,
        "reason": fate.reason if isinstance(fate, PutAside | NotNow) else None,
        "instanceId": None if made is None else str(made),
    }


def _text(body: bytes) -> str:
    """Return a body as text; bytes that are not UTF-8 become escapes."""
    return body.decode("utf-8", "backslashreplace")
