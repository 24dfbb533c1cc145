"""Queries that run in the caller's transaction: one per statement of sql/caller_transaction.sql, for any driver."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeAlias, TypeVar

from horai.core.call_settings import NO_SETTINGS, CallSettings
from horai.core.call_windows import CallWindow
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
    job: str,
    key: str,
    at: datetime | None,
    payload: str | None,
    intent: PutOptions,
    needs_payload: bool = False,
    settings: CallSettings = NO_SETTINGS,
) -> Query[PutAnswer]:
    """Create or reschedule the instance of a key by the rules of put. No time means now, no payload the job's.

    With `needs_payload`, `read` raises `PayloadMissing` if the put created an instance without a payload.
    """
    version = None if intent.version is None else str(intent.version)
    arguments = (_plain("job", job), _plain("key", key), _moment(at), _plain("payload", payload), version)
    read = _read_put_of_payload if needs_payload and payload is None else _read_put
    arguments = (*arguments, str(intent.again).lower())
    if settings.is_empty:
        return Query(sql("put_keeping_within" if intent.keep_steps else "put_within"), arguments, read)
    statement = sql("put_keeping_with_settings_within" if intent.keep_steps else "put_with_settings_within")
    return Query(statement, (*arguments, *_settings([settings])), read)


def enqueue(job: str, item: Unkeyed, settings: CallSettings = NO_SETTINGS) -> Query[Enqueued]:
    """Add an instance without a key."""
    at, payload = item
    arguments = (_plain("job", job), _plain("payload", payload), _moment(at))
    if settings.is_empty:
        return Query(sql("enqueue_within"), arguments, _read_enqueued)
    return Query(sql("enqueue_with_settings_within"), (*arguments, *_settings([settings])), _read_enqueued)


def enqueue_calls(
    job: str,
    at: datetime | None,
    payloads: Sequence[str | None],
    window: CallWindow,
    digests: Sequence[bytes | None] = (),
    settings: Sequence[CallSettings] | None = None,
) -> Query[list[tuple[PutDecision, int]]]:
    """Add calls with a window. The query returns the decision and the instance of each; `digests` are of an encrypted job."""
    texts = [_plain("payload", payload) for payload in payloads]
    span = f"{window.span // timedelta(microseconds=1)} microseconds"
    keyed = [None if digest is None else digest.hex() for digest in digests]
    arguments = (_plain("job", job), texts, str(int(window.kind)), span, _moment(at), keyed)
    if settings is None:
        return Query(sql("enqueue_calls_within"), arguments, _read_calls)
    return Query(sql("enqueue_calls_with_settings_within"), (*arguments, *_settings(settings)), _read_calls)


def enqueue_many(
    job: str, items: Sequence[Unkeyed], settings: Sequence[CallSettings] | None = None
) -> Query[list[int]]:
    """Add instances without a key, all or none. The query returns their ids in the order of the items."""
    payloads = [_plain("payload", payload) for _, payload in items]
    times = [_moment(at) for at, _ in items]
    arguments = (_plain("job", job), payloads, times)
    if settings is None:
        return Query(sql("enqueue_many_within"), arguments, _read_ids)
    return Query(sql("enqueue_many_with_settings_within"), (*arguments, *_settings(settings)), _read_ids)


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


def record_step(guard: tuple[int, int, int, int], name: str, n: int, result: str) -> Query[bool]:
    """Record a finished step of the claim (instance, attempt, fence, node). The query returns whether the claim holds."""
    arguments = (*map(str, guard), name, str(n), result)
    return Query(sql("record_step_within"), arguments, _read_one)


def signal(job: str, key: str, name: str, payload: str | None, idempotency_key: str | None) -> Query[int]:
    """Send a signal to the live instance of a key. The query returns the id of the signal."""
    arguments = (_plain("job", job), _plain("key", key), _plain("name", name), _plain("payload", payload))
    return Query(sql("signal_within"), (*arguments, _plain("idempotency_key", idempotency_key)), _read_one)


def update_asset(
    name: str, metadata: str | None, start: datetime | None, end: datetime | None, idempotency_key: str | None
) -> Query[int]:
    """Update an asset from outside. The query returns the id of the update."""
    given = (_plain("asset", name), _plain("metadata", metadata), _moment(start), _moment(end))
    return Query(sql("update_asset_within"), (*given, _plain("idempotency_key", idempotency_key)), _read_one)


def start_composition(
    workflow: str, at: datetime | None, payload: str, idempotency_key: str | None
) -> Query[tuple[int, bool]]:
    """Start a composition whose form is defined. The query returns the id of its run, and whether this call started it."""
    given = (_plain("form", workflow), _plain("payload", payload), _moment(at))
    return Query(sql("start_composition_within"), (*given, _plain("idempotency_key", idempotency_key)), _read_started)


def now() -> Query[datetime]:
    """Read the database time."""
    return Query(sql("now_within"), (), _read_now)


def _read_one(rows: Sequence[Row]) -> Any:
    ((answer,),) = rows
    return answer


def _read_started(rows: Sequence[Row]) -> tuple[int, bool]:
    ((instance_id, is_new),) = rows
    return instance_id, is_new


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


def _read_calls(rows: Sequence[Row]) -> list[tuple[PutDecision, int]]:
    return [(PutDecision(decision), instance_id) for decision, instance_id in rows]


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


def _settings(given: Sequence[CallSettings]) -> tuple[Argument, ...]:
    """Return queue, priority, expiry and concurrency keys as arguments. Calls of one statement differ only in their keys."""
    own = given[0] if given else NO_SETTINGS
    after = own.expires_after
    span = None if after is None else f"{after // timedelta(microseconds=1)} microseconds"
    keys = [_plain("concurrency_key", each.concurrency_key) for each in given]
    has_keys = any(key is not None for key in keys)
    priority = None if own.priority is None else own.priority.name
    return own.queue, priority, span, _moment(own.expires_at), keys if has_keys else None


def _moment(at: datetime | None) -> str | None:
    if at is not None and at.tzinfo is None:
        raise Invalid.field("at", Wrong.NO_ZONE(), Hint.GIVE_ZONE())
    return at if at is None else at.isoformat()


def _instant(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)
