"""Turn open alerts into deliveries, in one transaction: an alert is marked as told if and only if its messages exist."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from horai.core.callbacks import rfc3339
from horai.db.pool import Platform
from horai.features.alerts import delivery_store, engine_store
from horai.features.alerts.encoders import alert_facts, message_of
from horai.features.alerts.grouping import Notification, RuleInForce, plan_sends
from horai.features.alerts.stuck_work import with_causes
from horai.features.alerts.templates import LISTED, PAGES

BUSY_PAUSE = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Notified:
    """The number of new deliveries, the time of the next decision, and the kinds of which alerts fire."""

    deliveries: int
    again_at: datetime | None
    firing: frozenset[str]


async def notify(connection: Platform, rules: Sequence[RuleInForce], now: datetime, public_url: str | None) -> Notified:
    """Decide about all open alerts by the clock of the database."""
    async with connection.transaction():
        if not await engine_store.lock_notifying(connection):
            return Notified(0, now + BUSY_PAUSE, frozenset())
        alerts, at = await engine_store.open_alerts(connection)
        if at is None:
            return Notified(0, None, frozenset())
        alerts = await with_causes(connection, rules, alerts)
        plan = plan_sends(rules, alerts, await engine_store.silences_in_force(connection), at)
        if plan.silenced:
            await engine_store.mark_silenced(connection, plan.silenced)
        if plan.closed:
            await engine_store.close_alerts(connection, plan.closed)
        if plan.worse:
            await engine_store.end_acknowledgements(connection, plan.worse)
        names = await _tenants(connection, plan.notifications)
        count = 0
        for notification in plan.notifications:
            await engine_store.mark_notified(connection, notification)
            message = _message(notification, names.get(notification.rule.tenant_id), at, public_url)
            count += await delivery_store.insert_deliveries(connection, notification, message)
    kinds = {rule.id: rule.kind for rule in rules}
    firing = {kinds[alert.rule_id] for alert in alerts if alert.resolved_at is None and alert.rule_id in kinds}
    return Notified(count, plan.again_at, frozenset(firing))


async def _tenants(connection: Platform, notifications: Sequence[Notification]) -> dict[int, str]:
    ids = {notification.rule.tenant_id for notification in notifications}
    return await engine_store.tenant_names(connection, ids) if ids else {}


def _message(notification: Notification, tenant: str | None, at: datetime, public_url: str | None) -> dict[str, object]:
    rule = notification.rule
    link = None if public_url is None else public_url.rstrip("/") + PAGES.get(rule.kind, "/")
    listed = [alert_facts(alert) for alert in notification.alerts[:LISTED]]
    named = {"name": rule.name, "kind": rule.kind}
    return message_of(
        notification.kind, named, tenant, listed, count=len(notification.alerts), time=rfc3339(at), link=link
    )
