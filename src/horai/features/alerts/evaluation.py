"""Evaluate the rules in force: which kinds are due, and when the next evaluation is.

Kinds whose condition a row shows are evaluated after a wake, and once a minute while one of their alerts fires. Kinds
whose condition begins as time passes, and stuck runs and queues, are evaluated once a minute; deadlines at their time, and once a minute while an
alert fires. A kind without a rule costs no statement.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from horai.core.service_level import OBJECTIVE
from horai.db.pool import Platform
from horai.features.alerts import engine_store
from horai.features.alerts.grouping import RuleInForce
from horai.features.alerts.rules import RuleKind, next_deadline, window_of
from horai.features.alerts.stuck_work import evaluate_stuck

AT_ONCE = 1_000
"""Alerts of dead instances that one statement adds."""
MOST_ROUNDS = 20
EVENTS = frozenset(
    {RuleKind.INSTANCE_DEAD, RuleKind.MODE_ENTERED, RuleKind.RUN_BLOCKED, RuleKind.RECONCILE_DRIFT},
)
DEADLINES = frozenset({RuleKind.NOT_SUCCESS_BY})
TIMES = frozenset(
    {
        RuleKind.JOB_LATE,
        RuleKind.QUEUE_WAIT,
        RuleKind.HEARTBEAT_MISSING,
        RuleKind.BUDGET_BURN,
        RuleKind.SINK_PARKED,
        RuleKind.ARCHIVE_FAILED,
        RuleKind.PARTITION_MISSING,
    }
)
STUCK = frozenset({RuleKind.RUN_STUCK, RuleKind.QUEUE_CLOGGED})


class Evaluator:
    """The rules in force, and the times at which they are due."""

    def __init__(self, every: timedelta) -> None:
        self._every = every
        self.rules: Sequence[RuleInForce] = ()
        self._kinds: frozenset[RuleKind] = frozenset()
        self._firing: frozenset[RuleKind] = frozenset()
        self._due: dict[str, datetime] = {}

    def take(self, rules: Sequence[RuleInForce], now: datetime) -> None:
        """Use these rules from now on. If they have changed, all of them are due, otherwise those that a wake concerns."""
        if rules != self.rules:
            self.rules = rules
            self._kinds = frozenset(RuleKind(rule.kind) for rule in rules)
            self._due = dict.fromkeys(("events", "times", "stuck", "deadlines"), now) if rules else {}
        elif rules:
            self._due["events"] = now
            if RuleKind.HEARTBEAT_MISSING in self._firing:
                self._due["times"] = now

    def fires(self, kinds: Collection[str], now: datetime) -> None:
        """Remember of which kinds alerts fire: those are evaluated until they are resolved."""
        self._firing = frozenset(RuleKind(kind) for kind in kinds)
        for group, members in (("events", EVENTS), ("deadlines", DEADLINES)):
            if group in self._due and self._firing & members:
                self._due[group] = min(self._due[group], now + self._every)

    @property
    def next_at(self) -> datetime | None:
        """Return when the next rule is due; None without rules."""
        return min(self._due.values(), default=None)

    async def evaluate(self, connection: Platform, now: datetime) -> bool:
        """Evaluate the kinds that are due. Return whether an alert was added or resolved."""
        has_changed = False
        if self._is_due("events", now):
            has_changed |= await self._events(connection)
            self._due["events"] = self._again(now, EVENTS)
        if self._is_due("times", now):
            if self._kinds & TIMES:
                has_changed |= (await engine_store.evaluate_times(connection, 1 - OBJECTIVE)).has_changed
            self._due["times"] = now + self._every if self._kinds & TIMES else datetime.max.replace(tzinfo=now.tzinfo)
        if self._is_due("stuck", now):
            if self._kinds & STUCK:
                is_firing = bool(self._firing & STUCK)
                has_changed |= (await evaluate_stuck(connection, self.rules, now, is_firing=is_firing)).has_changed
            self._due["stuck"] = now + self._every if self._kinds & STUCK else datetime.max.replace(tzinfo=now.tzinfo)
        if self._is_due("deadlines", now):
            has_changed |= await self._deadlines(connection, now)
        return has_changed

    def _is_due(self, group: str, now: datetime) -> bool:
        return group in self._due and now >= self._due[group]

    def _again(self, now: datetime, members: frozenset[RuleKind]) -> datetime:
        return now + self._every if self._firing & members else datetime.max.replace(tzinfo=now.tzinfo)

    async def _events(self, connection: Platform) -> bool:
        has_changed = False
        if RuleKind.INSTANCE_DEAD in self._kinds:
            for _ in range(MOST_ROUNDS):
                found = await engine_store.evaluate_dead(connection, AT_ONCE)
                has_changed |= found.has_changed
                if found.fired < AT_ONCE:
                    break
        if RuleKind.MODE_ENTERED in self._kinds:
            for _ in range(MOST_ROUNDS):  # a mode that was left and entered again is two alerts, one after the other
                if not (await engine_store.evaluate_modes(connection)).has_changed:
                    break
                has_changed = True
        if self._kinds & {RuleKind.RUN_BLOCKED, RuleKind.RECONCILE_DRIFT}:
            has_changed |= (await engine_store.evaluate_runs_and_reports(connection)).has_changed
        return has_changed

    async def _deadlines(self, connection: Platform, now: datetime) -> bool:
        rules = [rule for rule in self.rules if rule.kind == RuleKind.NOT_SUCCESS_BY]
        never = datetime.max.replace(tzinfo=now.tzinfo)
        coming = [next_deadline(rule.fields, rule.calendar, now) or never for rule in rules]
        self._due["deadlines"] = min(*coming, never, self._again(now, DEADLINES))
        if not rules:
            return False
        windows = {rule.id: window_of(rule.fields, rule.calendar, now) for rule in rules}
        past = {rule_id: window for rule_id, window in windows.items() if window is not None}
        return (await engine_store.evaluate_deadlines(connection, past)).has_changed
