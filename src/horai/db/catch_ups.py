"""Late slots that are not created yet: one function per statement of sql/catch_ups.sql."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from horai.core.limits import SHARDS
from horai.core.timing import Rhythm
from horai.db.catalog import sql
from horai.db.claims import Claimable
from horai.db.pool import AnyWrite, Platform, TenantWrite
from horai.time.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Catchup:
    """The late slots of a job from `next_time` to `until_time` that are not created yet, and their lane.

    `is_gated`: the slots may not overlap.
    """

    id: int
    job_id: int
    next_time: datetime
    until_time: datetime
    lane: int
    is_gated: bool
    spec: str

    @property
    def schedule(self) -> Schedule:
        """Return the parsed schedule. Raises `ValueError` if this process cannot read it, e.g. an unknown zone."""
        return _schedule(self.spec)


@dataclass(frozen=True, slots=True)
class LateSlot:
    """A late slot that was created. Its lane is 0 while it waits for the overlap gate of its job."""

    job_id: int
    woken: Claimable


async def defer_slots(connection: Platform, schedule_id: int, first: datetime, last: datetime) -> None:
    """Register the late slots from `first` to `last` of a schedule, for each of its jobs."""
    await connection.execute(sql("defer_slots"), schedule_id, first, last)


@dataclass(frozen=True, slots=True)
class EndedSlot:
    """A job whose `end_at` lies within the late slots of its schedule, and the start of its own range of late slots."""

    job_id: int
    end_at: datetime
    first: datetime


async def ended_meanwhile(connection: Platform, schedule_id: int, first: datetime, last: datetime) -> list[EndedSlot]:
    """Return the jobs of the schedule whose `end_at` is from `first` to before `last`."""
    rows = await connection.fetch(sql("ended_meanwhile"), schedule_id, first, last)
    return [EndedSlot(*row.values()) for row in rows]


async def defer_slots_of_job(
    connection: AnyWrite, job_id: int, schedule_id: int, first: datetime, last: datetime
) -> None:
    """Register the late slots from `first` to `last` of one job."""
    await connection.execute(sql("defer_slots_of_job"), job_id, schedule_id, first, last)


async def has_catchups(connection: Platform) -> bool:
    """Return whether any job has late slots that are not created yet."""
    return await connection.fetchval(sql("has_catchups"))


async def take_catchups(connection: Platform, after: int, limit: int, shards: Collection[int]) -> list[Catchup]:
    """Lock a page of catch-ups of jobs in these shards until commit, and return it."""
    rows = await connection.fetch(sql("take_catchups"), after, limit, list(shards), SHARDS)
    return [
        Catchup(
            row["id"],
            row["job_id"],
            row["next_time"],
            row["until_time"],
            row["lane_id"],
            row["is_gated"],
            row["spec"],
        )
        for row in rows
    ]


@lru_cache(maxsize=10_000)
def _schedule(spec: str) -> Schedule:
    return Rhythm.from_spec(json.loads(spec)).schedule


async def make_late_slots(connection: AnyWrite, slots: Sequence[tuple[int, datetime]]) -> list[LateSlot]:
    """Create slots for (job id, fire time) pairs; skip slots that exist and jobs that are deleted."""
    jobs, times = [job for job, _ in slots], [fire_time for _, fire_time in slots]
    rows = await connection.fetch(sql("make_late_slots"), jobs, times, SHARDS)
    return [LateSlot(row["job_id"], Claimable(row["id"], row["lane"], row["due"])) for row in rows]


async def move_catchups(connection: Platform, steps: Sequence[tuple[int, datetime | None]]) -> None:
    """Write the next slot of each catch-up; None deletes it, because no slot is left."""
    await connection.execute(sql("move_catchups"), [i for i, _ in steps], [next_time for _, next_time in steps])


async def give_up_catchups(connection: TenantWrite, job_id: int, reason: str) -> None:
    """Delete the catch-ups of a job and record their slots as skipped, with this reason."""
    await connection.execute(sql("give_up_catchups"), job_id, reason)


async def late_slots_left(connection: Platform, ids: Sequence[int]) -> dict[int, bool]:
    """Return the slots that have not ended, by id, and whether each still waits to start."""
    return {row["id"]: row["is_waiting"] for row in await connection.fetch(sql("late_slots_left"), list(ids))}
