"""The rescuer: the stage that settles the instances of dead nodes.

The rescuer first fences a node whose lease has expired, so that it claims nothing more; then each of its RUNNING rows
becomes FAIL with one more loss. A loss is not a failure of the instance, which may only have run beside the cause.
After two losses a worker runs the instance alone in a process, and the death of that process is a failure (decision
0026).

Every node fences. The node that owns the trigger shard of a dead node's incarnation rescues its rows. The stage does
not poll: the beats of the lease report a lost node, and a sweep covers missed reports.
"""

import asyncio
import random
from collections.abc import Mapping, Sequence
from datetime import datetime

import structlog

from horai.core.limits import SHARDS
from horai.core.outcome import Bury, Decision, RetryAt, plan_loss
from horai.core.retry import RetryPolicy
from horai.core.settings import EngineSettings
from horai.core.shards import Duty
from horai.core.wakes import KeyWake, OverlapWake, ParkedKeysWake, QueueWake, RunsWake
from horai.db import claims, nodes, queues, settlements
from horai.db.claims import Claim, RunningRow
from horai.db.jobs import Runnable
from horai.db.node_settings import WorkflowNodeSettings
from horai.db.pool import Platform
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.engine.dispatch.job_cache import JobCache
from horai.engine.lease import Lease
from horai.operations.failure_log import Origin, failures, trace_of
from horai.operations.traces import Traces

log = structlog.get_logger(__name__)

PAGE = 500


class Rescuer:
    """The stage that settles instances whose node was lost."""

    name = "rescuer"

    def __init__(self, line: StageConnection, lease: Lease, wakeups: Wakeups, settings: EngineSettings) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._lease = lease
        self._wakeups = wakeups
        self._settings = settings
        self._jobs = JobCache()
        self.traces: Traces | None = None

    async def step(self, now: datetime) -> datetime:
        """Fence nodes with an expired lease, and pass once over the rows of each dead node of our shards."""
        connection = await self.line.get()
        patience = self._settings.idle_in_transaction
        lost = await nodes.find_lost_nodes(connection, self._lease.incarnation, patience)
        for incarnation in lost.fenced:
            log.warning("node lost its lease", incarnation=incarnation)
        pause = self._settings.sweep
        owned = self._lease.shards(Duty.trigger)
        for incarnation in lost.to_rescue:
            if incarnation % SHARDS not in owned:
                continue
            if await self._rescue(connection, incarnation):
                for queue in await queues.free_slots_of_node(connection, incarnation):
                    self._wakeups.publish(QueueWake(queue))
                await nodes.mark_rescued(connection, incarnation)
                # The node may have died before it released the keys of its settled claims.
                self._wakeups.publish(ParkedKeysWake())
            else:
                pause = self._settings.rescue
        return now + pause

    async def _rescue(self, connection: Platform, incarnation: int) -> bool:
        """Settle the node's rows. Return whether all were settled; locked rows wait for the next step."""
        after, rescued, seen = 0, 0, 0
        while page := await claims.running_of_node(connection, incarnation, after, PAGE):
            known = await self._jobs.get(connection, (row.held.job_id for row in page))
            chained = [row.held.id for row in page if row.held.job_id in self._jobs.chained]
            own = await self._jobs.node_settings(connection, chained) if chained else {}
            batch = [(row.held, _decision(row.held, known.get(row.held.job_id), own.get(row.held.id))) for row in page]
            begun = 0 if self.traces is None else self.traces.now()
            async with connection.transaction():
                applied = await settlements.apply(connection, batch)
            if self.traces is not None:
                self.traces.settled([one for one in batch if one[0].id in applied.ids], begun)
            _log([row for row in page if row.held.id in applied.ids], dict(batch), known)
            self._wakeups.announce(applied.woken)
            self._wakeups.publish(RunsWake([row.held.id for row in page if row.held.job_id in self._jobs.chained]))
            self._wakeups.publish(OverlapWake({row.held.job_id for row in page if row.held.job_id in self._jobs.gated}))
            if keys := {(row.held.job_id, key) for row in page if (key := row.held.concurrency_key) is not None}:
                self._wakeups.publish(KeyWake(keys))
            rescued += len(applied.ids)
            seen += len(page)
            after = page[-1].held.id
        if rescued:
            log.warning("rescued instances of a lost node", incarnation=incarnation, instances=rescued)
        return rescued == seen


def _log(rescued: Sequence[RunningRow], decided: Mapping[Claim, Decision], known: Mapping[int, Runnable]) -> None:
    for row in rescued:
        decision, job = decided[row.held], known.get(row.held.job_id)
        if job is not None and isinstance(decision, RetryAt | Bury):
            failures.note(Origin(job.tenant, job.name, trace_of(row)), row.held, decision)


def _decision(held: Claim, job: Runnable | None, own: WorkflowNodeSettings | None) -> Decision:
    policy = job.recipe.retry if job and job.recipe else RetryPolicy()
    if own is not None:
        policy = own.policy(policy)
    message = f"The node that ran it (incarnation {held.node}) lost its lease."
    return plan_loss(policy, held.lost, message, random.uniform)
