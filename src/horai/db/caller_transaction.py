"""What is asked inside a transaction of the caller's: a question per statement of sql/within.sql, for any driver to ask."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeAlias, TypeVar

from horai.core.errors import Invalid
from horai.core.jsontext import JsonError, check_text
from horai.core.put import PayloadMissing, PutDecision, PutOptions
from horai.core.states import State
from horai.db.catalog import sql
from horai.db.instances import Unkeyed
from horai.text import Hint, Wrong, told_by

T = TypeVar("T")
Row: TypeAlias = tuple[Any, ...]
Argument: TypeAlias = str | list[str | None] | None

SAVEPOINT = sql("set_savepoint")
RELEASE = sql("release_savepoint")
RETURN = sql("return_to_savepoint")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Query(Generic[T]):
    """A statement with `$1`, `$2`, …, what it is asked with, and what its rows say."""

    statement: str
    arguments: tuple[Argument, ...]
    read: Callable[[Sequence[Row]], T]


@dataclass(frozen=True, slots=True)
class PutAnswer:
    """What became of a put, and of which instance."""

    verdict: PutDecision
    instance_id: int
    state: State
    execute_time: datetime


@dataclass(frozen=True, slots=True)
class Enqueued:
    """A new instance."""

    instance_id: int
    execute_time: datetime


@dataclass(frozen=True, slots=True)
class CancelAnswer:
    """A cancelled instance; what one that was RUNNING has sent stays sent."""

    instance_id: int
    was: State


def put(
    job: str, key: str, at: datetime | None, payload: str | None, intent: PutOptions, needs_payload: bool = False
) -> Query[PutAnswer]:
    """Creates or reschedules the instance of a key by the rules of put; no time means now, no payload the job's.

    With `needs_payload`, reading the answer of a put that created an instance without one raises `PayloadMissing`.
    """
    version = None if intent.version is None else str(intent.version)
    arguments = (_plain("job", job), _plain("key", key), _moment(at), _plain("payload", payload), version)
    read = _read_put_of_payload if needs_payload and payload is None else _read_put
    return Query(sql("put_within"), (*arguments, str(intent.again).lower()), read)


def enqueue(job: str, item: Unkeyed) -> Query[Enqueued]:
    """Adds an instance without a key."""
    at, payload = item
    arguments = (_plain("job", job), _plain("payload", payload), _moment(at))
    return Query(sql("enqueue_within"), arguments, _read_enqueued)


def enqueue_many(job: str, items: Sequence[Unkeyed]) -> Query[list[int]]:
    """Adds instances without a key, all or none; their ids, in the order of the items."""
    payloads = [_plain("payload", payload) for _, payload in items]
    times = [_moment(at) for at, _ in items]
    return Query(sql("enqueue_many_within"), (_plain("job", job), payloads, times), _read_ids)


def cancel(job: str, key: str) -> Query[CancelAnswer | None]:
    """Cancels the live instance of a key; None when it has none."""
    return Query(sql("cancel_within"), (_plain("job", job), _plain("key", key)), _read_cancelled)


def add_entities(job: str, items: Mapping[str, str | None]) -> Query[int]:
    """Adds entities to a refresh job with their payloads; how many are new."""
    keys = [_plain("key", key) for key in items]
    payloads = [_plain("payload", payload) for payload in items.values()]
    return Query(sql("add_entities_within"), (_plain("job", job), keys, payloads), _read_one)


def remove_entity(job: str, key: str) -> Query[bool]:
    """Takes an entity from a refresh job; whether it was one."""
    return Query(sql("remove_entity_within"), (_plain("job", job), _plain("key", key)), _read_one)


def now() -> Query[datetime]:
    """The database's time."""
    return Query(sql("now_within"), (), _read_now)


def _read_one(rows: Sequence[Row]) -> Any:
    ((answer,),) = rows
    return answer


def _read_now(rows: Sequence[Row]) -> datetime:
    ((micros,),) = rows
    return _instant(micros)


def _read_put(rows: Sequence[Row]) -> PutAnswer:
    ((decision, instance_id, state, micros),) = rows
    return PutAnswer(PutDecision(decision), instance_id, State[state], _instant(micros))


def _read_put_of_payload(rows: Sequence[Row]) -> PutAnswer:
    answer = _read_put(rows)
    if answer.verdict is PutDecision.INSERTED:
        raise PayloadMissing  # the savepoint takes the row back
    return answer


def _read_enqueued(rows: Sequence[Row]) -> Enqueued:
    ((instance_id, micros),) = rows
    return Enqueued(instance_id, _instant(micros))


def _read_ids(rows: Sequence[Row]) -> list[int]:
    return [instance_id for (instance_id,) in rows]


def _read_cancelled(rows: Sequence[Row]) -> CancelAnswer | None:
    return next((CancelAnswer(instance_id, State[was]) for instance_id, was in rows), None)


def _plain(field: str, text: str | None) -> str | None:
    """What PostgreSQL can hold as text: no driver is asked to say it in its own words."""
    try:
        return text if text is None else check_text(text)
    except JsonError as error:
        raise Invalid.field(field, told_by(error)) from error


def _moment(at: datetime | None) -> str | None:
    if at is not None and at.tzinfo is None:
        raise Invalid.field("at", Wrong.NO_ZONE(), Hint.GIVE_ZONE())
    return at if at is None else at.isoformat()


def _instant(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)
