"""HTTP routes for the entities of refresh jobs and their freshness."""

from datetime import timedelta
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Path, Query, Response

from horai.api.body import Body, batch_body_of, body_of, payload_text
from horai.api.context import ScopeDep, takes
from horai.api.idempotency import RepeatSafe
from horai.api.json import answer
from horai.api.paging import PageQuery
from horai.core.errors import Invalid
from horai.core.put import check_key
from horai.core.refresh import Status
from horai.core.settings import KEY_LIMIT
from horai.features.refresh import service as refreshes
from horai.features.refresh.json import entity_cursor, entity_json, entity_page
from horai.features.refresh.service import EntityPage, Freshness
from horai.features.refresh.store import EntityFilter
from horai.features.refresh.wire import (
    EntitiesAnswer,
    EntitiesIn,
    EntityIn,
    EntityList,
    EntityOut,
    EntityStatus,
    RefreshOut,
)
from horai.text import told_by
from horai.time.durations import format_duration, parse_duration
from horai.wire.fields import Id, Text

router = APIRouter(prefix="/api/v1/jobs", tags=["refresh"], route_class=RepeatSafe)

KeyPath = Annotated[str, Path(min_length=1, max_length=KEY_LIMIT)]


class EntityQuery(PageQuery):
    """The filter and paging parameters of a list of entities.

    `olderThan`: only entities whose last run ended longer ago than this.
    """

    prefix: Text | None = None
    status: EntityStatus | None = None
    older_than: Text | None = None
    batch: Id | None = None


@router.post("/{job}/entities/batch", responses={200: {"model": EntitiesAnswer}}, openapi_extra=takes(EntitiesIn))
async def add_entities(
    scope: ScopeDep, job: str, body: Annotated[Body[EntitiesIn], Depends(batch_body_of(EntitiesIn))]
) -> Response:
    """Add up to 10,000 entities in one transaction; known entities get the new payload."""
    keys = [check_key(item.key) for item in body.shape.items]
    items = dict(zip(keys, _payloads(body.raw), strict=True))
    added = await refreshes.add_entities(scope, job, items)
    return answer({"added": added, "known": len(items) - added})


class _RawEntity(msgspec.Struct):
    payload: msgspec.Raw = msgspec.Raw(b"null")


class _RawEntities(msgspec.Struct):
    items: list[_RawEntity]


def _payloads(raw: bytes) -> list[str | None]:
    return [payload_text(item.payload, "payload") for item in msgspec.json.decode(raw, type=_RawEntities).items]


@router.get("/{job}/entities", responses={200: {"model": EntityList}})
async def get_entities(scope: ScopeDep, job: str, query: Annotated[EntityQuery, Query()]) -> Response:
    """List the entities of a refresh job in order of key."""
    only = EntityFilter(
        query.prefix,
        None if query.status is None else Status[query.status],
        batch_no=None if query.batch is None else int(query.batch),
    )
    page = EntityPage(entity_cursor(query.cursor), query.limit, only, _age(query.older_than))
    return answer(entity_page(await refreshes.list_entities(scope, job, page), query.limit))


def _age(text: str | None) -> timedelta | None:
    try:
        return None if text is None else parse_duration(text)
    except ValueError as error:
        raise Invalid.field("olderThan", told_by(error)) from error


@router.put(
    "/{job}/entities/{key:path}",
    responses={200: {"model": EntityOut}, 201: {"model": EntityOut}},
    openapi_extra=takes(EntityIn, required=False),
)
async def put_entity(
    scope: ScopeDep, job: str, key: KeyPath, body: Annotated[Body[EntityIn], Depends(body_of(EntityIn))]
) -> Response:
    """Add an entity, or change its payload. It runs with the next tick, or at once with `runOnAdd`."""
    added = await refreshes.add_entities(scope, job, {check_key(key): body.text_of("payload")})
    return answer(entity_json(await refreshes.read_entity(scope, job, key)), 201 if added else 200)


@router.get("/{job}/entities/{key:path}", responses={200: {"model": EntityOut}})
async def get_entity(scope: ScopeDep, job: str, key: KeyPath) -> Response:
    """Read one entity."""
    return answer(entity_json(await refreshes.read_entity(scope, job, check_key(key))))


@router.delete("/{job}/entities/{key:path}", status_code=204)
async def delete_entity(scope: ScopeDep, job: str, key: KeyPath) -> Response:
    """Remove an entity: its waiting run is cancelled, a current run finishes, and no tick loads it again."""
    if not await refreshes.remove_entity(scope, job, check_key(key)):
        raise refreshes.no_entity(job, key)
    return Response(status_code=204)


@router.get("/{job}/refresh", responses={200: {"model": RefreshOut}})
async def get_refresh(scope: ScopeDep, job: str) -> Response:
    """Read the freshness of the entities of a job: coverage, greatest age, the last tick and the next."""
    return answer(_refresh_json(await refreshes.freshness(scope, job)))


def _refresh_json(found: Freshness) -> dict[str, Any]:
    return {
        "job": found.job.name,
        "jobId": str(found.job.id),
        "window": format_duration(found.refresh.window),
        "entities": found.counts.entities,
        "neverRun": found.counts.never_run,
        "running": found.counts.running,
        "due": found.counts.due,
        "overdue": found.counts.overdue,
        "coverage": found.coverage,
        "failed": found.counts.failed,
        "maxAge": None
        if found.max_age is None
        else format_duration(timedelta(seconds=int(found.max_age.total_seconds()))),
        "oldest": [entity_json(entity) for entity in found.oldest],
        "lastTick": _tick_json(found),
        "nextTick": found.next_tick,
    }


def _tick_json(found: Freshness) -> dict[str, Any] | None:
    last, progress = found.last_tick, found.progress
    if last is None or progress is None:
        return None
    return {
        "batchNo": str(last.batch_no),
        "fireTime": last.fire_time,
        "due": last.due,
        "loaded": last.loaded,
        "running": progress.running,
        "succeeded": progress.succeeded,
        "failed": progress.failed,
        "startedAt": last.started_at,
        "endedAt": last.ended_at,
    }
