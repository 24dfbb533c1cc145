"""Late slots that are still to be made: one function per statement of sql/catchups.sql."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from horai.core.settings import SHARDS
from horai.core.timing import Rhythm
from horai.db.catalog import sql
from horai.db.claims import Claimable
from horai.db.pool import Connection
from horai.time.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Catchup:
    """Slots of a job from `next_time` until `until_time` that are still to be made, and the lane they go to.

    `is_gated`: they may not overlap.
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
        """ValueError when it says nothing here."""
        return _schedule(self.spec)


@dataclass(frozen=True, slots=True)
class LateSlot:
    """A slot that was made late; lane 0 where it waits for its job's gate."""

    job_id: int
    woken: Claimable


async def defer_slots(connection: Connection, schedule_id: int, first: datetime, last: datetime) -> None:
    """Late slots of a schedule, for every job that follows it."""
    await connection.execute(sql("defer_slots"), schedule_id, first, last)


@dataclass(frozen=True, slots=True)
class EndedSlot:
    """A job that came to its end among the late slots of its schedule, and its first instant among them."""

    job_id: int
    end_at: datetime
    first: datetime


async def ended_meanwhile(connection: Connection, schedule_id: int, first: datetime, last: datetime) -> list[EndedSlot]:
    """The jobs whose last slot lies among these late ones, before the last of them."""
    rows = await connection.fetch(sql("ended_meanwhile"), schedule_id, first, last)
    return [EndedSlot(*row.values()) for row in rows]


async def defer_slots_of_job(
    connection: Connection, job_id: int, schedule_id: int, first: datetime, last: datetime
) -> None:
    """Late slots of one job."""
    await connection.execute(sql("defer_slots_of_job"), job_id, schedule_id, first, last)


async def has_catchups(connection: Connection) -> bool:
    """Whether anything is to be made, for any job."""
    return await connection.fetchval(sql("has_catchups"))


async def take_catchups(connection: Connection, after: int, limit: int, shards: Collection[int]) -> list[Catchup]:
    """A page of what is to be made for jobs of these shards, held until commit."""
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


async def make_late_slots(connection: Connection, slots: Sequence[tuple[int, datetime]]) -> list[LateSlot]:
    """Makes (job, fire time) slots; one that exists, or that its job is too young for, is left alone."""
    jobs, times = [job for job, _ in slots], [fire_time for _, fire_time in slots]
    rows = await connection.fetch(sql("make_late_slots"), jobs, times, SHARDS)
    return [LateSlot(row["job_id"], Claimable(row["id"], row["lane"], row["due"])) for row in rows]


async def move_catchups(connection: Connection, steps: Sequence[tuple[int, datetime | None]]) -> None:
    """Writes how far each has come; None when nothing is left."""
    await connection.execute(sql("move_catchups"), [i for i, _ in steps], [next_time for _, next_time in steps])


async def give_up_catchups(connection: Connection, job_id: int, reason: str) -> None:
    """What was still to be made of a job is skipped instead."""
    await connection.execute(sql("give_up_catchups"), job_id, reason)


async def late_slots_left(connection: Connection, ids: Sequence[int]) -> dict[int, bool]:
    """Those that have not ended, and whether nobody has begun them."""
    return {row["id"]: row["is_waiting"] for row in await connection.fetch(sql("late_slots_left"), list(ids))}
