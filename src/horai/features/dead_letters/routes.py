"""Routes for dead letters: list, replay, discard."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from pydantic import ConfigDict, Field

from horai.api.body import Body, body_of
from horai.api.context import ScopeDep, takes
from horai.api.idempotency import RepeatSafe
from horai.api.json import answer, cursor_after, instance_cursor, instance_json
from horai.api.paging import PageQuery
from horai.core.errors import Invalid, NotFound
from horai.core.queue import Rate, parse_rate
from horai.db import instance_queries
from horai.db.pool import acquire
from horai.features.dead_letters import discard, replay
from horai.features.dead_letters import service as dead_letters
from horai.features.dead_letters import store as stored
from horai.features.dead_letters.replay import LetterReplaySummary, ReplayRequest
from horai.features.dead_letters.store import FaultRow, LetterFilter, LetterRow, ReplayStatus
from horai.features.dead_letters.wire import (
    DiscardAnswer,
    DiscardManyIn,
    FaultList,
    LetterAnswer,
    LetterDetail,
    LetterList,
    LetterOut,
    LettersIn,
    ReplayAnswer,
    ReplayIn,
)
from horai.operations.scope import Scope, require_job
from horai.text import Hint, Refused, Wrong, told_by
from horai.wire.fields import DiscardIn, Id, Instant, Model, Text

router = APIRouter(prefix="/api/v1/dlq", tags=["dead letters"], route_class=RepeatSafe)

FAULTS_LOOKED_AT = 10_000
FAULTS_SHOWN = 100
HOURS = 24
ANYTHING = ("job", "tag", "error_code", "fingerprint", "instance", "from_", "to")


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


class LetterQuery(PageQuery, FaultQuery):
    """A filter for dead letters, with paging."""


async def _filter(scope: Scope, asked: FaultQuery | LettersIn, status: str | None = None) -> LetterFilter:
    job_id = None
    if asked.job is not None:
        async with acquire(scope.pool) as connection:
            job_id = (await require_job(connection, scope, asked.job)).id
    only = (asked.tag, asked.error_code, asked.fingerprint)
    instance = None if asked.instance is None else int(asked.instance)
    return LetterFilter(job_id, *only, _status(status), instance, asked.from_, asked.to)


def _status(word: str | None) -> ReplayStatus | None:
    if word is None:
        return None
    if word.upper() not in ReplayStatus.__members__:
        raise Invalid.field("status", Wrong.NO_STATUS(word=word[:60]), Hint.KNOWN(words=", ".join(ReplayStatus)))
    return ReplayStatus[word.upper()]


def _rate(written: str | int | None) -> Rate | None:
    try:
        return None if written is None else parse_rate(written)
    except ValueError as error:
        raise Invalid.field("rate", told_by(error), Hint.WRITE_RATES()) from error


def _letter_id(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise NotFound(Refused.NO_LETTER_NAMED(letter=text[:40]), Hint.LISTED_AT(path="/api/v1/dlq"))
    return int(text)


@router.get("", responses={200: {"model": LetterList}})
async def get_letters(scope: ScopeDep, query: Annotated[LetterQuery, Query()]) -> Response:
    """List dead letters, newest first."""
    before = instance_cursor(query.cursor)
    only = await _filter(scope, query, query.status)
    async with acquire(scope.pool) as connection:
        rows = await stored.list_letters(connection, scope.tenant_id, before, query.limit, only)
    cursor = cursor_after(rows[-1].created_at, rows[-1].id) if len(rows) == query.limit else None
    return answer({"items": [letter_json(row) for row in rows], "nextCursor": cursor})


@router.get("/faults", responses={200: {"model": FaultList}})
async def get_faults(scope: ScopeDep, query: Annotated[FaultQuery, Query()]) -> Response:
    """Count dead letters by fault, the most frequent first, among the newest 10,000 that match."""
    only = await _filter(scope, query, query.status)
    async with acquire(scope.pool) as connection:
        rows = await stored.group_letters(connection, scope.tenant_id, only, FAULTS_LOOKED_AT, FAULTS_SHOWN)
    return answer(_faults_json(rows))


@router.post("/replay", responses={200: {"model": ReplayAnswer}}, openapi_extra=takes(ReplayIn))
async def replay_letters(scope: ScopeDep, body: Annotated[Body[ReplayIn], Depends(body_of(ReplayIn))]) -> Response:
    """Replay dead letters that match, oldest first. The same request again skips letters that were replayed before."""
    wish = body.shape
    wanted = ReplayRequest(await _filter(scope, wish), wish.limit, _rate(wish.rate))
    if wish.dry_run:
        return _summary(await replay.count_matching(scope, wanted), dry_run=True)
    return _summary(await replay.replay_matching(scope, wanted), dry_run=False)


@router.post("/discard", responses={200: {"model": DiscardAnswer}}, openapi_extra=takes(DiscardManyIn))
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
    shown = {"matched": told.matched, "discarded": told.discarded, "more": told.more}
    return answer({**shown, "dryRun": wish.dry_run})


@router.get("/{letter}", responses={200: {"model": LetterDetail}})
async def get_letter(scope: ScopeDep, letter: str) -> Response:
    """Read one dead letter, with the instance that died."""
    row = await dead_letters.read_letter(scope, _letter_id(letter))
    async with acquire(scope.pool) as connection:
        dead = await instance_queries.instance_by_id(connection, scope.tenant_id, row.instance_id)
    return answer({**letter_json(row), "instance": None if dead is None else instance_json(dead)})


@router.post("/{letter}/replay", responses={200: {"model": LetterAnswer}, 201: {"model": LetterAnswer}})
async def replay_letter(scope: ScopeDep, letter: str) -> Response:
    """Run a dead instance again, as a new one. A letter that was replayed or superseded before is left unchanged."""
    told = await dead_letters.replay_letter(scope, _letter_id(letter))
    made = None if told.instance is None else instance_json(told.instance)
    shown = {"replayed": told.replayed, "letter": letter_json(told.letter), "instance": made}
    return answer(shown, 201 if told.replayed else 200)


@router.post("/{letter}/discard", responses={200: {"model": LetterOut}}, openapi_extra=takes(DiscardIn, required=False))
async def discard_letter(
    scope: ScopeDep, letter: str, body: Annotated[Body[DiscardIn], Depends(body_of(DiscardIn))]
) -> Response:
    """Settle a dead letter without running it again."""
    row = await dead_letters.discard_letter(scope, _letter_id(letter), body.shape.reason)
    return answer(letter_json(row))


def letter_json(row: LetterRow) -> dict[str, Any]:
    """Return a dead letter as JSON."""
    return {
        "id": str(row.id),
        "job": row.job,
        "jobId": str(row.job_id),
        "instanceId": str(row.instance_id),
        "key": row.key,
        "errorCode": row.error_code,
        "errorMsg": row.error_msg,
        "tags": row.tags,
        "fingerprint": row.fingerprint,
        "payloadRef": f"instance:{row.instance_id}",
        "replayStatus": row.replay_status,
        "replayedAs": None if row.replayed_as is None else str(row.replayed_as),
        "reason": row.reason,
        "createdAt": row.created_at,
        "changedAt": row.changed_at,
    }


def _faults_json(rows: Sequence[FaultRow]) -> dict[str, Any]:
    looked_at = rows[0].looked_at if rows else 0
    return {"items": [_fault_json(row) for row in rows], "letters": looked_at, "more": looked_at >= FAULTS_LOOKED_AT}


def _fault_json(row: FaultRow) -> dict[str, Any]:
    return {
        "fingerprint": row.fingerprint,
        "job": row.job,
        "jobId": str(row.job_id),
        "errorCode": row.error_code,
        "errorMsg": row.error_msg,
        "letters": row.letters,
        "firstAt": row.first_at,
        "lastAt": row.last_at,
        "lastLetter": str(row.last_id),
        "lastDay": [row.hours.get(ago, 0) for ago in reversed(range(HOURS))],
    }


def _summary(summary: LetterReplaySummary, *, dry_run: bool) -> Response:
    return answer(
        {
            "matched": summary.matched,
            "replayed": summary.replayed,
            "superseded": summary.superseded,
            "held": summary.held,
            "more": summary.more,
            "dryRun": dry_run,
        }
    )
