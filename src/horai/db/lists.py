"""Lists of instances: one function per statement of sql/lists.sql, and the page that they make together."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from heapq import merge

from horai.core.states import FINAL, LIVE, State
from horai.db.catalog import sql
from horai.db.pool import Connection
from horai.db.reads import InstanceRow, instance_of

Position = tuple[datetime, int]

LOOKED_AT = 20_000
"""So many rows of each table are looked at for one page."""
_RARE = {LIVE: frozenset({State.FAIL}), FINAL: FINAL - {State.SUCCESS}}
"""States whose rows an index of their own has, on either side."""
_STATEMENTS = {LIVE: ("list_live", "end_of_live"), FINAL: ("list_history", "end_of_history")}
_BEGUN = frozenset({State.RUNNING})
_BEHIND_ALL = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class InstanceFilter:
    """What a list of instances is narrowed to."""

    states: frozenset[State] = field(default_factory=lambda: LIVE | FINAL)
    job_id: int | None = None
    key: str | None = None
    from_time: datetime | None = None
    to_time: datetime | None = None
    queue: str | None = None
    tag: str | None = None
    error_code: str | None = None
    key_prefix: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Rows in their order, and where the next page begins: None when there is none."""

    rows: Sequence[InstanceRow]
    next: Position | None


@dataclass(frozen=True, slots=True)
class _Side:
    """What one table has: all that match down to `reached`, or to the table's end."""

    rows: Sequence[InstanceRow]
    reached: Position | None


async def list_instances(
    connection: Connection, tenant_id: int, before: Position, limit: int, only: InstanceFilter
) -> Page:
    """A page, newest fire time first, that starts after `before`; live and finished ones merged."""
    live, past = only.states & LIVE, only.states & FINAL
    sides = [await _side(connection, tenant_id, before, limit, only, LIVE)] if live else []
    sides += [await _side(connection, tenant_id, before, limit, only, FINAL)] if past else []
    seen: dict[int, InstanceRow] = {}
    for row in merge(*(side.rows for side in sides), key=_position, reverse=True):
        seen[row.id] = row  # a row that moved between the two looks counts once, as finished
    reached = max((side.reached for side in sides if side.reached is not None), default=None)
    rows = [row for row in seen.values() if reached is None or _position(row) >= reached][:limit]
    return Page(rows, _position(rows[-1]) if len(rows) == limit else reached)


def _position(row: InstanceRow) -> Position:
    return row.fire_time, row.id


async def _side(
    connection: Connection, tenant_id: int, before: Position, limit: int, only: InstanceFilter, side: frozenset[State]
) -> _Side:
    states = only.states & side
    is_rare = states <= _RARE[side] or only.error_code is not None  # only what has failed has one
    listing, ending = _STATEMENTS[side]
    prefix = (only.key_prefix, None if only.key_prefix is None else only.key_prefix + _BEHIND_ALL)
    times = (only.from_time, only.to_time)
    narrowed = ([int(state) for state in states], only.job_id, only.key, *times, only.queue, only.tag, only.error_code)
    begun = (states == _BEGUN,) if side is LIVE else ()
    start = (tenant_id, *before)
    rows = await connection.fetch(sql(listing), *start, limit, *narrowed, LOOKED_AT, *prefix, is_rare, *begun)
    found = [instance_of(row) for row in rows]
    if len(found) == limit:
        return _Side(found, _position(found[-1]))
    end = await connection.fetchrow(
        sql(ending), *start, LOOKED_AT, only.job_id, *times, is_rare, only.key, *prefix, *begun
    )
    return _Side(found, None if end is None else (end["fire_time"], end["id"]))


@dataclass(frozen=True, slots=True)
class Glimpse:
    """An instance as a mark in a row of many."""

    id: int
    state: State
    fire_time: datetime
    started_at: datetime | None
    finished_at: datetime | None


async def recent_of_jobs(connection: Connection, job_ids: Sequence[int], count: int) -> dict[int, list[Glimpse]]:
    """The last instances of jobs whose time has come, newest first."""
    found: defaultdict[int, list[Glimpse]] = defaultdict(list)
    for job_id, id_, state, *times in await connection.fetch(sql("recent_of_jobs"), list(job_ids), count):
        found[job_id].append(Glimpse(id_, State(state), *times))
    for glimpses in found.values():
        glimpses.sort(key=lambda glimpse: (glimpse.fire_time, glimpse.id), reverse=True)
    return found


async def waiting_of_jobs(connection: Connection, job_ids: Sequence[int]) -> dict[int, datetime]:
    """The next fire time of what waits for it already, by job."""
    return {row["id"]: row["fire_time"] for row in await connection.fetch(sql("waiting_of_jobs"), list(job_ids))}
