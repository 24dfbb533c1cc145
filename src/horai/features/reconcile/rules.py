"""The rules that compare desired instances with known ones and find the missing ones.

A reconciler only adds instances. It keeps live instances unchanged, and leaves ended instances alone, no matter whether
they succeeded, failed or were cancelled. It creates an instance only for an unknown key: the instance was never put, or
its row was deleted by hand.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum, auto
from typing import Any

from horai.core.errors import Invalid
from horai.core.jsontext import fault_in
from horai.core.limits import PAYLOAD_LIMIT
from horai.core.put import PutOptions, check_key, is_outdated
from horai.core.states import CancelReason, State
from horai.text import Wrong

MOST_EXAMPLES = 20
REPORTS_KEPT = 1_000
"""The number of newest reports to keep for each reconciler."""
TEXT_SHOWN = 200
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(9000, 1, 1, tzinfo=UTC)
BIGGEST_VERSION = 2**63 - 1


@dataclass(frozen=True, slots=True)
class DesiredInstance:
    """One row of a source: run this key at this time. `payload` is JSON text; None uses the payload of the job."""

    key: str
    at: datetime
    payload: str | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Faulty:
    """A row of a source that cannot be an instance, and the reason. `key` is None if the key cannot be read either."""

    key: str | None
    why: str


Row = DesiredInstance | Faulty


class SourceChoice(Enum):
    """The action for a key that the source lists."""

    keep = auto()
    """The key has a live instance."""
    leave = auto()
    """The key has ended, and its end stays as it is."""
    create = auto()


@dataclass(frozen=True, slots=True)
class EndedKey:
    """The history of a key: `succeeded` if an instance ever did, and the end of the last instance."""

    succeeded: bool
    state: State
    reason: CancelReason | None
    version: int | None = None
    fence: int = 0


def choose(wanted: DesiredInstance, *, is_live: bool, ended: EndedKey | None) -> SourceChoice:
    """Return the action for a desired key.

    A dead instance has a dead letter, which the operator replays or discards. A cancelled instance was cancelled on
    purpose. Only a superseded instance is not an end: it must have a successor, and if there is none, that row was
    deleted.
    """
    if is_live:
        return SourceChoice.keep
    if ended is None:
        return SourceChoice.create
    if ended.succeeded or is_outdated(PutOptions(wanted.version), ended.version):
        return SourceChoice.leave
    is_superseded = ended.state is State.CANCELLED and ended.reason is CancelReason.SUPERSEDED
    return SourceChoice.create if is_superseded else SourceChoice.leave


def read_row(row: Mapping[str, Any]) -> Row:
    """Parse `{key, executeTime, payload?, version?}` of a source; never raises.

    `executeTime` is a datetime or RFC 3339 text.
    """
    key = row.get("key")
    try:
        key = check_key(str(key) if isinstance(key, int) and not isinstance(key, bool) else _text(key))
    except Invalid as error:
        return Faulty(None, error.detail)
    try:
        return DesiredInstance(
            key, _instant(row.get("executeTime")), _payload(row.get("payload")), _version(row.get("version"))
        )
    except ValueError as error:
        return Faulty(key, str(error))


def wanted_row(key: object, at: object, payload: object = None, version: object = None) -> Row:
    """Parse a row that is given as separate values."""
    return read_row({"key": key, "executeTime": at, "payload": payload, "version": version})


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise Invalid.field("key", Wrong.NOT_TEXT(kind=type(value).__name__))
    return value


def _instant(value: object) -> datetime:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(f"executeTime: {value[:40]!r} is not an instant") from None
    if not isinstance(value, datetime):
        raise ValueError(f"executeTime: must be an instant, not {type(value).__name__}")  # noqa: TRY004 — bad data of a row
    if value.tzinfo is None:
        raise ValueError("executeTime: has no UTC offset")
    try:
        instant = value.astimezone(UTC)
    except OverflowError:
        instant = LATEST
    if not EARLIEST <= instant < LATEST:
        raise ValueError("executeTime: is not between the years 1970 and 9000")
    return instant


def _payload(value: Any) -> str | None:
    """Return the JSON text of a value; None for null."""
    if value is None:
        return None
    if (fault := fault_in(value)) is not None:
        raise ValueError(f"payload{fault[0]}: {fault[1]}")
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"payload: is not JSON ({type(error).__name__})") from None
    if len(text.encode()) > PAYLOAD_LIMIT:
        raise ValueError(f"payload: is larger than {PAYLOAD_LIMIT} bytes")
    return text


def _version(value: object) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= BIGGEST_VERSION:
        raise ValueError("version: is not a whole number from 0 to 2^63 - 1")
    return value


@dataclass(frozen=True, slots=True)
class ReconcileCounts:
    """The counts of a page, or of a run so far. Examples are the first of their kind, at most `MOST_EXAMPLES`."""

    found: int = 0
    missing: int = 0
    created: int = 0
    left_alone: int = 0
    faulty: int = 0
    missing_keys: tuple[str, ...] = ()
    faults: tuple[tuple[str | None, str], ...] = ()

    def plus(self, other: "ReconcileCounts") -> "ReconcileCounts":
        """Return the sum of both; examples are limited to the first `MOST_EXAMPLES`."""
        return ReconcileCounts(
            self.found + other.found,
            self.missing + other.missing,
            self.created + other.created,
            self.left_alone + other.left_alone,
            self.faulty + other.faulty,
            (self.missing_keys + other.missing_keys)[:MOST_EXAMPLES],
            (self.faults + other.faults)[:MOST_EXAMPLES],
        )


@dataclass(frozen=True, slots=True)
class SortedRows:
    """The rows of a page: one per key, and the faulty ones. `keys` are all keys of the page."""

    wanted: Mapping[str, DesiredInstance] = field(default_factory=dict[str, DesiredInstance])
    faulty: Sequence[Faulty] = ()

    @property
    def keys(self) -> list[str]:
        """All keys of the page, including those of faulty rows: an instance of such a key is not surplus."""
        return sorted({*self.wanted, *(row.key for row in self.faulty if row.key is not None)})


def sort_rows(rows: Sequence[Row]) -> SortedRows:
    """Sort the rows of a page: the first row of a key counts, and each further row of that key is faulty."""
    wanted: dict[str, DesiredInstance] = {}
    faulty: list[Faulty] = []
    for row in rows:
        if isinstance(row, Faulty):
            faulty.append(row)
        elif row.key in wanted:
            faulty.append(Faulty(row.key, "key: occurs twice on one page"))
        else:
            wanted[row.key] = row
    return SortedRows(wanted, faulty)


def tally_of(page: SortedRows, choices: Mapping[str, SourceChoice], created: int) -> ReconcileCounts:
    """Return the counts of a page."""
    missing = [key for key in page.wanted if choices[key] is SourceChoice.create]
    return ReconcileCounts(
        len(page.wanted) + len(page.faulty),
        len(missing),
        created,
        sum(1 for choice in choices.values() if choice is SourceChoice.leave),
        len(page.faulty),
        tuple(missing[:MOST_EXAMPLES]),
        tuple((row.key, row.why[:TEXT_SHOWN]) for row in page.faulty[:MOST_EXAMPLES]),
    )
