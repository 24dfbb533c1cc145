"""Delivery of messages in the database: one function per statement of delivery_store.sql."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from horai.db.catalog import sql
from horai.db.pool import Platform
from horai.features.alerts.grouping import Notification
from horai.features.alerts.senders import SendResult


@dataclass(frozen=True, slots=True)
class TakenDelivery:
    """A delivery that this process sends now. `channel_kind` is None if the channel was deleted."""

    id: int
    tenant_id: int
    tenant: str | None
    channel: str
    channel_kind: str | None
    language: str | None
    config: Mapping[str, Any]
    message: Mapping[str, Any]
    attempt: int
    created_at: datetime

    def __repr__(self) -> str:
        return f"TakenDelivery({self.id})"


async def insert_deliveries(connection: Platform, notification: Notification, message: Mapping[str, Any]) -> int:
    """Add a delivery for each channel of the rule; return how many there are."""
    text = json.dumps(message, ensure_ascii=False)
    count = len(notification.alerts)
    rows = await connection.fetch(sql("insert_deliveries"), notification.rule.id, notification.kind, count, text)
    return len(rows)


async def take_deliveries(connection: Platform, limit: int, pause: timedelta) -> list[TakenDelivery]:
    """Take deliveries that are due. Each is due again after its pause, also if this process dies."""
    return [
        TakenDelivery(
            row["id"],
            row["tenant_id"],
            row["tenant"],
            row["channel"],
            row["channel_kind"],
            row["language"],
            json.loads(row["config"] or "{}"),
            json.loads(row["message"]),
            row["attempt"],
            row["created_at"],
        )
        for row in await connection.fetch(sql("take_deliveries"), limit, pause)
    ]


async def settle_delivery(
    connection: Platform, taken: TakenDelivery, result: SendResult, give_up_after: timedelta, *, is_hopeless: bool
) -> str | None:
    """Record the result of a try; return the status, or None if a later try has begun."""
    named = (taken.id, taken.attempt, result.is_delivered, result.http_status, result.error)
    return await connection.fetchval(sql("settle_delivery"), *named, give_up_after, is_hopeless)


async def next_delivery_at(connection: Platform) -> datetime | None:
    """Return when the next delivery is due; None if there is none."""
    return await connection.fetchval(sql("next_delivery_at"))
