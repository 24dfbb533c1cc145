"""Stuck runs, clogged queues and the root causes of blocked runs, as alerts tell them."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from horai.core.callbacks import rfc3339
from horai.core.root_cause import RootCause
from horai.core.stuck import StuckRun
from horai.db.pool import Platform
from horai.features.alerts import engine_store
from horai.features.alerts.engine_store import Evaluated, StuckFact
from horai.features.alerts.grouping import OpenAlert, RuleInForce
from horai.features.alerts.rules import RuleKind
from horai.operations import stuck
from horai.operations.stuck import CloggedQueue
from horai.time.durations import format_duration

MOST_OF_TENANT = 1_000
"""Stuck runs or clogged queues of a tenant that are told at most: those that began first."""
RUNS_AT_ONCE = 100
"""Blocked runs whose nodes one decision reads; the others follow in the next one."""


async def evaluate_stuck(
    connection: Platform, rules: Sequence[RuleInForce], now: datetime, *, is_firing: bool
) -> Evaluated:
    """Evaluate the rules of the kinds RUN_STUCK and QUEUE_CLOGGED, tenant by tenant.

    While nothing is stuck and no such alert fires, nothing is written.
    """
    facts: list[StuckFact] = []
    for tenant_id in _tenants(rules, RuleKind.RUN_STUCK):
        runs = await stuck.stuck_runs(connection, tenant_id, now, MOST_OF_TENANT)
        facts += [_run_fact(tenant_id, one) for one in runs]
    for tenant_id in _tenants(rules, RuleKind.QUEUE_CLOGGED):
        queues = await stuck.clogged_queues(connection, tenant_id, now, MOST_OF_TENANT)
        facts += [_queue_fact(tenant_id, one) for one in queues]
    if not facts and not is_firing:
        return Evaluated()
    return await engine_store.evaluate_stuck(connection, facts)


def _tenants(rules: Sequence[RuleInForce], kind: RuleKind) -> list[int]:
    return sorted({rule.tenant_id for rule in rules if rule.kind == kind})


def _run_fact(tenant_id: int, one: StuckRun) -> StuckFact:
    data = {
        "job": one.run.job,
        "instance": str(one.run.id),
        "queue": one.run.queue,
        "startedAt": rfc3339(one.run.claimed_at),
        "p95": _duration(one.p95),
        "longest": _duration(one.longest),
    }
    return StuckFact(tenant_id, RuleKind.RUN_STUCK, str(one.run.id), one.run.job_id, one.stuck_at, data)


def _duration(duration: timedelta | None) -> str | None:
    return None if duration is None else format_duration(duration)


def _queue_fact(tenant_id: int, one: CloggedQueue) -> StuckFact:
    holders = [str(holder.run.id) for holder in one.holders[:10]]
    data = {"queue": one.name, "slots": one.slots, "waiting": one.waiting, "holders": holders}
    return StuckFact(tenant_id, RuleKind.QUEUE_CLOGGED, one.name, None, one.since, data)


async def with_causes(
    connection: Platform, rules: Sequence[RuleInForce], alerts: Sequence[OpenAlert]
) -> list[OpenAlert]:
    """Add the root causes to alerts of blocked runs that do not name them yet, and store them."""
    blocking = {rule.id for rule in rules if rule.kind == RuleKind.RUN_BLOCKED}
    unnamed = [each for each in alerts if each.rule_id in blocking and "causes" not in each.data][:RUNS_AT_ONCE]
    if not unnamed:
        return list(alerts)
    causes = await stuck.causes_of_runs(connection, {int(each.object) for each in unnamed})
    data = {each.id: {**each.data, "causes": _told(causes.get(int(each.object), ()))} for each in unnamed}
    await engine_store.store_alert_data(connection, data)
    return [replace(each, data=data.get(each.id, each.data)) for each in alerts]


def _told(causes: Sequence[RootCause]) -> list[dict[str, str | None]]:
    return [
        {"node": one.node, "job": one.job, "instance": str(one.instance_id), "errorCode": one.error_code}
        for one in causes
    ]
