"""Routes for dead letters: list, replay, discard."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from pydantic import ConfigDict, Field

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import ScopeDep, takes
from horai.api.cursors import cursor_after
from horai.api.paging import TimedPageQuery
from horai.api.rates import rate_of
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, needs
from horai.core.digits import number_in
from horai.core.errors import Invalid, NotFound
from horai.core.roles import AccessRole
from horai.db import dead_letters as stored
from horai.db import instance_queries
from horai.db.dead_letters import FaultRow, LetterFilter, ReplayStatus
from horai.features.dead_letters import discard
from horai.features.dead_letters import service as dead_letters
from horai.features.dead_letters.wire import (
    DiscardAnswer,
    DiscardManyIn,
    FaultList,
    FaultOut,
    LetterAnswer,
    LetterDetail,
    LetterList,
    LetterOut,
    LettersIn,
    ReplayAnswer,
    ReplayIn,
)
from horai.operations import letter_replay as replay
from horai.operations.letter_replay import ReplayRequest
from horai.operations.readable_values import readable_instance
from horai.operations.scope import Scope, require_job
from horai.text import Hint, Refused, Wrong
from horai.wire.counts import CountOut
from horai.wire.encode import Encoded
from horai.wire.fields import DiscardIn, Id, Instant, Model, Text

router = APIRouter(prefix="/api/v1/dlq", tags=["dead letters"], route_class=RoleRoute)

FAULTS_LOOKED_AT = 10_000
FAULTS_SHOWN = 100
HOURS = 24
ANYTHING = ("job", "tag", "error_code", "fingerprint", "instance", "ids", "from_", "to")


class FaultQuery(Model):
    """A filter for dead letters."""

    model_config = ConfigDict(strict=False, populate_by_name=False)

    job: Text | None = None
    tag: Text | None = None
    error_code: Text | None = None
    fingerprint: Text | None = None
    status: Text | None = None
    instance: Id | None = None
    from_: Annotated[Instant | None, Field(alias="from")] = None
    to: Instant | None = None


class LetterQuery(TimedPageQuery, FaultQuery):
    """A filter for dead letters, with order and page."""


async def _filter(scope: Scope, asked: FaultQuery | LettersIn, status: str | None = None) -> LetterFilter:
    job_id = None
    if asked.job is not None:
        async with scope.read() as connection:
            job_id = (await require_job(connection, scope, asked.job)).id
    only = (asked.tag, asked.error_code, asked.fingerprint)
    instance = None if asked.instance is None else int(asked.instance)
    named = asked.ids if isinstance(asked, LettersIn) else None
    ids = None if named is None else tuple(int(id_) for id_ in named)
    return LetterFilter(job_id, *only, _status(status), instance, asked.from_, asked.to, ids)


def _status(word: str | None) -> ReplayStatus | None:
    if word is None:
        return None
    if word.upper() not in ReplayStatus.__members__:
        raise Invalid.field("status", Wrong.NO_STATUS(word=word[:60]), Hint.KNOWN(words=", ".join(ReplayStatus)))
    return ReplayStatus[word.upper()]


def _letter_id(text: str) -> int:
    if (number := number_in(text)) is None:
        raise NotFound(Refused.NO_LETTER_NAMED(letter=text[:40]), Hint.LISTED_AT(path="/api/v1/dlq"))
    return number


@router.get("", responses={200: {"model": LetterList}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_letters(scope: ScopeDep, query: Annotated[LetterQuery, Query()]) -> Response:
    """List dead letters, newest first, or oldest first with `order=oldest`."""
    only = await _filter(scope, query, query.status)
    async with scope.read() as connection:
        rows = await stored.list_letters(connection, scope.tenant_id, query.start, query.limit, only)
        rows = await dead_letters.readable_letters(connection, scope, rows)
    cursor = cursor_after(rows[-1].created_at, rows[-1].id) if len(rows) == query.limit else None
    return answer(LetterList.encode(items=rows, next_cursor=cursor))


@router.get("/count", responses={200: {"model": CountOut}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_letter_count(scope: ScopeDep, query: Annotated[FaultQuery, Query()]) -> Response:
    """Count the dead letters that match, with the filters of the list.

    The count reads the newest 100,000 letters. If there are others, `more` is true and at least `count` letters match.
    """
    only = await _filter(scope, query, query.status)
    async with scope.read() as connection:
        counted = await stored.count_letters(connection, scope.tenant_id, only)
    return answer(CountOut.encode(counted))


@router.get("/faults", responses={200: {"model": FaultList}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_faults(scope: ScopeDep, query: Annotated[FaultQuery, Query()]) -> Response:
    """Count dead letters by fault, the most frequent first, among the newest 10,000 that match."""
    only = await _filter(scope, query, query.status)
    async with scope.read() as connection:
        rows = await stored.group_letters(connection, scope.tenant_id, only, FAULTS_LOOKED_AT, FAULTS_SHOWN)
        rows = await dead_letters.readable_letters(connection, scope, rows)
    looked_at = rows[0].looked_at if rows else 0
    items = [_encode_fault(row) for row in rows]
    return answer(FaultList.encode(items=items, letters=looked_at, more=looked_at >= FAULTS_LOOKED_AT))


@router.post("/replay", responses={200: {"model": ReplayAnswer}}, openapi_extra=takes(ReplayIn))
@needs(AccessRole.OPERATOR)
async def replay_letters(scope: ScopeDep, body: Annotated[Body[ReplayIn], Depends(body_of(ReplayIn))]) -> Response:
    """Replay dead letters that match, oldest first. The same request again skips letters that were replayed before."""
    wish = body.shape
    wanted = ReplayRequest(await _filter(scope, wish), wish.limit, rate_of(wish.rate))
    act = replay.count_matching if wish.dry_run else replay.replay_matching
    return answer(ReplayAnswer.encode(await act(scope, wanted), dry_run=wish.dry_run))


@router.post("/discard", responses={200: {"model": DiscardAnswer}}, openapi_extra=takes(DiscardManyIn))
@needs(AccessRole.OPERATOR)
async def discard_letters(
    scope: ScopeDep, body: Annotated[Body[DiscardManyIn], Depends(body_of(DiscardManyIn))]
) -> Response:
    """Settle all open letters that match without running them again. The same request again continues with the rest."""
    wish = body.shape
    if all(getattr(wish, name) in (None, "") for name in ANYTHING):
        raise Invalid(
            Refused.DISCARDS_EVERYTHING(),
            Hint.GIVE_A_LETTER_FILTER(),
        )
    only = await _filter(scope, wish)
    if wish.dry_run:
        told = await discard.count_matching(scope, only, wish.limit)
    elif wish.reason:
        told = await discard.discard_matching(scope, only, wish.limit, wish.reason)
    else:
        raise Invalid.field("reason", Wrong.MISSING(), Hint.SAY_WHY())
    return answer(DiscardAnswer.encode(told, dry_run=wish.dry_run))


@router.get("/{letter}", responses={200: {"model": LetterDetail}})
@needs(AccessRole.VIEWER)
async def get_letter(scope: ScopeDep, letter: str) -> Response:
    """Read one dead letter, with the instance that died."""
    row = await dead_letters.read_letter(scope, _letter_id(letter))
    async with scope.read() as connection:
        dead = await instance_queries.instance_by_id(connection, scope.tenant_id, row.instance_id)
        dead = None if dead is None else await readable_instance(connection, scope, dead)
    return answer(LetterDetail.encode(row, instance=dead))


@router.post("/{letter}/replay", responses={200: {"model": LetterAnswer}, 201: {"model": LetterAnswer}})
@needs(AccessRole.OPERATOR)
async def replay_letter(scope: ScopeDep, letter: str) -> Response:
    """Run a dead instance again, as a new one. A letter that was replayed or superseded before is left unchanged."""
    told = await dead_letters.replay_letter(scope, _letter_id(letter))
    return answer(LetterAnswer.encode(told), 201 if told.replayed else 200)


@router.post("/{letter}/discard", responses={200: {"model": LetterOut}}, openapi_extra=takes(DiscardIn, required=False))
@needs(AccessRole.OPERATOR)
async def discard_letter(
    scope: ScopeDep, letter: str, body: Annotated[Body[DiscardIn], Depends(body_of(DiscardIn))]
) -> Response:
    """Settle a dead letter without running it again."""
    row = await dead_letters.discard_letter(scope, _letter_id(letter), body.shape.reason)
    return answer(LetterOut.encode(row))


def _encode_fault(row: FaultRow) -> Encoded:
    return FaultOut.encode(row, last_day=[row.hours.get(ago, 0) for ago in reversed(range(HOURS))])
