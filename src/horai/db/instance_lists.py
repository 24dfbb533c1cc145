"""Lists of instances: one function per statement of sql/instance_lists.sql, and the page that they build."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from heapq import merge

from horai.core.limits import LISTED_PAYLOAD_BYTES, PAGE_BYTES
from horai.core.states import FINAL, LIVE, State
from horai.db.catalog import sql
from horai.db.instance_queries import FIRST, LAST, InstanceRow, instance_of
from horai.db.pool import TenantRead

Position = tuple[datetime, int]

LOOKED_AT = 20_000
"""Rows of each table that are read at most for one page."""
PAYLOADS_LOOKED_AT = 2_000
"""The same limit with a payload filter: each payload is read from TOAST storage and parsed."""
_RARE = {LIVE: frozenset({State.FAIL}), FINAL: FINAL - {State.SUCCESS}}
"""The states that have a partial index of their own, for live and for final instances."""
_STATEMENTS = {
    (LIVE, False): ("list_live", "end_of_live"),
    (FINAL, False): ("list_history", "end_of_history"),
    (LIVE, True): ("list_live_upwards", "end_of_live_upwards"),
    (FINAL, True): ("list_history_upwards", "end_of_history_upwards"),
}
_BEGUN = frozenset({State.RUNNING})
_BEHIND_ALL = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class PayloadField:
    """A field of a payload, by its path of member names, and its value as text."""

    path: tuple[str, ...]
    value: str


@dataclass(frozen=True, slots=True)
class InstanceFilter:
    """The filters of a list of instances. `ids` has at most one page of ids."""

    states: frozenset[State] = field(default_factory=lambda: LIVE | FINAL)
    job_id: int | None = None
    key: str | None = None
    from_time: datetime | None = None
    to_time: datetime | None = None
    queue: str | None = None
    tag: str | None = None
    error_code: str | None = None
    key_prefix: str | None = None
    payload: PayloadField | None = None
    ids: tuple[int, ...] | None = None

    @property
    def looked_at(self) -> int:
        """Return the number of rows of each table that may be read for one page."""
        return LOOKED_AT if self.payload is None else PAYLOADS_LOOKED_AT

    @property
    def key_range(self) -> tuple[str | None, str | None]:
        """Return the prefix of keys and an upper bound of all keys that have it."""
        return self.key_prefix, None if self.key_prefix is None else self.key_prefix + _BEHIND_ALL

    @property
    def payload_member(self) -> tuple[list[str] | None, str | None]:
        """Return the path of the payload field and its value."""
        return (None, None) if self.payload is None else (list(self.payload.path), self.payload.value)


def has_only_rare(only: InstanceFilter, side: frozenset[State]) -> bool:
    """Return whether all matching rows of a table are in its partial index of rare states."""
    return only.states & side <= _RARE[side] or only.error_code is not None  # only failed instances have an error code


def is_begun(live: frozenset[State]) -> bool:
    """Return whether instances in these states have started, so that their fire times lie in the past."""
    return live == _BEGUN


@dataclass(frozen=True, slots=True)
class InstancePage:
    """The rows in order, and the position where the next page starts: None on the last page."""

    rows: Sequence[InstanceRow]
    next: Position | None


@dataclass(frozen=True, slots=True)
class PageStart:
    """The start of a page and its direction: with `upwards`, the oldest fire time comes first."""

    at: Position
    upwards: bool = False

    @classmethod
    def of_all(cls, *, upwards: bool) -> "PageStart":
        """Return the start of the first page."""
        return cls(FIRST if upwards else LAST, upwards)

    @classmethod
    def from_time(cls, at: datetime, *, upwards: bool) -> "PageStart":
        """Return the start of a page whose first rows have the fire time `at`, or the next one in its direction."""
        return cls((at, FIRST[1] if upwards else LAST[1]), upwards)


@dataclass(frozen=True, slots=True)
class _Side:
    """The matching rows of one table up to the position `reached`, or up to its end (None)."""

    rows: Sequence[InstanceRow]
    reached: Position | None


async def list_instances(
    connection: TenantRead, tenant_id: int, start: PageStart, limit: int, only: InstanceFilter
) -> InstancePage:
    """Return a page by fire time that starts after `start`, with live and finished instances merged."""
    live, past = only.states & LIVE, only.states & FINAL
    sides = [await _side(connection, tenant_id, start, limit, only, LIVE)] if live else []
    sides += [await _side(connection, tenant_id, start, limit, only, FINAL)] if past else []
    seen: dict[int, InstanceRow] = {}
    for row in merge(*(side.rows for side in sides), key=_position, reverse=not start.upwards):
        seen[row.id] = row  # a row that moved between the two queries counts once, as finished
    ends = [side.reached for side in sides if side.reached is not None]
    reached = None if not ends else min(ends) if start.upwards else max(ends)
    within = [row for row in seen.values() if reached is None or _is_within(_position(row), reached, start)]
    rows = rows_that_fit(within[:limit])
    return InstancePage(rows, _position(rows[-1]) if len(rows) == limit or len(rows) < len(within) else reached)


def rows_that_fit(rows: Sequence[InstanceRow]) -> Sequence[InstanceRow]:
    """Return the first rows that fit into `PAGE_BYTES` together, at least one."""
    total = 0
    for count, row in enumerate(rows):
        total += row.bytes
        if total > PAGE_BYTES and count:
            return rows[:count]
    return rows


def _position(row: InstanceRow) -> Position:
    return row.fire_time, row.id


def _is_within(position: Position, reached: Position, start: PageStart) -> bool:
    return position <= reached if start.upwards else position >= reached


async def _side(
    connection: TenantRead, tenant_id: int, start: PageStart, limit: int, only: InstanceFilter, side: frozenset[State]
) -> _Side:
    states = only.states & side
    is_rare = has_only_rare(only, side)
    listing, ending = _STATEMENTS[side, start.upwards]
    prefix = only.key_range
    times = (only.from_time, only.to_time)
    narrowed = ([int(state) for state in states], only.job_id, only.key, *times, only.queue, only.tag, only.error_code)
    begun = (is_begun(states),) if side is LIVE else ()
    begin = (tenant_id, *start.at)
    rare = (only.looked_at, *prefix, is_rare)
    sizes = (LISTED_PAYLOAD_BYTES, PAGE_BYTES)
    rows = await connection.fetch(
        sql(listing), *begin, limit, *narrowed, *rare, *only.payload_member, only.ids, *begun, *sizes
    )
    found = [instance_of(row) for row in rows]
    if len(found) == limit or sum(row.bytes for row in found) >= PAGE_BYTES:
        return _Side(found, _position(found[-1]))
    if only.ids is not None:
        return _Side(found, None)  # one query sees all of them
    bounds = (only.looked_at, only.job_id, *times, is_rare, only.key, *prefix)
    end = await connection.fetchrow(sql(ending), *begin, *bounds, *begun)
    return _Side(found, None if end is None else (end["fire_time"], end["id"]))


@dataclass(frozen=True, slots=True)
class Glimpse:
    """A short form of an instance, for a strip of recent instances."""

    id: int
    state: State
    fire_time: datetime
    started_at: datetime | None
    finished_at: datetime | None


async def recent_of_jobs(connection: TenantRead, job_ids: Sequence[int], count: int) -> dict[int, list[Glimpse]]:
    """Return the last `count` instances of each job with a past fire time, newest first."""
    found: defaultdict[int, list[Glimpse]] = defaultdict(list)
    for job_id, id_, state, *times in await connection.fetch(sql("recent_of_jobs"), list(job_ids), count):
        found[job_id].append(Glimpse(id_, State(state), *times))
    for glimpses in found.values():
        glimpses.sort(key=lambda glimpse: (glimpse.fire_time, glimpse.id), reverse=True)
    return found


async def waiting_of_jobs(connection: TenantRead, job_ids: Sequence[int]) -> dict[int, datetime]:
    """Return the earliest future fire time of the live instances of each job."""
    return {row["id"]: row["fire_time"] for row in await connection.fetch(sql("waiting_of_jobs"), list(job_ids))}
