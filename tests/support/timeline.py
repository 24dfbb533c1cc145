"""Nodes that come and go while the test moves the database's time: the stages of a workbench, in a virtual time."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import make
from stages import Workbench, forget_jobs, workbench

from horai.core.wakes import ScheduleWake
from horai.db.jobs import JobRow
from horai.db.pool import connect
from horai.operations import jobs as accepted
from horai.testing import store
from horai.testing.clock import VirtualClock
from horai.testing.server import SERVER
from horai.time.schedule import Schedule, fires_between

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
LIFELONG = timedelta(days=36_500)


@dataclass(frozen=True, slots=True)
class Skip:
    """Slots that were left out, for all jobs of their schedule or for the one named."""

    first: datetime
    last: datetime
    slots: int | None
    reason: str
    job: str | None = None


class Node:
    """The stages of one node, stepped by hand. A new one knows nothing but the tables."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self.trigger, self.catch_up_stage, self.overlap_gate = (
            bench.trigger(),
            bench.catch_up_stage(),
            bench.overlap_gate(),
        )
        self.dispatcher, self.rescuer = bench.dispatcher(), bench.rescuer()
        for stage in (
            self.catch_up_stage,
            self.overlap_gate,
            self.rescuer,
        ):  # one after the other: one connection will do
            stage.line = self.trigger.line
        bench.scope.wakeups.subscribe(ScheduleWake, self.trigger.hear)

    async def step(self) -> None:
        """Do all that is due at this moment, and all that follows from it."""
        before = None
        while (seen := await _traces(self._bench)) != before:
            before = seen
            await self._once()

    async def _once(self) -> None:
        now = self._bench.clock.now()
        await self.trigger.step(now)
        await self.catch_up_stage.step(now)
        await self.overlap_gate.step(now)
        await self.rescuer.step(now)
        forget_jobs(self.dispatcher)
        self.dispatcher.rescan_all()
        await self._bench.until_idle(self.dispatcher)
        if self._bench.executor.gate.is_set():
            await self._bench.settle()


async def _traces(bench: Workbench) -> list[Any]:
    """Equal ones: nothing has happened."""
    return [
        tuple(row)
        for row in await bench.connection.fetch(
            """select id, state, lane, attempt::text from horai.instance_live
               union all select id, state, 0, 'final' from horai.instance_history
               union all select id, 0, last_job::integer, fire_time::text from horai.schedule
               union all select id, 0, 0, next_time::text from horai.catchup order by 1, 2, 3, 4"""
        )
    ]


class Timeline:
    """The time of a database, its jobs, and what has been made of their slots."""

    def __init__(self, bench: Workbench, clock: VirtualClock) -> None:
        self.bench = bench
        self._clock = clock

    @property
    def now(self) -> datetime:
        return self._clock.now()

    def node(self) -> Node:
        """One that starts now."""
        return Node(self.bench)

    async def pass_by(self, duration: timedelta) -> None:
        """Move time forward by `duration`; no node works meanwhile."""
        await self.move_to(self.now + duration)

    async def move_to(self, moment: datetime) -> None:
        self._clock.move_to(moment)
        await store.move_to(self.bench.connection, moment)

    async def live(self, node: Node, until: datetime) -> None:
        """The node is at work until then, that moment included."""
        await node.step()
        while (coming := (await store.outlook(self.bench.connection)).next_at) is not None and coming <= until:
            await self.move_to(coming)
            await node.step()
        await self.move_to(until)

    async def job(self, name: str = "job", **fields: Any) -> JobRow:
        return await make.job(self.bench.scope, name, **fields)

    async def change(self, name: str = "job", **fields: Any) -> JobRow:
        return await accepted.change_job(self.bench.scope, name, accepted.JobChange(fields))

    async def pause(self, name: str = "job") -> None:
        await accepted.pause_job(self.bench.scope, name, None)

    async def resume(self, name: str = "job") -> None:
        await accepted.resume_job(self.bench.scope, name, None)

    async def slots(self, name: str = "job") -> list[datetime]:
        """The fire times of everything that was made for the job, one for each row."""
        return [fire_time for fire_time, _ in await self.states(name)]

    async def states(self, name: str = "job") -> list[tuple[datetime, str]]:
        """The same with the state of each."""
        found = await self.bench.connection.fetch(
            "select fire_time, state from horai.job_instance join horai.job on job.id = job_id where name = $1 order by 1",
            name,
        )
        return [(row["fire_time"], row["state"]) for row in found]

    async def skips(self) -> list[Skip]:
        found = await self.bench.connection.fetch(
            """select from_time, to_time, slots, reason, name from horai.skip left join horai.job on job.id = job_id
               order by from_time, to_time"""
        )
        return [Skip(*row.values()) for row in found]

    async def unaccounted(self, schedule: Schedule, since: datetime) -> list[datetime]:
        """The slots of `job` after `since` that were neither made nor told as skipped; those made twice, too."""
        made = Counter(await self.slots())
        skips = [skip for skip in await self.skips() if skip.job in {"job", None}]
        wanted = [*fires_between(schedule, since, self.now, 10_000)]
        lost = [slot for slot in wanted if slot not in made and not any(s.first <= slot <= s.last for s in skips)]
        return lost + [slot for slot, count in made.items() if count > 1 or slot not in wanted]

    async def coming(self) -> list[datetime | None]:
        """Where the schedules stand."""
        return [row[0] for row in await self.bench.connection.fetch("select fire_time from horai.schedule order by id")]


@asynccontextmanager
async def timeline(start: datetime = NOON, *, works: bool = True, **settings: Any) -> AsyncGenerator[Timeline]:
    """A database in which it is `start`; what is run ends at once, or where not `works` when the test says so."""
    async with SERVER.database() as url:
        await _begin(url, start)
        async with workbench(url, timedelta(0), **settings) as bench:
            clock = VirtualClock(start)
            bench.clock = clock
            bench.lease.incarnation = await make.node(bench.connection, LIFELONG)
            if works:
                bench.executor.gate.set()
            try:
                yield Timeline(bench, clock)
            finally:
                bench.executor.gate.set()
                await asyncio.sleep(0)


async def _begin(url: str, start: datetime) -> None:
    connection = await connect(url, "horai test")
    await store.move_to(connection, start)
    await connection.close()
