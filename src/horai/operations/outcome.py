"""Outcomes reported from outside: a target that answered 202 reports the result later.

The fence authorizes the caller: it is the number that the target was called with. An old fence changes nothing, and its
outcome is kept as a late result.
"""

import random
from dataclasses import replace

from horai.core.errors import StaleOutcome
from horai.core.outcome import Bury, Decision, FailedRetryable, FailedUnrecoverable, Outcome, RetryAt, Succeeded, plan
from horai.core.retry import RetryPolicy
from horai.core.sealed_values import SealedColumn
from horai.core.states import State
from horai.core.wakes import OutcomeWake, RunsWake
from horai.db import claims, jobs, settlements
from horai.db.claims import Claim, LateResult
from horai.db.instance_queries import InstanceRow
from horai.db.node_settings import retry_of_node
from horai.db.pool import Plans, TenantWrite
from horai.db.settlements import SettledRows
from horai.operations.failure_log import Origin, failures
from horai.operations.instances import read_instance
from horai.operations.scope import Scope
from horai.operations.sealed_outcomes import sealed_decisions
from horai.operations.sealed_values import SealedJob, seal_text
from horai.text import Hint, Refused


async def report_outcome(scope: Scope, instance_id: int, fence: int, outcome: Outcome) -> InstanceRow:
    """Settle the running attempt with this fence. Raise `StaleOutcome` if the fence may no longer settle it."""
    async with scope.write() as connection:
        held = await claims.running_by_fence(connection, scope.tenant_id, instance_id, fence)
        applied, decision = (SettledRows(), None) if held is None else await _settle(connection, scope, held, outcome)
    instance = await read_instance(scope, instance_id)
    if held is not None and applied.ids and isinstance(decision, RetryAt | Bury):
        origin = Origin(scope.tenant, instance.job, instance.idem_key, is_encrypted=instance.is_encrypted)
        failures.note(origin, held, decision)
    if not applied.ids and not _is_repeated(instance, fence, outcome):
        raise await _keep_late(scope, instance, fence, outcome)
    scope.wakeups.announce(applied.woken)
    scope.wakeups.publish(OutcomeWake(instance_id, fence))
    scope.wakeups.publish(RunsWake([instance_id]))
    return instance


def _is_repeated(instance: InstanceRow, fence: int, outcome: Outcome) -> bool:
    """Return whether the same report was accepted before: its first answer was lost, so it gets the same one again."""
    match outcome:
        case Succeeded():
            return instance.fence == fence and instance.state is State.SUCCESS
        case FailedRetryable(code) | FailedUnrecoverable(code):
            is_failed = instance.state in {State.FAIL, State.DEAD}
            return instance.fence == fence and is_failed and instance.error_code == code
        case _:
            return False


async def _settle(connection: TenantWrite, scope: Scope, held: Claim, outcome: Outcome) -> tuple[SettledRows, Decision]:
    (job,) = await jobs.jobs_to_run(connection, {held.job_id: 0})
    policy = job.recipe.retry if job.recipe else RetryPolicy()
    if job.is_chained:
        policy = await retry_of_node(connection, held.id, policy)
    decision = plan(policy, held.retry_count, outcome, random.uniform)
    if job.is_encrypted:
        scope.keyring.require_for_job()
        own = SealedJob(job.tenant_id, job.name)
        (decision,) = await sealed_decisions(connection, scope.keyring, own, job.id, [decision])
    await claims.lock_instance(connection, held.id)
    return await settlements.apply(connection, [(held, decision)]), decision


async def _keep_late(scope: Scope, instance: InstanceRow, fence: int, outcome: Outcome) -> StaleOutcome:
    extra = {"instanceId": str(instance.id), "state": instance.state.name}
    now = Refused.INSTANCE_NOW(state=instance.state.name, fence=instance.fence)
    if fence > instance.fence:
        return StaleOutcome(
            Refused.NEVER_CALLED(instance=instance.id, fence=fence, now=now),
            Hint.SEND_FENCE(),
            extra=extra,
        )
    says = Refused.OUTCOME_LATE(instance=instance.id, fence=fence, now=now)
    if not isinstance(outcome, Succeeded | FailedRetryable | FailedUnrecoverable):
        return StaleOutcome(says, Hint.UNCHANGED(), extra=extra)  # a worker that released it has nothing to keep
    attempt = max(instance.attempt - (instance.fence - fence), 0)
    late = Claim(instance.id, instance.job_id, attempt, fence, 0, 0)
    result = late_result(late, outcome)
    async with scope.write(Plans.FRESH, autocommit=True) as connection:
        if instance.is_encrypted:
            own = SealedJob(scope.tenant_id, instance.job)
            message = await seal_text(connection, scope.keyring, own, SealedColumn.ERROR, result.message)
            result = replace(result, message=message)
        kept = await claims.keep_late(connection, [result])
    stale = StaleOutcome(
        says,
        Hint.UNCHANGED_KEPT() if kept else Hint.UNCHANGED(),
        extra=extra,
    )
    stale.took_effect = bool(kept)
    return stale


def late_result(held: Claim, outcome: Outcome) -> LateResult:
    """Return an outcome as the row of a late attempt."""
    match outcome:
        case FailedRetryable(code, message) | FailedUnrecoverable(code, message):
            return LateResult(held, "FAIL", code, message)
        case _:
            return LateResult(held, "SUCCESS", None, None)
