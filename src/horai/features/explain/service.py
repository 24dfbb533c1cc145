"""Explanations of slots and instances: the facts of one snapshot, passed to the rules."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from horai.core.assets import WHEN
from horai.core.concurrency_keys import places_of
from horai.core.encryption import EnvelopeBroken
from horai.core.errors import Invalid, KeyUnavailable
from horai.core.health import HeldHost, all_handlers, reading_from
from horai.core.job import JobStatus
from horai.core.limits import SHARDS
from horai.core.outcome import NODE_LOST
from horai.core.sealed_values import SealedColumn
from horai.core.shards import Duty, Role, roles_of
from horai.core.states import CLAIMABLE, CancelReason, State
from horai.core.stuck import LongRun, StuckRun
from horai.core.timing import Timing
from horai.db import instance_queries, instance_relations, jobs, nodes, queues, shards
from horai.db.calendars import definition_of
from horai.db.concurrency_keys import holders_of_key
from horai.db.instance_queries import InstanceRow
from horai.db.jobs import JobRow
from horai.db.nodes import NodeInfo
from horai.db.pool import TenantRead
from horai.engine.executors.origins import host_of
from horai.features.explain import (
    ACCEPTED,
    Facts,
    Hold,
    InstanceFact,
    JobFacts,
    QueueFact,
    SlotExplanation,
    Verdict,
    explanation_of,
    gap_around,
    holds_of,
    is_slot,
    lost_in_gap,
    nothing_there,
    occurrences,
    read_moment,
    story_of,
)
from horai.features.explain import store as explain
from horai.features.explain.facts import AwaitedAsset
from horai.features.explain.store import FoundSlot
from horai.operations import full_queues, stuck, target_secrets
from horai.operations.instances import read_one
from horai.operations.readable_values import readable_instance
from horai.operations.scope import Scope, require_job
from horai.operations.sealed_values import SealedJob, SealedText, open_text
from horai.text import told_by
from horai.text.phrase import Phrase

ERROR_SHOWN = 160
AWAITED_READ = 100
"""Called instances of a suspended function that are counted."""
_WORKFLOW = "horai:workflow"
"""The handler of jobs that start runs of workflows."""
_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)
_SLACK = timedelta(days=1)
"""A slot of a calendar is created at its time and ends after it; clocks that were set back may differ by this much."""


@dataclass(frozen=True, slots=True)
class ExplainResult:
    """An explanation with its instance; `also` explains the other occurrence of a local time that occurs twice."""

    explanation: SlotExplanation
    instance: InstanceRow | None = None
    also: "ExplainResult | None" = None


@dataclass(frozen=True, slots=True)
class _Asker:
    """One snapshot of the store, and the job in question."""

    connection: TenantRead
    scope: Scope
    row: JobRow
    job: JobFacts
    now: datetime

    async def explain(self, at: datetime, moved: Phrase | None = None) -> ExplainResult:
        found = await explain.instance_at(self.connection, self.row.id, at, self._ended_from(at))
        instance = None if found is None else await self._instance(found)
        facts = (
            await self._facts_of_slot(at)
            if found is None or instance is None or (not found.is_slot and is_slot(self.job.timing, at))
            else await self.facts_of_run(_run(instance, found), instance)
        )
        explanation = explanation_of(facts, at, moved)
        return ExplainResult(explanation, instance if explanation.instance_id is not None else None)

    def _ended_from(self, at: datetime) -> datetime:
        """Return the earliest possible end of the instance.

        An instance that is not a slot may have been cancelled long before its fire time, so its end has no lower bound.
        """
        return at - _SLACK if is_slot(self.job.timing, at) else _BEGIN

    async def _instance(self, found: FoundSlot) -> InstanceRow | None:
        row = await instance_queries.instance_by_id(self.connection, self.scope.tenant_id, found.id)
        return None if row is None else await readable_instance(self.connection, self.scope, row)

    async def facts_of_run(self, run: InstanceFact, instance: InstanceRow) -> Facts:
        """Return the facts about an instance and its surroundings."""
        if run.reason is CancelReason.OVERLAP and run.finished_at is not None:
            others = await explain.others_under_way(self.connection, self.row.id, run.finished_at, run.id)
            return Facts(self.now, self.job, run, others=others)
        if run.state is State.BLOCKED:
            kin = await instance_relations.kin_of_instance(self.connection, run.id)
            causes = await stuck.causes_of_instance(self.connection, run.id)
            return Facts(self.now, self.job, run, parents=kin.parents, causes=causes)
        if run.state is State.RUNNING:
            waits = await explain.open_nodes_of(self.connection, run.id) if self.job.handler == _WORKFLOW else ()
            return Facts(self.now, self.job, run, stuck=await self._stuck(instance), open_nodes=waits)
        if run.state not in CLAIMABLE:
            return Facts(self.now, self.job, run)
        live = await nodes.live_nodes(self.connection)
        queue = await self._queue(instance.queue)
        clogging = await self._clogging(queue)
        limits, is_paused = await explain.dispatch_facts(self.connection, self.scope.tenant_id)
        return Facts(
            self.now,
            self.job,
            run,
            queue=queue,
            others=await explain.others_under_way(self.connection, self.row.id, self.now, run.id),
            roles=_roles(live),
            handlers=_handlers(live),
            held_host=await self._held_host(live, run.id),
            lacks_key=await self._lacks_key(),
            lacks_payload_key=self.row.is_encrypted and await self._lacks_payload_key(run.id),
            priority=instance.priority,
            controls=limits,
            is_frozen=self.scope.tenant_id in limits.frozen_tenants,
            is_paused_by_hand=is_paused or limits.is_paused,
            holders=clogging,
            long_holders=() if clogging else await self._long_holders(queue),
            key_limit=places_of(self.row.document),
            key_holders=await self._key_holders(run),
            awaited=await instance_relations.children_awaited(self.connection, run.id, AWAITED_READ)
            if run.is_suspended
            else (),
            version=await explain.version_awaited(self.connection, run.id) if run.is_suspended else None,
            sensor_until=None if run.is_slot else await explain.sensor_until(self.connection, run.id),
        )

    async def _stuck(self, instance: InstanceRow) -> StuckRun | None:
        """Return the instance if it runs for much longer than usual."""
        return await stuck.stuck_run(self.connection, self.scope.tenant_id, instance.id, self.now)

    async def _clogging(self, queue: QueueFact | None) -> tuple[StuckRun, ...]:
        """Return the stuck runs that hold all slots of the queue; none unless it is clogged."""
        if queue is None or queue.settings.max_concurrency is None:
            return ()
        found = await stuck.clogged_queues(self.connection, self.scope.tenant_id, self.now, 1, name=queue.name)
        return found[0].holders if found else ()

    async def _long_holders(self, queue: QueueFact | None) -> tuple[LongRun, ...]:
        """Return the runs that hold the slots of the queue longest; none unless it is full."""
        if queue is None or queue.settings.max_concurrency is None:
            return ()
        is_full = (queue.running or 0) >= queue.settings.max_concurrency
        return await full_queues.holders_of_full(self.connection, queue.id) if is_full else ()

    async def _key_holders(self, run: InstanceFact) -> tuple[int, ...]:
        """Return the instances that run with the concurrency key of an instance; none if it has no key."""
        if run.concurrency_key is None:
            return ()
        most = places_of(self.row.document)
        return tuple(await holders_of_key(self.connection, self.row.id, run.concurrency_key, most))

    async def _queue(self, name: str) -> QueueFact | None:
        """Return the queue with the permits in use: its own, and those of its tenant."""
        queue = await queues.find_queue(self.connection, self.scope.tenant_id, name)
        if queue is None:
            return None
        pool = await queues.find_pool(self.connection, self.scope.tenant_id)
        limit, running = (None, 0) if pool is None else (pool.limit, pool.running)
        return QueueFact(queue.name, queue.settings, queue.running, queue.is_held, limit, running, queue.id)

    async def _lacks_key(self) -> bool:
        """Return whether the job's target has secrets that this server cannot open."""
        target = self.row.document["target"]
        place = target_secrets.place_of_target(self.row.name, target)
        try:
            await target_secrets.opened(self.connection, self.scope.keyring, self.scope.tenant_id, place, target)
            await target_secrets.open_named(self.connection, self.scope, target)
        except KeyUnavailable:
            return True
        except EnvelopeBroken:
            return False
        return False

    async def _lacks_payload_key(self, instance_id: int) -> bool:
        """Return whether this server cannot open the payload of an encrypted job."""
        stored = await instance_queries.instance_by_id(self.connection, self.scope.tenant_id, instance_id)
        if stored is None or stored.payload is None:
            return False
        job = SealedJob(self.scope.tenant_id, self.row.name)
        try:
            sealed = SealedText(job, SealedColumn.PAYLOAD, stored.payload)
            await open_text(self.connection, self.scope.keyring, sealed)
        except KeyUnavailable:
            return True
        except EnvelopeBroken:
            return False
        return False

    async def _held_host(self, live: Sequence[NodeInfo], instance_id: int) -> HeldHost | None:
        """Return the job's host if calls to it wait on the node that claims this instance, as of its last beat."""
        host_name = host_of(jobs.definition_of(self.row.document).target)
        held = {node.incarnation: reading_from(node.health or "{}", node.name).held_hosts for node in live}
        if not host_name or not any(held.values()):
            return None
        place = (Duty.dispatch, instance_id % SHARDS)
        leases = await shards.shard_leases(self.connection)
        owner = next((lease.node for lease in leases if (lease.duty, lease.shard) == place), None)
        key = (self.scope.tenant, host_name)
        return next((host for host in held.get(owner or 0, ()) if (host.tenant, host.host) == key), None)

    async def _facts_of_slot(self, at: datetime) -> Facts:
        if not is_slot(self.job.timing, at):
            return Facts(self.now, self.job, assets=await self._assets())
        schedule_id = self.row.schedule_id
        return Facts(
            self.now,
            self.job,
            skip=await explain.skip_over(self.connection, self.row.id, schedule_id, at),
            catchup=await explain.catchup_over(self.connection, self.row.id, at),
            cursor=None if schedule_id is None else await explain.cursor_of_schedule(self.connection, schedule_id),
            roles=_roles(await nodes.live_nodes(self.connection)),
            assets=await self._assets(),
        )

    async def _assets(self) -> tuple[AwaitedAsset, ...]:
        """Return the assets that the job waits for; none, without a query, if it declares none."""
        if self.row.document.get(WHEN) is None:
            return ()
        return tuple(await explain.awaited_assets(self.connection, self.row.id))


async def explain_slot(scope: Scope, reference: str, asked: str | datetime) -> ExplainResult:
    """Explain an instant of a job, or a local time in its zone (`asked` without an offset)."""
    try:
        moment = read_moment(asked)
    except ValueError as error:
        raise Invalid.field("at", told_by(error), ACCEPTED) from error
    async with scope.read() as connection:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            now = await nodes.database_time(connection)
            row = await require_job(connection, scope, reference)
            row = await jobs.ticks_of(connection, row.id) or row  # the slots of a refresh job are its ticks
            return await _answer(_Asker(connection, scope, row, await _job(connection, row), now), moment)


@dataclass(frozen=True, slots=True)
class Why:
    """The verdict on an instance, and everything that keeps it from running."""

    instance: InstanceRow
    verdict: Verdict
    why: Phrase
    holds: Sequence[Hold]


async def explain_instance(scope: Scope, instance_id: int) -> Why:
    """Explain why an instance does not run, or how it ended."""
    async with scope.read() as connection:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            now = await nodes.database_time(connection)
            instance = await read_one(connection, scope, instance_id)
            found = await explain.place_of_instance(connection, instance_id)
            row = await jobs.job_even_deleted(connection, instance.job_id)
            if found is None or row is None:
                raise RuntimeError(
                    f"instance {instance_id} or its job is missing in the snapshot that returned the instance"
                )
            run = _run(instance, found)
            asker = _Asker(connection, scope, row, await _job(connection, row), now)
            facts = await asker.facts_of_run(run, instance)
    told = story_of(facts, run, instance.fire_time)
    return Why(instance, told.verdict, told.why.sentence(), holds_of(facts, run))


async def _answer(asker: _Asker, moment: datetime) -> ExplainResult:
    job = asker.job
    instants = occurrences(moment, job.place)
    if not instants:
        gap = gap_around(moment, job.place)
        is_moved, why = lost_in_gap(job.timing.schedule, gap)
        return await asker.explain(gap.end, why) if is_moved else ExplainResult(nothing_there(job, gap, why))
    told = [await asker.explain(at) for at in instants]
    told.sort(
        key=lambda each: each.explanation.verdict is Verdict.NOT_A_SLOT
    )  # stable: a slot first, otherwise the earlier instant
    first, *others = told
    return ExplainResult(first.explanation, first.instance, others[0] if others else None)


async def _job(connection: TenantRead, row: JobRow) -> JobFacts:
    """Return the facts of a job. A deleted job may have followed a calendar that is gone: it counts as unscheduled."""
    definition = await definition_of(connection, row)
    timing = definition.timing if definition.timing.is_readable else Timing()
    paused_at = (row.paused_at or row.updated_at) if row.status is JobStatus.PAUSED else None
    missed_from = (row.missed_from or row.active_from) if paused_at else None
    return JobFacts(
        row.id,
        timing,
        row.created_at,
        row.active_from,
        paused_at,
        missed_from,
        row.note,
        definition.handler,
    )


def _run(row: InstanceRow, found: FoundSlot) -> InstanceFact:
    return InstanceFact(
        id=row.id,
        state=row.state,
        is_slot=found.is_slot,
        execute_time=row.execute_time,
        attempt=row.attempt,
        is_parked=found.is_parked,
        key=row.key,
        reason=row.reason,
        due=row.due,
        node=row.node,
        claimed_at=row.claimed_at,
        finished_at=row.finished_at,
        error=_error(row),
        retry_count=row.retry_count,
        is_lost=row.state is State.FAIL and row.error_code == NODE_LOST,
        is_suspended=found.is_suspended,
        is_rewinding=found.is_rewinding,
        concurrency_key=row.concurrency_key,
    )


def _error(row: InstanceRow) -> str | None:
    """Return the error on one line, cut after `ERROR_SHOWN` characters: the instance has the full text."""
    told = " ".join(": ".join(part for part in (row.error_code, row.error_msg) if part).split())
    return f"{told[:ERROR_SHOWN]}…" if len(told) > ERROR_SHOWN else told or None


def _roles(live: Sequence[NodeInfo]) -> frozenset[Role]:
    return frozenset[Role]().union(*(roles_of(node.roles) for node in live))


def _handlers(live: Sequence[NodeInfo]) -> frozenset[str] | None:
    if any(node.health is None for node in live):
        return None  # a node that has just started has not reported yet
    named = all_handlers([reading_from(node.health or "{}", node.name) for node in live])
    return None if named is None else frozenset(named)
