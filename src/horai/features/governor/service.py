"""Operations on the governor: evaluate its rules, change its thresholds, and hold work by hand.

Every change is one transaction: it locks the governor, applies the change, evaluates the rules, and writes state,
controls, history and audit log together.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import structlog

from horai.core.actor import SYSTEM, Actor
from horai.core.audit import AuditEntry, AuditVerb, changed_fields
from horai.core.controls import GovernorMode
from horai.core.wakes import EverywhereWake
from horai.db import tenants
from horai.db.pool import Platform, retrying
from horai.features.governor import store
from horai.features.governor.rules import (
    GovernorState,
    ModeChange,
    Override,
    PlatformHold,
    Thresholds,
    changes_between,
    controls_of,
    evaluate,
    figures_of,
)
from horai.features.governor.store import Governor, TenantHold
from horai.operations import audit, incidents
from horai.operations.scope import PlatformScope, require_version
from horai.time.durations import format_duration

log = structlog.get_logger(__name__)

Change = Callable[[Governor], Governor]
DISPATCH = "dispatch"
RELEASED_AT_ONCE = 5_000
"""Held retries that one statement releases."""
TITLES: Mapping[GovernorMode, str] = {
    GovernorMode.SHED_LOW: "Instances start late: low priority is shed",
    GovernorMode.RETRY_LIMITED: "Attempts fail: retries are limited",
    GovernorMode.RETRY_SHORT_FIRST: "Retries pile up: short ones go first",
    GovernorMode.CORE_ONLY: "Dead letters grow: only core jobs start",
}
"""The titles of the incidents that a mode opens."""


def evaluated(governor: Governor) -> Governor:
    """Return the governor after one evaluation of its rules."""
    state = evaluate(governor.state, figures_of(governor.reading), governor.thresholds, governor.now)
    return replace(governor, state=state)


async def apply_change(connection: Platform, actor: Actor, change: Change) -> Governor:
    """Apply a change and evaluate the rules, in the caller's transaction. Nothing is written if nothing differs.

    A mode that the rules begin or end without the change is recorded as one of the system, not of the actor.
    """
    await store.lock_governor(connection)
    before = await store.governor_now(connection)
    after = evaluated(change(before))
    if (after.state, after.thresholds) == (before.state, before.thresholds):
        return after
    controls = controls_of(after.state, after.thresholds)
    version = await store.write_governor(connection, before.version, after.thresholds, after.state, controls)
    assert version is not None  # noqa: S101 — the row is locked
    changes = changes_between(before.state, after.state, before.thresholds, after.thresholds)
    if changes:
        await store.insert_mode_changes(connection, changes)
    by_rules = changes_between(before.state, evaluated(before).state, before.thresholds, before.thresholds)
    for each in changes:
        by = SYSTEM if each in by_rules else actor
        await _record_change(connection, by, each)
        if not each.is_dry_run:
            data = {"level": each.level, **each.cause}
            await incidents.follow_level(connection, by, each.mode, TITLES[each.mode], each.level, data)
    return replace(after, version=version)


async def _record_change(connection: Platform, actor: Actor, change: ModeChange) -> None:
    fields = {"level": change.level, "dryRun": change.is_dry_run, **change.cause}
    told = {name: value for name, value in fields.items() if name != "level"}  # `level` is that of the log line
    log.warning("mode changed", mode=change.mode, mode_level=change.level, **told)
    verb = AuditVerb.MODE_ENTER if change.level else AuditVerb.MODE_LEAVE
    entry = AuditEntry(verb, "mode", change.mode, change.mode, after=fields)
    await audit.record(connection, None, actor, entry)


async def evaluate_now(connection: Platform) -> Governor:
    """Evaluate the rules once. Only a change locks and writes."""
    governor = await store.governor_now(connection)
    after = evaluated(governor)
    if after.state == governor.state:
        return after
    async with connection.transaction():
        return await apply_change(connection, SYSTEM, lambda now: now)


async def release_retries(connection: Platform) -> int:
    """Make all retries due that the governor has held, in batches: their limit has ended. Return their number."""
    released = found = await store.release_retries(connection, RELEASED_AT_ONCE)
    while found == RELEASED_AT_ONCE:
        found = await store.release_retries(connection, RELEASED_AT_ONCE)
        released += found
    return released


async def read_governor(scope: PlatformScope) -> Governor:
    """Return the governor with the figures of this moment. Its state is that of the last evaluation."""
    async with scope.read() as connection:
        return await store.governor_now(connection)


async def read_tenant_holds(scope: PlatformScope, tenant_id: int) -> list[TenantHold]:
    """Return the holds that a tenant has put on itself."""
    async with scope.read() as connection:
        return await store.tenant_holds(connection, tenant_id)


def thresholds_document(thresholds: Thresholds) -> dict[str, Any]:
    """Return the thresholds by their public names."""
    return {
        "triggerDelayP95": format_duration(thresholds.delay_p95),
        "triggerDelayFor": format_duration(thresholds.delay_for),
        "runSuccessRate10m": thresholds.success_rate,
        "retryBacklog": thresholds.retry_backlog,
        "dlqGrowthPerMin": thresholds.dead_letters,
        "clearFor": format_duration(thresholds.clear_for),
        "minStarts": thresholds.least_starts,
        "minOutcomes": thresholds.least_outcomes,
        "dryRun": thresholds.is_dry_run,
    }


async def put_thresholds(scope: PlatformScope, thresholds: Thresholds, if_version: int | None = None) -> Governor:
    """Replace the thresholds, and evaluate the rules by them at once."""

    def change(governor: Governor) -> Governor:
        require_version("the governor", governor.version, if_version)
        return replace(governor, thresholds=thresholds)

    async with scope.write() as connection:
        await store.lock_governor(connection)
        before = (await store.governor_now(connection)).thresholds
        after = await apply_change(connection, scope.actor, change)
        old, new = changed_fields(thresholds_document(before), thresholds_document(thresholds))
        if new:
            entry = AuditEntry(AuditVerb.THRESHOLDS_CHANGE, "thresholds", "governor", "thresholds", old, new)
            await audit.record(connection, None, scope.actor, entry)
    return after


async def override_mode(
    scope: PlatformScope, mode: GovernorMode, is_on: bool | None, note: str | None, lasts: timedelta | None
) -> Governor:
    """Force a mode on or off until the time is over; None returns it to its rule."""

    def change(governor: Governor) -> Governor:
        others = {each: known for each, known in governor.state.overrides.items() if each is not mode}
        if is_on is not None:
            until = None if lasts is None else governor.now + lasts
            others[mode] = Override(is_on, scope.actor.name, governor.now, until, note)
        return replace(governor, state=replace(governor.state, overrides=others))

    async with scope.write() as connection:
        after = await apply_change(connection, scope.actor, change)
        words = {None: "AUTO", True: "ON", False: "OFF"}
        told = {"state": words[is_on], "note": note, "for": None if lasts is None else format_duration(lasts)}
        await audit.record(
            connection, None, scope.actor, AuditEntry(AuditVerb.MODE_OVERRIDE, "mode", mode, mode, after=told)
        )
    return after


async def freeze(
    scope: PlatformScope, tenant_id: int | None, kind: str, note: str | None, lasts: timedelta | None
) -> None:
    """Hold low-priority work or the backfill entry: of a tenant, or of all tenants. It takes effect with the commit."""

    def change(governor: Governor) -> Governor:
        until = None if lasts is None else governor.now + lasts
        hold = PlatformHold(scope.actor.name, governor.now, until, note)
        return replace(governor, state=replace(governor.state, freezes={**governor.state.freezes, kind: hold}))

    async with scope.write() as connection:
        if tenant_id is None:
            await apply_change(connection, scope.actor, change)
        else:
            await store.put_tenant_hold(connection, tenant_id, kind, scope.actor.name, note, lasts)
        await _record_hold(connection, scope, tenant_id, AuditVerb.FREEZE, kind, note, lasts)


async def unfreeze(scope: PlatformScope, tenant_id: int | None, kind: str, note: str | None) -> None:
    """Release what `freeze` holds. Without such a hold, only the audit log changes."""

    def change(governor: Governor) -> Governor:
        left = {each: hold for each, hold in governor.state.freezes.items() if each != kind}
        return replace(governor, state=replace(governor.state, freezes=left))

    async with scope.write() as connection:
        if tenant_id is None:
            await apply_change(connection, scope.actor, change)
        else:
            await store.delete_tenant_hold(connection, tenant_id, kind)
        await _record_hold(connection, scope, tenant_id, AuditVerb.UNFREEZE, kind, note)


async def set_pause(scope: PlatformScope, tenant: str | None, note: str | None, *, is_paused: bool) -> None:
    """Hold or release all dispatch: of a tenant, or of all tenants. No instance starts after the commit of a pause."""
    verb = AuditVerb.DISPATCH_PAUSE if is_paused else AuditVerb.DISPATCH_RESUME

    async def attempt() -> None:
        async with scope.write() as connection:
            if tenant is None:
                await store.hold_every_tenant(connection)
                await apply_change(connection, scope.actor, _pausing(scope.actor.name, note, is_paused=is_paused))
                await store.hold_every_queue(connection)
                await _record_hold(connection, scope, None, verb, DISPATCH, note)
            else:
                row = await tenants.lock_tenant(connection, tenant)
                assert row is not None  # noqa: S101 — the caller's own tenant
                if is_paused:
                    await store.put_tenant_hold(connection, row.id, DISPATCH, scope.actor.name, note, None)
                else:
                    await store.delete_tenant_hold(connection, row.id, DISPATCH)
                await tenants.hold_queues(connection, row.id)
                await _record_hold(connection, scope, row.id, verb, DISPATCH, note)

    await retrying(attempt)
    scope.wakeups.publish(EverywhereWake())


def _pausing(actor: str, note: str | None, *, is_paused: bool) -> Change:
    def change(governor: Governor) -> Governor:
        known: GovernorState = governor.state
        hold = (known.pause or PlatformHold(actor, governor.now, None, note)) if is_paused else None
        return replace(governor, state=replace(known, pause=hold))

    return change


async def _record_hold(
    connection: Platform,
    scope: PlatformScope,
    tenant_id: int | None,
    verb: AuditVerb,
    kind: str,
    note: str | None,
    lasts: timedelta | None = None,
) -> None:
    told: Mapping[str, Any] = {"note": note, "for": None if lasts is None else format_duration(lasts)}
    await audit.record(connection, tenant_id, scope.actor, AuditEntry(verb, "dispatch", kind, kind, after=told))


def next_look(governor: Governor, every: timedelta) -> datetime:
    """Return when the rules are due again: after `every`, or when an override or a hold expires."""
    expiry = governor.state.next_expiry()
    usual = governor.now + every
    return usual if expiry is None else min(usual, max(expiry, governor.now))
