"""Schedules and their slots: one function per statement of sql/schedules.sql."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from horai.core.limits import SHARDS
from horai.core.timing import Rhythm
from horai.db.catalog import sql
from horai.db.pool import AnyWrite, Platform, TenantWrite
from horai.time.schedule import Schedule
from horai.time.zone_change import ZoneMark, mark_at, mark_before
from horai.time.zones import version


@dataclass(frozen=True, slots=True)
class ScheduleCursor:
    """The cursor of a schedule: the slot that is being created, and the last job that has it."""

    schedule_id: int
    fire_time: datetime
    last_job: int


@dataclass(frozen=True, slots=True)
class LockedSchedule:
    """A schedule that the trigger has locked. The database decides `is_due`.

    `is_stale`: its slot was computed with other zone rules than those of this process.
    """

    cursor: ScheduleCursor
    rhythm: Rhythm
    is_due: bool
    now: datetime
    is_stale: bool
    mark: ZoneMark | None


@dataclass(frozen=True, slots=True)
class MadeSlots:
    """The result of one chunk of a slot.

    `jobs` were read, up to `last_job`; `made` instances were created in `lanes`, the first one due at `due`. `gated`
    are the jobs whose slots wait for a decision of the overlap gate.
    """

    schedule_id: int
    jobs: int
    last_job: int
    made: int
    lanes: tuple[int, ...]
    due: datetime | None
    gated: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """The next position of a cursor: the next slot (None: the schedule sleeps), and the last job that has it."""

    cursor: ScheduleCursor
    schedule: Schedule
    next_fire: datetime | None
    now: datetime
    next_job: int = 0

    @property
    def mark(self) -> ZoneMark | None:
        """Return the progress of the schedule after this step; a slot that was started counts as done."""
        if self.next_fire is None:
            return None
        if self.next_job:
            return mark_at(self.schedule, self.next_fire)
        return mark_before(self.schedule, self.next_fire, self.now)


async def join_schedule(connection: TenantWrite, rhythm: Rhythm, next_fire: datetime, now: datetime) -> ScheduleCursor:
    """Lock the schedule against the trigger until commit and return its cursor.

    Creates the schedule, or wakes it, at `next_fire` if needed.
    """
    row = await connection.fetchrow(sql("share_schedule"), rhythm.identity)
    if row is None:
        mark = mark_before(rhythm.schedule, next_fire, now)
        row = await connection.fetchrow(
            sql("wake_schedule"),
            rhythm.identity,
            json.dumps(rhythm.to_spec()),
            next_fire,
            mark.passed,
            mark.wall,
            version(),
        )
    assert row is not None  # noqa: S101 — an upsert with RETURNING always returns a row
    return ScheduleCursor(*row.values())


async def share_schedule_of(connection: TenantWrite, schedule_id: int) -> ScheduleCursor | None:
    """Lock the schedule against the trigger until commit and return its cursor; None while it sleeps."""
    row = await connection.fetchrow(sql("share_schedule_of"), schedule_id)
    return None if row is None else ScheduleCursor(*row.values())


async def coming_schedules(
    connection: Platform, until: datetime, limit: int, shards: Collection[int] = range(SHARDS)
) -> list[tuple[int, datetime]]:
    """Return the schedules of these shards that fire until `until`, earliest first."""
    rows = await connection.fetch(sql("coming_schedules"), until, limit, list(shards), SHARDS)
    return [(row["id"], row["fire_time"]) for row in rows]


async def lock_schedules(connection: Platform, ids: Sequence[int]) -> list[LockedSchedule]:
    """Lock and return those of `ids` that are awake; skip schedules that another transaction has locked."""
    rows = await connection.fetch(sql("lock_schedules"), list(ids), version())
    return [
        LockedSchedule(
            ScheduleCursor(row["id"], row["fire_time"], row["last_job"]),
            _rhythm(row["spec"]),
            row["is_due"],
            row["now"],
            row["is_stale"],
            None if row["passed"] is None or row["wall"] is None else ZoneMark(row["passed"], row["wall"]),
        )
        for row in rows
        if row["fire_time"] is not None
    ]


@lru_cache(maxsize=10_000)
def _rhythm(spec: str) -> Rhythm:
    return Rhythm.from_spec(json.loads(spec))


async def make_slots(
    connection: Platform, cursors: Sequence[ScheduleCursor], chunk: int, thinned: Collection[int] = ()
) -> dict[int, MadeSlots]:
    """Create the slot of each schedule for its next `chunk` jobs; a schedule without such jobs is absent.

    Jobs of low priority of the schedules `thinned` get no instance; their slot is recorded as skipped.
    """
    rows = await connection.fetch(
        sql("make_slots"),
        [cursor.schedule_id for cursor in cursors],
        [cursor.fire_time for cursor in cursors],
        [cursor.last_job for cursor in cursors],
        chunk,
        SHARDS,
        [cursor.schedule_id in thinned for cursor in cursors],
    )
    return {
        row["schedule_id"]: MadeSlots(
            row["schedule_id"],
            row["jobs"],
            row["last_job"],
            row["made"],
            tuple(row["lanes"]),
            row["due"],
            tuple(row["gated"]),
        )
        for row in rows
    }


async def slots_made(
    connection: Platform, cursors: Sequence[ScheduleCursor], made: Mapping[int, MadeSlots]
) -> list[int]:
    """Return the ids of the instances that `make_slots` has created for these cursors, at most 10,000. For traces."""
    rows = await connection.fetch(
        sql("slots_made"),
        [cursor.schedule_id for cursor in cursors if cursor.schedule_id in made],
        [cursor.fire_time for cursor in cursors if cursor.schedule_id in made],
        [cursor.last_job for cursor in cursors if cursor.schedule_id in made],
        [made[cursor.schedule_id].last_job for cursor in cursors if cursor.schedule_id in made],
    )
    return [row["id"] for row in rows]


async def advance_schedules(connection: Platform, steps: Sequence[Step]) -> set[int]:
    """Move cursors that have not changed since they were read; return the ids that moved."""
    marks = [step.mark for step in steps]
    rows = await connection.fetch(
        sql("advance_schedules"),
        [step.cursor.schedule_id for step in steps],
        [step.cursor.fire_time for step in steps],
        [step.cursor.last_job for step in steps],
        [step.next_fire for step in steps],
        [step.next_job for step in steps],
        [mark and mark.passed for mark in marks],
        [mark and mark.wall for mark in marks],
        version(),
    )
    return {row["id"] for row in rows}


@dataclass(frozen=True, slots=True)
class SkippedRange:
    """A range of slots that were not created. `slots` is None if they were not counted."""

    from_time: datetime
    to_time: datetime
    slots: int | None
    reason: str


async def insert_skip(connection: AnyWrite, schedule_id: int, job_id: int | None, skipped: SkippedRange) -> None:
    """Store a range of skipped slots, for one job or for every job of the schedule."""
    await connection.execute(
        sql("insert_skip"), schedule_id, job_id, skipped.from_time, skipped.to_time, skipped.slots, skipped.reason
    )
