"""Decide what is sent: alerts of one rule are grouped, repeated while they fire, and held back by silences. Pure.

An alert is told once when it fires, again every `repeat_every` while it fires, and once when it is resolved. One that is
acknowledged is not repeated; if its condition gets worse, it is told at once and is not acknowledged any more. Alerts of a rule that fire within `group_wait` are one notification. An alert that a silence covers is not told; if it still fires
when the silence ends, it is told then.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from horai.features.alerts.rules import RuleKind, is_worse
from horai.time.work_calendar import WorkCalendar

NotificationKind = Literal["FIRING", "REPEATED", "RESOLVED"]


@dataclass(frozen=True, slots=True)
class OpenAlert:
    """An alert about which something may still be sent."""

    id: int
    rule_id: int
    object: str
    job: str | None
    tags: tuple[str, ...]
    data: Mapping[str, Any]
    since: datetime
    fired_at: datetime
    resolved_at: datetime | None
    notified_at: datetime | None
    silenced_by: int | None
    acknowledged_at: datetime | None = None
    acknowledged_data: Mapping[str, Any] | None = None
    """The data of the first evaluation after the acknowledgement."""

    def has_worsened(self, kind: str) -> bool:
        """Return whether the condition is worse than it was when the alert was acknowledged."""
        return self.acknowledged_data is not None and is_worse(RuleKind(kind), self.acknowledged_data, self.data)


@dataclass(frozen=True, slots=True)
class RuleInForce:
    """A rule as the leader uses it. `calendar`: the days of the calendar that it names."""

    id: int
    tenant_id: int
    name: str
    kind: str
    fields: Mapping[str, Any]
    channels: tuple[str, ...]
    group_wait: timedelta
    repeat_every: timedelta
    active_from: datetime
    calendar: WorkCalendar | None = None


@dataclass(frozen=True, slots=True)
class Silence:
    """A time in which matching alerts are not sent. A field that is None matches every alert."""

    id: int
    tenant_id: int
    rule: str | None
    job: str | None
    tag: str | None
    starts_at: datetime
    ends_at: datetime

    def covers(self, rule: RuleInForce, alert: OpenAlert, now: datetime) -> bool:
        """Return whether the silence holds this alert now."""
        return (
            self.tenant_id == rule.tenant_id
            and self.starts_at <= now < self.ends_at
            and self.rule in {None, rule.name}
            and self.job in {None, alert.job}
            and (self.tag is None or self.tag in alert.tags)
        )


@dataclass(frozen=True, slots=True)
class Notification:
    """Alerts of one rule that are told together."""

    kind: NotificationKind
    rule: RuleInForce
    alerts: tuple[OpenAlert, ...]


@dataclass(slots=True)
class SendPlan:
    """The notifications and marks of this moment, and the time of the next decision; None if nothing is open."""

    notifications: list[Notification] = field(default_factory=list[Notification])
    silenced: dict[int, int] = field(default_factory=dict[int, int])
    """Alerts that a silence holds from now on, by id, with the id of the silence."""
    closed: list[int] = field(default_factory=list[int])
    """Alerts that are over without a further notification."""
    worse: list[int] = field(default_factory=list[int])
    """Alerts that are not acknowledged any more."""
    again_at: datetime | None = None

    def look(self, at: datetime) -> None:
        """Decide again at this time, if not before."""
        self.again_at = at if self.again_at is None else min(self.again_at, at)


def plan_sends(
    rules: Collection[RuleInForce], alerts: Iterable[OpenAlert], silences: Sequence[Silence], now: datetime
) -> SendPlan:
    """Return what is to be sent now about these alerts."""
    by_rule: dict[int, list[OpenAlert]] = {}
    for alert in alerts:
        by_rule.setdefault(alert.rule_id, []).append(alert)
    plan = SendPlan()
    for rule in rules:
        _plan_rule(plan, rule, by_rule.get(rule.id, []), silences, now)
    return plan


def _plan_rule(
    plan: SendPlan, rule: RuleInForce, alerts: Iterable[OpenAlert], silences: Sequence[Silence], now: datetime
) -> None:
    fresh, told, over, worse = list[OpenAlert](), list[OpenAlert](), list[OpenAlert](), list[OpenAlert]()
    for alert in alerts:
        holding = next((silence for silence in silences if silence.covers(rule, alert, now)), None)
        if holding is not None:
            _hold(plan, alert, holding)
        elif alert.notified_at is None and alert.resolved_at is not None and alert.silenced_by is not None:
            plan.closed.append(alert.id)  # it began and ended under silences
        elif alert.notified_at is None:
            fresh.append(alert)
        elif alert.resolved_at is not None:
            over.append(alert)
        elif alert.acknowledged_at is None:
            told.append(alert)
        elif alert.has_worsened(rule.kind):
            worse.append(alert)
    plan.worse += [alert.id for alert in worse]
    _notify(plan, "FIRING", rule, fresh, min((each.fired_at for each in fresh), default=now) + rule.group_wait, now)
    ended = min((each.resolved_at for each in over if each.resolved_at), default=now)
    _notify(plan, "RESOLVED", rule, over, ended + rule.group_wait, now)
    _notify(plan, "REPEATED", rule, worse, now, now)
    last = max((each.notified_at for each in told if each.notified_at), default=now)
    _notify(plan, "REPEATED", rule, told, last + rule.repeat_every, now)


def _hold(plan: SendPlan, alert: OpenAlert, silence: Silence) -> None:
    if alert.resolved_at is not None:
        plan.closed.append(alert.id)
        return
    if alert.silenced_by != silence.id:
        plan.silenced[alert.id] = silence.id
    plan.look(silence.ends_at)


def _notify(
    plan: SendPlan,
    kind: NotificationKind,
    rule: RuleInForce,
    alerts: Sequence[OpenAlert],
    due: datetime,
    now: datetime,
) -> None:
    if not alerts:
        return
    if due > now:
        plan.look(due)
        return
    plan.notifications.append(Notification(kind, rule, tuple(alerts)))
    if kind != "RESOLVED":
        plan.look(now + rule.repeat_every)
    if kind == "FIRING" and any(each.resolved_at is not None for each in alerts):
        plan.look(now)
