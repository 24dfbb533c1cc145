"""A drill on an existing cluster: the lead of its Patroni is moved while marker instances run, and both are measured.

The drill touches nothing but the lead and a job of its own, which it deletes. It does not begin if the cluster or a node
is not healthy.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from secrets import token_hex

import aiohttp

from horai.cli.drills.clients import DrillClients, drill_clients
from horai.cli.drills.kinds import DrillKind
from horai.cli.drills.markers import MarkerJob, marker_job
from horai.cli.drills.outcome import NONE, DrillLimits, DrillRecord, Promise, counted, promises
from horai.cli.drills.pair import until
from horai.cli.drills.patroni import LeadMove, PatroniApi, PatroniView, faults_of
from horai.cli.drills.plan import DrillPlan
from horai.cli.drills.scene import DONE_WITHIN, RECOVERED_WITHIN, DrillDiary, DrillResult
from horai.cli.drills.target import DrillTarget, drill_target
from horai.cli.errors import BadUsage, CommandFailed

ANSWER = aiohttp.ClientTimeout(total=10.0)
WHOLE_WITHIN = 120.0
"""Seconds within which the old primary must follow the new one."""
PROVES_NOTHING = "The drill proves nothing: no write was acknowledged before the failure."


@dataclass(frozen=True, slots=True)
class ExistingCluster:
    """The cluster that a drill is pointed at, and the way in which its lead is moved."""

    patroni: tuple[str, ...]
    servers: tuple[str, ...]
    api_key: str | None
    listen: str
    how: LeadMove

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers of requests to the nodes."""
        return {} if self.api_key is None else {"Authorization": f"Bearer {self.api_key}"}


@asynccontextmanager
async def _opened(cluster: ExistingCluster) -> AsyncGenerator[PatroniApi]:
    async with aiohttp.ClientSession() as session:
        yield PatroniApi(session, cluster.patroni)


async def name_of(cluster: ExistingCluster) -> str:
    """Return the name of the cluster, as its Patroni says it."""
    async with _opened(cluster) as patroni:
        return (await patroni.view()).name


def require_confirmation(name: str, confirmed: str | None) -> None:
    """Raise `BadUsage` unless the operator has written the name of the cluster."""
    if confirmed != name:
        raise BadUsage(
            f"The drill moves the primary of the existing cluster {name}. Writes pause meanwhile.",
            f"Confirm it with the name of the cluster: --confirm {name}.",
        )


def require_health(view: PatroniView) -> None:
    """Raise `CommandFailed` unless a move of the lead is safe."""
    if faults := faults_of(view):
        raise CommandFailed(f"The cluster {view.name} is not healthy: {'; '.join(faults)}.", "Nothing was changed.")


async def run_existing_drill(
    cluster: ExistingCluster, confirmed: str | None, plan: DrillPlan, tell: Callable[[str], None]
) -> DrillResult:
    """Move the lead of an existing cluster under load, and count. Deletes the job of the drill at the end."""
    diary = DrillDiary(tell)
    async with _opened(cluster) as patroni:
        view = await patroni.view()
        require_confirmation(view.name, confirmed)
        require_health(view)
        replication = "synchronous" if view.is_synchronous else "asynchronous"
        if not view.is_synchronous:
            diary.say("no standby is synchronous: acknowledged work may be lost (RPO above 0)")
        point = NONE if view.is_synchronous else plan.limits.rpo
        limits = DrillLimits(plan.limits.rto, point, may_lose=not view.is_synchronous, is_existing=True)
        plan = replace(plan, limits=limits)
        async with (
            aiohttp.ClientSession(timeout=ANSWER, headers=cluster.headers) as session,
            drill_target(cluster.listen) as target,
            marker_job(session, cluster.servers, f"horai-drill-{token_hex(4)}", target.work) as job,
            drill_clients(cluster.servers, plan.rate, job.name, cluster.headers) as clients,
        ):
            scene = _ExistingScene(cluster, plan, patroni, job, target, clients, diary)
            record, whole = await scene.play(view)
    counts = counted(record)
    kept = (*promises(counts, plan.limits), whole)
    return DrillResult(
        DrillKind.PRIMARY, plan, replication, record.failed_at, counts, kept, tuple(diary.steps), view.name, cluster.how
    )


@dataclass(frozen=True, slots=True)
class _ExistingScene:
    cluster: ExistingCluster
    plan: DrillPlan
    patroni: PatroniApi
    job: MarkerJob
    target: DrillTarget
    clients: DrillClients
    diary: DrillDiary

    async def play(self, view: PatroniView) -> tuple[DrillRecord, Promise]:
        await self.job.reach(self.target.calls, self.target.work)
        self.diary.say(f"{self.plan.rate} marker instances/s for {self.plan.calm.total_seconds():g} s")
        self.clients.begin()
        await self._until_more(self.plan.calm)
        leader, candidate = _ends_of(view := await self._still_healthy(view))
        failed_at = self.diary.failed_at = datetime.now(UTC)
        await self.patroni.move(self.cluster.how, leader, candidate)
        self.diary.say(f"{self.cluster.how} from {leader} to {candidate}")
        await self._until_written(datetime.now(UTC))
        self.diary.say("writes are acknowledged again")
        whole = await self._whole(leader, failed_at)
        await self._until_more(self.plan.calm)
        ended_at = datetime.now(UTC)
        await self.clients.end()
        return await self._reckoned(failed_at, ended_at), whole

    async def _still_healthy(self, before: PatroniView) -> PatroniView:
        """Look again right before the move: the load may have been what the cluster cannot take."""
        view = await self.patroni.view()
        require_confirmation(view.name, before.name)
        require_health(view)
        return view

    async def _until_more(self, seconds: timedelta) -> None:
        wanted = len(self.clients.acknowledged) + int(self.plan.rate * seconds.total_seconds())

        async def are_enough() -> bool:
            return len(self.clients.acknowledged) >= wanted

        await until(are_enough, RECOVERED_WITHIN, f"{wanted} writes are acknowledged")

    async def _until_written(self, since: datetime) -> None:
        async def is_written() -> bool:
            return bool(self.clients.acknowledged) and self.clients.acknowledged[-1].at > since

        await until(is_written, RECOVERED_WITHIN, "a write is acknowledged after the failure")

    async def _whole(self, leader: str, failed_at: datetime) -> Promise:
        """Wait until the old primary follows the new one; a broken promise if it does not."""

        async def is_whole() -> bool:
            try:
                view = await self.patroni.view()
            except CommandFailed:
                return False
            return not faults_of(view) and view.leader is not None and view.leader.name != leader

        try:
            await until(is_whole, WHOLE_WITHIN, "the old primary follows the new one")
        except CommandFailed:
            self.diary.say(f"{leader} does not follow the new primary")
            return Promise("the old primary follows the new one", f"{WHOLE_WITHIN:.2f} s", "not in time", is_kept=False)
        self.diary.say(f"{leader} follows the new primary")
        took = (datetime.now(UTC) - failed_at).total_seconds()
        return Promise("the old primary follows the new one", f"{WHOLE_WITHIN:.2f} s", f"{took:.2f} s", is_kept=True)

    async def _reckoned(self, failed_at: datetime, ended_at: datetime) -> DrillRecord:
        self.diary.say("the load has ended; waiting for the last instance")
        await until(self.job.is_done, DONE_WITHIN, "no marker instance is live")
        states = await self.job.states()
        if not any(each.at <= failed_at for each in self.clients.acknowledged):
            raise CommandFailed(PROVES_NOTHING)
        repeated = [instance for instance, fences in self.target.calls.items() if len(fences) > 1]
        known: Sequence[int] = [instance for instance in repeated if instance in states]
        return DrillRecord(
            failed_at=failed_at,
            ended_at=ended_at,
            acknowledged=tuple(self.clients.acknowledged),
            refused=self.clients.refused,
            calls=self.target.calls,
            ended={each: (states[each], at) for each, at in self.target.answered_at.items() if each in states},
            losses=await self.job.losses(known),
            letters=(),
            letters_after=(),
            violations=(),
        )


def _ends_of(view: PatroniView) -> tuple[str, str]:
    """Return the names of the primary and of the standby that takes over. The view is healthy."""
    if view.leader is None or view.candidate is None:
        raise CommandFailed(f"The cluster {view.name} is not healthy.")
    return view.leader.name, view.candidate.name
