"""Queries that run in the caller's transaction: one per statement of sql/caller_transaction.sql, for any driver."""

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
    """A statement with `$1`, `$2`, …, its arguments, and a function that decodes its rows."""

    statement: str
    arguments: tuple[Argument, ...]
    read: Callable[[Sequence[Row]], T]


@dataclass(frozen=True, slots=True)
class PutAnswer:
    """The decision on a put, and the instance that it applies to."""

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
    """A cancelled instance and its previous state. A call that a RUNNING instance has sent is not undone."""

    instance_id: int
    was: State


def put(
    job: str, key: str, at: datetime | None, payload: str | None, intent: PutOptions, needs_payload: bool = False
) -> Query[PutAnswer]:
    """Create or reschedule the instance of a key by the rules of put. No time means now, no payload the job's.

    With `needs_payload`, `read` raises `PayloadMissing` if the put created an instance without a payload.
    """
    version = None if intent.version is None else str(intent.version)
    arguments = (_plain("job", job), _plain("key", key), _moment(at), _plain("payload", payload), version)
    read = _read_put_of_payload if needs_payload and payload is None else _read_put
    return Query(sql("put_within"), (*arguments, str(intent.again).lower()), read)


def enqueue(job: str, item: Unkeyed) -> Query[Enqueued]:
    """Add an instance without a key."""
    at, payload = item
    arguments = (_plain("job", job), _plain("payload", payload), _moment(at))
    return Query(sql("enqueue_within"), arguments, _read_enqueued)


def enqueue_many(job: str, items: Sequence[Unkeyed]) -> Query[list[int]]:
    """Add instances without a key, all or none. The query returns their ids in the order of the items."""
    payloads = [_plain("payload", payload) for _, payload in items]
    times = [_moment(at) for at, _ in items]
    return Query(sql("enqueue_many_within"), (_plain("job", job), payloads, times), _read_ids)


def cancel(job: str, key: str) -> Query[CancelAnswer | None]:
    """Cancel the live instance of a key. The query returns None if the key has none."""
    return Query(sql("cancel_within"), (_plain("job", job), _plain("key", key)), _read_cancelled)


def add_entities(job: str, items: Mapping[str, str | None]) -> Query[int]:
    """Add entities with their payloads to a refresh job. The query returns the number of new entities."""
    keys = [_plain("key", key) for key in items]
    payloads = [_plain("payload", payload) for payload in items.values()]
    return Query(sql("add_entities_within"), (_plain("job", job), keys, payloads), _read_one)


def remove_entity(job: str, key: str) -> Query[bool]:
    """Remove an entity from a refresh job. The query returns whether it existed."""
    return Query(sql("remove_entity_within"), (_plain("job", job), _plain("key", key)), _read_one)


def now() -> Query[datetime]:
    """Read the database time."""
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
        raise PayloadMissing  # the rollback to the savepoint removes the row
    return answer


def _read_enqueued(rows: Sequence[Row]) -> Enqueued:
    ((instance_id, micros),) = rows
    return Enqueued(instance_id, _instant(micros))


def _read_ids(rows: Sequence[Row]) -> list[int]:
    return [instance_id for (instance_id,) in rows]


def _read_cancelled(rows: Sequence[Row]) -> CancelAnswer | None:
    return next((CancelAnswer(instance_id, State[was]) for instance_id, was in rows), None)


def _plain(field: str, text: str | None) -> str | None:
    """Return the text, or raise `Invalid` if PostgreSQL cannot store it: the error is the same for every driver."""
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
