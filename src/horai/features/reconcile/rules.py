"""What the business wants, held against what is known: which instances are missing.

A reconciler only ever adds. What is live is kept as it is; what has ended, well or badly or by somebody's decision, is left
alone. Created is what nobody knows of: it was never put, or its row was taken away by hand.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum, auto
from typing import Any

from horai.core.errors import Invalid
from horai.core.jsontext import fault_in
from horai.core.put import PutOptions, check_key, is_outdated
from horai.core.settings import PAYLOAD_LIMIT
from horai.core.states import CancelReason, State
from horai.text import Wrong

MOST_EXAMPLES = 20
REPORTS_KEPT = 1_000
"""Of each reconciler, the newest."""
TEXT_SHOWN = 200
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(9000, 1, 1, tzinfo=UTC)
BIGGEST_VERSION = 2**63 - 1


@dataclass(frozen=True, slots=True)
class DesiredInstance:
    """One row of a source: this key is to be run at this time. `payload` is JSON text; None takes the job's."""

    key: str
    at: datetime
    payload: str | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Faulty:
    """A row of a source that cannot be an instance, and why. Its key is None when even that cannot be read."""

    key: str | None
    why: str


Row = DesiredInstance | Faulty


class SourceChoice(Enum):
    """What becomes of a key that the source has."""

    keep = auto()
    """It is live."""
    leave = auto()
    """It has ended, and nothing is to be undone."""
    create = auto()


@dataclass(frozen=True, slots=True)
class EndedKey:
    """What history knows of a key: whether it ever succeeded, and how the last of its instances ended."""

    succeeded: bool
    state: State
    reason: CancelReason | None
    version: int | None = None
    fence: int = 0


def choose(wanted: DesiredInstance, *, is_live: bool, ended: EndedKey | None) -> SourceChoice:
    """What a wanted key needs.

    A dead one has its letter, from which it is replayed or discarded; a cancelled one was cancelled by somebody's decision.
    Only a superseded instance is no end: its successor should be there, and where it is not, it was taken away.
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
    """A source's `{key, executeTime, payload?, version?}`, with instants as datetimes or RFC 3339 text; never raises."""
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
    """The same of values that stand side by side."""
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
            raise ValueError(f"executeTime: {value[:40]!r} is no instant") from None
    if not isinstance(value, datetime):
        raise ValueError(f"executeTime: is no instant but {type(value).__name__}")  # noqa: TRY004 — a fault of the row
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
    """JSON text of a value; None for null."""
    if value is None:
        return None
    if (fault := fault_in(value)) is not None:
        raise ValueError(f"payload{fault[0]}: {fault[1]}")
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"payload: is no JSON ({type(error).__name__})") from None
    if len(text.encode()) > PAYLOAD_LIMIT:
        raise ValueError(f"payload: is larger than {PAYLOAD_LIMIT} bytes")
    return text


def _version(value: object) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= BIGGEST_VERSION:
        raise ValueError("version: is no number from 0 to 2^63 - 1")
    return value


@dataclass(frozen=True, slots=True)
class ReconcileCounts:
    """What a page, or a run so far, has come to. Examples are the first of their kind, `MOST_EXAMPLES` at most."""

    found: int = 0
    missing: int = 0
    created: int = 0
    left_alone: int = 0
    faulty: int = 0
    missing_keys: tuple[str, ...] = ()
    faults: tuple[tuple[str | None, str], ...] = ()

    def plus(self, other: "ReconcileCounts") -> "ReconcileCounts":
        """Both together."""
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
    """The rows of a page: one per key, and those that cannot be run. `keys` are all that the source has here."""

    wanted: Mapping[str, DesiredInstance] = field(default_factory=dict[str, DesiredInstance])
    faulty: Sequence[Faulty] = ()

    @property
    def keys(self) -> list[str]:
        """Those of faulty rows too: an instance of such a key is not surplus."""
        return sorted({*self.wanted, *(row.key for row in self.faulty if row.key is not None)})


def sort_rows(rows: Sequence[Row]) -> SortedRows:
    """The first of a key is the one that counts; another is a fault of the source."""
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
    """What a page came to."""
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
