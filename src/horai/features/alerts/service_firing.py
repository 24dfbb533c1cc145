"""Operations on alerts that fire and on the delivery log: acknowledge an alert, send a message again."""

from horai.core.audit import AuditVerb
from horai.core.digits import number_in
from horai.core.errors import Conflict, NotFound
from horai.features.alerts import store
from horai.features.alerts.scope import owner_of
from horai.features.alerts.service import record
from horai.features.alerts.store import AlertRow, DeliveryRow
from horai.operations.scope import AnyScope
from horai.text import Hint, Refused


async def acknowledge(scope: AnyScope, reference: str, note: str | None) -> AlertRow:
    """Acknowledge an alert: no repeats of it are sent until it is resolved or gets worse.

    An alert that is acknowledged stays as it is, with its first actor and note. Raise `Conflict` if it is resolved.
    """
    owner, number = owner_of(scope), number_in(reference)
    async with scope.write() as connection:
        known = None if number is None else await store.lock_alert(connection, owner, number)
        if known is None or number is None:
            raise NotFound(Refused.NO_ALERT(alert=reference[:40]), Hint.LISTED_AT(path="/api/v1/alerts"))
        if known.acknowledged_at is not None:
            return known
        if known.resolved_at is not None:
            raise Conflict(Refused.ALERT_RESOLVED(alert=reference), Hint.LISTED_AT(path="/api/v1/alerts"))
        await store.acknowledge_alert(connection, owner, number, scope.actor.name, note)
        after = {"rule": known.rule, "object": known.object, "note": note}
        await record(connection, scope, AuditVerb.ALERT_ACKNOWLEDGE, reference, None, after)
        changed = await store.lock_alert(connection, owner, number)
    return changed or known


async def redeliver(scope: AnyScope, reference: str) -> DeliveryRow:
    """Send the message of an ended delivery again: add a delivery that is due at once to the channel of the same name.

    Raise `Conflict` while the delivery or a redelivery of it is still tried, and if its channel was deleted.
    """
    owner, number = owner_of(scope), number_in(reference)
    async with scope.write() as connection:
        old = None if number is None else await store.lock_delivery(connection, owner, number)
        if old is None or number is None:
            raise NotFound(
                Refused.NO_DELIVERY(delivery=reference[:40]), Hint.LISTED_AT(path="/api/v1/alerts/deliveries")
            )
        pending = number if old.status == "PENDING" else await store.pending_redelivery(connection, owner, number)
        if pending is not None:
            raise Conflict(Refused.DELIVERY_PENDING(delivery=pending), Hint.LISTED_AT(path="/api/v1/alerts/deliveries"))
        made = await store.redeliver(connection, owner, number)
        if made is None:
            raise Conflict(Refused.DELIVERY_WITHOUT_CHANNEL(name=old.channel), Hint.CREATE_CHANNEL_FIRST())
        after = {"redelivery": str(made.id), "channel": made.channel, "rule": made.rule}
        await record(connection, scope, AuditVerb.ALERT_DELIVERY_REDELIVER, reference, None, after)
    return made
