"""HTTP routes for the entities of refresh jobs and their freshness."""

import re
from datetime import timedelta
from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import ConfigDict

from horai.api.answer import answer
from horai.api.body import Body, batch_body_of, body_of, payload_text
from horai.api.context import ScopeDep, takes
from horai.api.cursors import cursor_after, decode_cursor, instance_cursor, page_cursor, without_nul
from horai.api.paging import PageQuery
from horai.api.route import RoleRoute, needs
from horai.core.errors import Invalid
from horai.core.limits import KEY_LIMIT
from horai.core.put import check_key
from horai.core.refresh import Status
from horai.core.roles import AccessRole
from horai.features.refresh import service as refreshes
from horai.features.refresh.service import EntityPage, Freshness
from horai.features.refresh.store import AgeStart, EntityFilter, EntityRow
from horai.features.refresh.wire import (
    EntitiesAnswer,
    EntitiesIn,
    EntityIn,
    EntityList,
    EntityOut,
    EntityRemovalAnswer,
    EntityRemovalIn,
    EntityStatus,
    RefreshOut,
    TickOut,
)
from horai.text import Hint, Refused, told_by
from horai.time.durations import format_duration, parse_duration
from horai.wire.counts import CountOut
from horai.wire.encode import Encoded
from horai.wire.fields import Id, Model, Text

router = APIRouter(prefix="/api/v1/jobs", tags=["refresh"], route_class=RoleRoute)

_NEVER_RAN = re.compile(r"-\.(\d{1,18})")
KeyPath = Annotated[str, Path(min_length=1, max_length=KEY_LIMIT)]


class EntityCountQuery(Model):
    """A filter for entities. `olderThan`: only entities whose last run ended longer ago than this."""

    model_config = ConfigDict(strict=False, populate_by_name=False)

    prefix: Text | None = None
    status: EntityStatus | None = None
    older_than: Text | None = None
    batch: Id | None = None

    @property
    def only(self) -> EntityFilter:
        """Return the filter as the store takes it, without the age."""
        status = None if self.status is None else Status[self.status]
        return EntityFilter(self.prefix, status, batch_no=None if self.batch is None else int(self.batch))


class EntityQuery(PageQuery, EntityCountQuery):
    """The filter and paging parameters of a list of entities.

    `order`: by key, or by the end of the last run. Entities that have not run are the stalest.
    """

    order: Literal["key", "stalest", "freshest"] = "key"


@router.post("/{job}/entities/batch", responses={200: {"model": EntitiesAnswer}}, openapi_extra=takes(EntitiesIn))
@needs(AccessRole.OPERATOR)
async def add_entities(
    scope: ScopeDep, job: str, body: Annotated[Body[EntitiesIn], Depends(batch_body_of(EntitiesIn))]
) -> Response:
    """Add up to 10,000 entities in one transaction; known entities get the new payload."""
    keys = [check_key(item.key) for item in body.shape.items]
    items = dict(zip(keys, _payloads(body.raw), strict=True))
    added = await refreshes.add_entities(scope, job, items)
    return answer(EntitiesAnswer.encode(added=added, known=len(items) - added))


class _RawEntity(msgspec.Struct):
    payload: msgspec.Raw = msgspec.Raw(b"null")


class _RawEntities(msgspec.Struct):
    items: list[_RawEntity]


def _payloads(raw: bytes) -> list[str | None]:
    return [payload_text(item.payload, "payload") for item in msgspec.json.decode(raw, type=_RawEntities).items]


@router.get("/{job}/entities", responses={200: {"model": EntityList}})
@needs(AccessRole.VIEWER)
async def get_entities(scope: ScopeDep, job: str, query: Annotated[EntityQuery, Query()]) -> Response:
    """List the entities of a refresh job in order of key, or of age with `order`."""
    page = EntityPage(_start_of(query), query.limit, query.only, _age(query.older_than))
    rows = await refreshes.list_entities(scope, job, page)
    cursor = _cursor_after(rows[-1], query) if len(rows) == query.limit else None
    return answer(EntityList.encode(items=rows, next_cursor=cursor))


@router.get("/{job}/entity-count", responses={200: {"model": CountOut}})
@needs(AccessRole.VIEWER)
async def get_entity_count(scope: ScopeDep, job: str, query: Annotated[EntityCountQuery, Query()]) -> Response:
    """Count the entities of a refresh job that match, with the filters of the list.

    The count reads the first 100,000 by key. If there are others, `more` is true and at least `count` match.
    """
    counted = await refreshes.count_entities(scope, job, query.only, _age(query.older_than))
    return answer(CountOut.encode(counted))


def _start_of(query: EntityQuery) -> str | AgeStart:
    """Return the key, or the age, after which a page of entities begins."""
    if query.order == "key":
        return "" if query.cursor is None else without_nul(decode_cursor(query.cursor, "utf-8"))
    freshest = query.order == "freshest"
    if query.cursor is None:
        return AgeStart(None, freshest)
    never = _NEVER_RAN.fullmatch(decode_cursor(query.cursor))
    return AgeStart(instance_cursor(query.cursor) if never is None else (None, int(never[1])), freshest)


def _cursor_after(row: EntityRow, query: EntityQuery) -> str:
    if query.order == "key":
        return page_cursor(row.key)
    return page_cursor(f"-.{row.id}") if row.fresh_at is None else cursor_after(row.fresh_at, row.id)


def _age(text: str | None) -> timedelta | None:
    try:
        return None if text is None else parse_duration(text)
    except ValueError as error:
        raise Invalid.field("olderThan", told_by(error)) from error


@router.post(
    "/{job}/entities/remove", responses={200: {"model": EntityRemovalAnswer}}, openapi_extra=takes(EntityRemovalIn)
)
@needs(AccessRole.OPERATOR)
async def remove_entities(
    scope: ScopeDep, job: str, body: Annotated[Body[EntityRemovalIn], Depends(body_of(EntityRemovalIn))]
) -> Response:
    """Remove all entities that match, at most `limit`, in batches of 200: waiting runs are cancelled, current ones finish.

    While `more` is true, the same request again continues with the rest.
    """
    asked = body.shape
    if all(getattr(asked, name) is None for name in ("keys", "prefix", "status", "older_than", "batch")):
        raise Invalid(Refused.REMOVES_EVERY_ENTITY(), Hint.NARROW_ENTITIES())
    keys = None if asked.keys is None else [check_key(key) for key in asked.keys]
    status, batch = None if asked.status is None else Status[asked.status], asked.batch
    only = EntityFilter(asked.prefix, status, batch_no=None if batch is None else int(batch), keys=keys)
    wanted = EntityPage(limit=asked.limit, only=only, older_than=_age(asked.older_than))
    done = await refreshes.remove_entities(scope, job, wanted, dry_run=asked.dry_run)
    return answer(EntityRemovalAnswer.encode(done, dry_run=asked.dry_run))


@router.put(
    "/{job}/entities/{key:path}",
    responses={200: {"model": EntityOut}, 201: {"model": EntityOut}},
    openapi_extra=takes(EntityIn, required=False),
)
@needs(AccessRole.OPERATOR)
async def put_entity(
    scope: ScopeDep, job: str, key: KeyPath, body: Annotated[Body[EntityIn], Depends(body_of(EntityIn))]
) -> Response:
    """Add an entity, or change its payload. It runs with the next tick, or at once with `runOnAdd`."""
    added = await refreshes.add_entities(scope, job, {check_key(key): body.text_of("payload")})
    return answer(EntityOut.encode(await refreshes.read_entity(scope, job, key)), 201 if added else 200)


@router.get("/{job}/entities/{key:path}", responses={200: {"model": EntityOut}})
@needs(AccessRole.VIEWER)
async def get_entity(scope: ScopeDep, job: str, key: KeyPath) -> Response:
    """Read one entity."""
    return answer(EntityOut.encode(await refreshes.read_entity(scope, job, check_key(key))))


@router.delete("/{job}/entities/{key:path}", status_code=204)
@needs(AccessRole.OPERATOR)
async def delete_entity(scope: ScopeDep, job: str, key: KeyPath) -> Response:
    """Remove an entity: its waiting run is cancelled, a current run finishes, and no tick loads it again."""
    if not await refreshes.remove_entity(scope, job, check_key(key)):
        raise refreshes.no_entity(job, key)
    return Response(status_code=204)


@router.get("/{job}/refresh", responses={200: {"model": RefreshOut}})
@needs(AccessRole.VIEWER)
async def get_refresh(scope: ScopeDep, job: str) -> Response:
    """Read the freshness of the entities of a job: coverage, greatest age, the last tick and the next."""
    return answer(_encode_freshness(await refreshes.freshness(scope, job)))


def _encode_freshness(found: Freshness) -> Encoded:
    age = found.max_age
    return RefreshOut.encode(
        found.counts,
        job=found.job.name,
        job_id=found.job.id,
        window=format_duration(found.refresh.window),
        coverage=found.coverage,
        max_age=None if age is None else format_duration(timedelta(seconds=int(age.total_seconds()))),
        oldest=found.oldest,
        last_tick=_encode_last_tick(found),
        next_tick=found.next_tick,
    )


def _encode_last_tick(found: Freshness) -> Encoded | None:
    last, progress = found.last_tick, found.progress
    if last is None or progress is None:
        return None
    return TickOut.encode(last, running=progress.running, succeeded=progress.succeeded, failed=progress.failed)
