"""One drill from its first process to its figures."""

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from horai import __version__
from horai.cli.drills.clients import DrillClients, drill_clients
from horai.cli.drills.home import DrillHome, drill_home
from horai.cli.drills.kinds import DrillFailure, DrillKind, failure_of
from horai.cli.drills.nodes import DrillNodes, drill_nodes
from horai.cli.drills.outcome import DrillCounts, DrillRecord, Promise, counted, promises
from horai.cli.drills.pair import until
from horai.cli.drills.plan import DrillPlan
from horai.cli.drills.target import DrillTarget, drill_target
from horai.cli.errors import CommandFailed
from horai.db.drills import dead_letters, has_live, rows_after
from horai.db.pool import connect
from horai.db.verify import verify

LETTERS = 20
LETTERS_WITHIN = RECOVERED_WITHIN = DONE_WITHIN = 120.0


@dataclass(frozen=True, slots=True)
class DrillStep:
    """A step of a drill, and the seconds from the failure to it."""

    second: float
    text: str


@dataclass(slots=True)
class DrillDiary:
    """The steps of a drill. Each is also told while the drill runs."""

    tell: Callable[[str], None]
    failed_at: datetime | None = None
    steps: list[DrillStep] = field(default_factory=list[DrillStep])

    def say(self, text: str) -> None:
        """Tell a step, with the seconds since the failure if it is over."""
        if self.failed_at is None:
            self.tell(text)
            return
        second = (datetime.now(UTC) - self.failed_at).total_seconds()
        self.steps.append(DrillStep(second, text))
        self.tell(f"{second:6.2f} s  {text}")


@dataclass(frozen=True, slots=True)
class DrillResult:
    """A drill that is over."""

    kind: DrillKind
    plan: DrillPlan
    replication: str
    failed_at: datetime
    counts: DrillCounts
    promises: tuple[Promise, ...]
    steps: tuple[DrillStep, ...]
    cluster: str | None = None
    """The name of the existing cluster; None if the drill has started one."""
    move: str | None = None
    version: str = __version__
    machine: str = field(default_factory=lambda: f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}")

    @property
    def is_kept(self) -> bool:
        """Return whether every promise was kept."""
        return all(promise.is_kept for promise in self.promises)


async def run_drill(kind: DrillKind, plan: DrillPlan, tell: Callable[[str], None]) -> DrillResult:
    """Start a cluster, let a part of it fail under load, and count. Removes the cluster at the end."""
    diary = DrillDiary(tell)
    diary.say("starting PostgreSQL")
    async with drill_home() as home, failure_of(kind, home, plan) as failure:
        diary.say(f"starting {len(plan.names)} nodes")
        async with (
            drill_nodes(home, failure.node_url, plan.lease, *plan.names) as nodes,
            drill_target() as target,
            drill_clients(nodes.doors, plan.rate) as clients,
        ):
            record = await _Scene(home, plan, failure, nodes, target, clients, diary).play()
    counts = counted(record)
    kept = tuple(promises(counts, plan.limits))
    return DrillResult(kind, plan, failure.replication, record.failed_at, counts, kept, tuple(diary.steps))


@dataclass(frozen=True, slots=True)
class _Scene:
    home: DrillHome
    plan: DrillPlan
    failure: DrillFailure
    nodes: DrillNodes
    target: DrillTarget
    clients: DrillClients
    diary: DrillDiary

    async def play(self) -> DrillRecord:
        await self.clients.create_jobs(self.target)
        letters = await self.clients.bury(LETTERS)
        await self._until_buried(letters)
        self.diary.say(f"{len(letters)} dead letters; {self.plan.rate} instances/s for {self._calm:g} s")
        self.clients.begin()
        await self._until_more(self.plan.calm)
        failed_at = self.diary.failed_at = datetime.now(UTC)
        await self.failure.strike(self.nodes, self.diary.say)
        await self._until_written(datetime.now(UTC))  # a dying server may have acknowledged one after the failure
        self.diary.say("writes are acknowledged again")
        await self.failure.mend(self.diary.say)
        await self._until_more(self.plan.calm)
        ended_at = datetime.now(UTC)
        await self.clients.end()
        return await self._reckoned(failed_at, ended_at, letters)

    @property
    def _calm(self) -> float:
        return self.plan.calm.total_seconds()

    async def _until_buried(self, letters: set[int]) -> None:
        connection = await connect(self.failure.admin_before, "horai drill")
        try:

            async def are_buried() -> bool:
                return letters <= await dead_letters(connection)

            await until(are_buried, LETTERS_WITHIN, "the dead letters exist")
        finally:
            connection.terminate()

    async def _until_more(self, seconds: timedelta) -> None:
        """Return when as many more writes were acknowledged as these seconds of load have."""
        wanted = len(self.clients.acknowledged) + int(self.plan.rate * seconds.total_seconds())

        async def are_enough() -> bool:
            return len(self.clients.acknowledged) >= wanted

        await until(are_enough, RECOVERED_WITHIN, f"{wanted} writes are acknowledged")

    async def _until_written(self, since: datetime) -> None:
        async def is_written() -> bool:
            return self.clients.acknowledged[-1].at > since

        await until(is_written, RECOVERED_WITHIN, "a write is acknowledged after the failure")

    async def _reckoned(self, failed_at: datetime, ended_at: datetime, letters: set[int]) -> DrillRecord:
        self.diary.say("the load has ended; waiting for the last instance")
        connection = await connect(self.failure.admin_after, "horai drill")
        try:

            async def is_done() -> bool:
                return not await has_live(connection)

            await until(is_done, DONE_WITHIN, "no instance is live")
            rows = await rows_after(connection)
            findings = await verify(connection)
        finally:
            connection.terminate()
        if not any(each.at <= failed_at for each in self.clients.acknowledged):
            raise CommandFailed("The drill proves nothing: no write was acknowledged before the failure.")
        violations = [f"{found.invariant}: {example}" for found in findings for example in found.examples]
        return DrillRecord(
            failed_at=failed_at,
            ended_at=ended_at,
            acknowledged=tuple(self.clients.acknowledged),
            refused=self.clients.refused,
            calls=self.target.calls,
            ended=rows.ended,
            losses=rows.losses,
            letters=letters,
            letters_after=rows.letters,
            violations=violations,
        )
