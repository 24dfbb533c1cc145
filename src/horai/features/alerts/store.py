"""Channels, rules, silences, heartbeats and the logs in the database: one function per statement of store.sql."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, TypeVar

import asyncpg

from horai.db.catalog import sql
from horai.db.pool import AnyRead, AnyWrite
from horai.features.alerts.channels import ChannelWish
from horai.features.alerts.rules import RuleWish

_JSON = frozenset({"config", "definition", "data"})


@dataclass(frozen=True, slots=True)
class ChannelRow:
    """A stored channel. `config` has its hidden values in an envelope."""

    id: int
    name: str
    kind: str
    language: str
    config: Mapping[str, Any]
    version: int
    created_at: datetime
    updated_at: datetime

    def __repr__(self) -> str:
        return f"ChannelRow({self.name!r})"


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A stored rule. `definition` has the fields of its kind."""

    id: int
    name: str
    kind: str
    definition: Mapping[str, Any]
    channels: Sequence[str]
    group_wait: timedelta
    repeat_every: timedelta
    is_enabled: bool
    version: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class SilenceRow:
    """A stored silence."""

    id: int
    rule: str | None
    job: str | None
    tag: str | None
    starts_at: datetime
    ends_at: datetime
    note: str | None
    actor: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class AlertRow:
    """An alert that fires or is resolved."""

    id: int
    rule: str
    kind: str
    object: str
    job: str | None
    tags: Sequence[str]
    data: Mapping[str, Any]
    since: datetime
    fired_at: datetime
    resolved_at: datetime | None
    notified_at: datetime | None
    silenced_by: int | None
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    acknowledged_note: str | None


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """A line of the delivery log."""

    id: int
    rule: str | None
    channel: str
    kind: str
    alerts: int
    status: str
    attempt: int
    http_status: int | None
    error: str | None
    created_at: datetime
    tried_at: datetime | None
    next_try_at: datetime
    finished_at: datetime | None
    redelivery_of: int | None


@dataclass(frozen=True, slots=True)
class HeartbeatRow:
    """An external job that reports by itself. `now` is the time of the read."""

    name: str
    every: timedelta
    grace: timedelta
    beats: int
    last_at: datetime | None
    active_from: datetime
    version: int
    created_at: datetime
    updated_at: datetime
    now: datetime

    @property
    def due_at(self) -> datetime:
        """Return the time after which it is missing."""
        return max(self.active_from, self.last_at or self.active_from) + self.every + self.grace

    @property
    def is_missing(self) -> bool:
        """Return whether it has not reported in time."""
        return self.due_at < self.now


Row = TypeVar("Row", ChannelRow, RuleRow, SilenceRow, AlertRow, DeliveryRow, HeartbeatRow)


def _read(kind: type[Row], record: asyncpg.Record) -> Row:
    names = [each.name for each in fields(kind)]
    return kind(**{name: json.loads(record[name]) if name in _JSON else record[name] for name in names})


async def _all(kind: type[Row], connection: AnyRead, statement: str, *arguments: Any) -> list[Row]:
    return [_read(kind, record) for record in await connection.fetch(sql(statement), *arguments)]


async def _one(kind: type[Row], connection: AnyRead, statement: str, *arguments: Any) -> Row | None:
    record = await connection.fetchrow(sql(statement), *arguments)
    return None if record is None else _read(kind, record)


async def list_channels(connection: AnyRead, owner: int, after: str, limit: int) -> list[ChannelRow]:
    """Return a page of channels by name."""
    return await _all(ChannelRow, connection, "list_channels", owner, after, limit)


async def find_channel(connection: AnyRead, owner: int, name: str) -> ChannelRow | None:
    """Return a channel by name."""
    return await _one(ChannelRow, connection, "find_channel", owner, name)


async def lock_channel(connection: AnyWrite, owner: int, name: str) -> ChannelRow | None:
    """Return a channel and lock it for a change."""
    return await _one(ChannelRow, connection, "lock_channel", owner, name)


async def share_channels(connection: AnyWrite, owner: int, names: Sequence[str]) -> set[str]:
    """Return which of the channels exist, and keep them from being deleted until commit."""
    return {row["name"] for row in await connection.fetch(sql("share_channels"), owner, list(names))}


async def count_channels(connection: AnyRead, owner: int) -> int:
    """Return how many channels there are."""
    return await connection.fetchval(sql("count_channels"), owner)


async def insert_channel(
    connection: AnyWrite, owner: int, name: str, wish: ChannelWish, config: Mapping[str, Any]
) -> ChannelRow | None:
    """Insert a channel; None if the name is taken."""
    arguments = (owner, name, wish.kind, wish.language, json.dumps(config))
    return await _one(ChannelRow, connection, "insert_channel", *arguments)


async def replace_channel(
    connection: AnyWrite, owner: int, name: str, wish: ChannelWish, config: Mapping[str, Any]
) -> ChannelRow | None:
    """Replace a channel that the caller has locked."""
    arguments = (owner, name, wish.kind, wish.language, json.dumps(config))
    return await _one(ChannelRow, connection, "replace_channel", *arguments)


async def rule_of_channel(connection: AnyRead, owner: int, name: str) -> str | None:
    """Return a rule that uses the channel."""
    return await connection.fetchval(sql("rule_of_channel"), owner, name)


async def delete_channel(connection: AnyWrite, owner: int, name: str) -> None:
    """Delete a channel."""
    await connection.execute(sql("delete_channel"), owner, name)


async def list_rules(connection: AnyRead, owner: int, after: str, limit: int) -> list[RuleRow]:
    """Return a page of rules by name."""
    return await _all(RuleRow, connection, "list_rules", owner, after, limit)


async def find_rule(connection: AnyRead, owner: int, name: str) -> RuleRow | None:
    """Return a rule by name."""
    return await _one(RuleRow, connection, "find_rule", owner, name)


async def lock_rule(connection: AnyWrite, owner: int, name: str) -> RuleRow | None:
    """Return a rule and lock it for a change."""
    return await _one(RuleRow, connection, "lock_rule", owner, name)


async def count_rules(connection: AnyRead, owner: int) -> int:
    """Return how many rules there are."""
    return await connection.fetchval(sql("count_rules"), owner)


def _rule_columns(wish: RuleWish, channels: Sequence[str], is_enabled: bool) -> tuple[Any, ...]:
    fields = json.dumps(wish.fields, ensure_ascii=False)
    return wish.kind.value, fields, wish.wait, list(channels), wish.group_wait, wish.repeat_every, is_enabled


async def insert_rule(
    connection: AnyWrite, owner: int, name: str, wish: RuleWish, channels: Sequence[str], *, is_enabled: bool
) -> RuleRow | None:
    """Insert a rule; None if the name is taken."""
    columns = _rule_columns(wish, channels, is_enabled)
    return await _one(RuleRow, connection, "insert_rule", owner, name, *columns)


async def replace_rule(
    connection: AnyWrite, owner: int, name: str, wish: RuleWish, channels: Sequence[str], *, is_enabled: bool
) -> RuleRow | None:
    """Replace a rule that the caller has locked."""
    columns = _rule_columns(wish, channels, is_enabled)
    return await _one(RuleRow, connection, "replace_rule", owner, name, *columns)


async def drop_alerts_of_rule(connection: AnyWrite, owner: int, rule_id: int) -> None:
    """Delete the alerts of a rule that watches something else from now on, or nothing."""
    await connection.execute(sql("drop_alerts_of_rule"), owner, rule_id)


async def delete_rule(connection: AnyWrite, owner: int, name: str) -> None:
    """Delete a rule with its alerts."""
    await connection.execute(sql("delete_rule"), owner, name)


async def list_silences(
    connection: AnyRead, owner: int, before: int, limit: int, *, also_ended: bool
) -> list[SilenceRow]:
    """Return a page of silences, newest first."""
    return await _all(SilenceRow, connection, "list_silences", owner, before, limit, also_ended)


async def count_silences(connection: AnyRead, owner: int) -> int:
    """Return how many silences have not ended."""
    return await connection.fetchval(sql("count_silences"), owner)


async def insert_silence(
    connection: AnyWrite,
    owner: int,
    matching: tuple[str | None, str | None, str | None],
    times: tuple[datetime, datetime],
    said: tuple[str | None, str],
) -> SilenceRow:
    """Insert a silence: `matching` has its rule, job and tag, `said` its note and its actor."""
    made = await _one(SilenceRow, connection, "insert_silence", owner, *matching, *times, *said)
    assert made is not None  # noqa: S101 — an insert with RETURNING returns its row
    return made


async def delete_silence(connection: AnyWrite, owner: int, silence_id: int) -> bool:
    """Delete a silence; return whether there was one."""
    return await connection.fetchrow(sql("delete_silence"), owner, silence_id) is not None


async def list_alerts(
    connection: AnyRead, owner: int, before: int, limit: int, is_firing: bool | None, rule: str | None
) -> list[AlertRow]:
    """Return a page of alerts, newest first."""
    return await _all(AlertRow, connection, "list_alerts", owner, before, limit, is_firing, rule)


async def lock_alert(connection: AnyWrite, owner: int, alert_id: int) -> AlertRow | None:
    """Return an alert and lock it for a change; None if the owner has none with this id."""
    return await _one(AlertRow, connection, "lock_alert", owner, alert_id)


async def acknowledge_alert(
    connection: AnyWrite, owner: int, alert_id: int, by: str, note: str | None
) -> datetime | None:
    """Acknowledge an alert that fires; return the time, or None if it is resolved or acknowledged already."""
    return await connection.fetchval(sql("acknowledge_alert"), owner, alert_id, by, note)


async def list_deliveries(
    connection: AnyRead, owner: int, before: int, limit: int, only: tuple[str | None, str | None, str | None]
) -> list[DeliveryRow]:
    """Return a page of the delivery log, newest first. `only` has a status, a channel and a rule."""
    return await _all(DeliveryRow, connection, "list_deliveries", owner, before, limit, *only)


async def insert_test_delivery(
    connection: AnyWrite,
    owner: int,
    channel: ChannelRow,
    message: Mapping[str, Any],
    result: tuple[str, int | None, str | None],
    sent_at: datetime,
) -> DeliveryRow:
    """Add a test call to the log: `result` has its status, its HTTP status and its error."""
    text = json.dumps(message, ensure_ascii=False)
    arguments = (owner, channel.id, channel.name, text, *result, sent_at)
    made = await _one(DeliveryRow, connection, "insert_test_delivery", *arguments)
    assert made is not None  # noqa: S101 — an insert with RETURNING returns its row
    return made


async def lock_delivery(connection: AnyWrite, owner: int, delivery_id: int) -> DeliveryRow | None:
    """Return a line of the delivery log and lock it; None if the owner has none with this id."""
    return await _one(DeliveryRow, connection, "lock_delivery", owner, delivery_id)


async def pending_redelivery(connection: AnyWrite, owner: int, delivery_id: int) -> int | None:
    """Return the redelivery of a delivery that is still tried; None if there is none."""
    return await connection.fetchval(sql("pending_redelivery"), owner, delivery_id)


async def redeliver(connection: AnyWrite, owner: int, delivery_id: int) -> DeliveryRow | None:
    """Add a delivery with the message of another one; None if its channel does not exist any more."""
    return await _one(DeliveryRow, connection, "redeliver", owner, delivery_id)


async def list_heartbeats(connection: AnyRead, owner: int, after: str, limit: int) -> list[HeartbeatRow]:
    """Return a page of heartbeats by name."""
    return await _all(HeartbeatRow, connection, "list_heartbeats", owner, after, limit)


async def lock_heartbeat(connection: AnyWrite, owner: int, name: str) -> HeartbeatRow | None:
    """Return a heartbeat and lock it for a change."""
    return await _one(HeartbeatRow, connection, "lock_heartbeat", owner, name)


async def count_heartbeats(connection: AnyRead, owner: int) -> int:
    """Return how many heartbeats there are."""
    return await connection.fetchval(sql("count_heartbeats"), owner)


async def put_heartbeat(
    connection: AnyWrite, owner: int, name: str, every: timedelta, grace: timedelta
) -> HeartbeatRow:
    """Create a heartbeat or change its times. It begins to count now."""
    made = await _one(HeartbeatRow, connection, "put_heartbeat", owner, name, every, grace)
    assert made is not None  # noqa: S101 — an upsert with RETURNING returns its row
    return made


async def beat_heartbeat(connection: AnyWrite, owner: int, name: str) -> HeartbeatRow | None:
    """Record that the external job has reported; None if there is no such heartbeat."""
    return await _one(HeartbeatRow, connection, "beat_heartbeat", owner, name)


async def delete_heartbeat(connection: AnyWrite, owner: int, name: str) -> bool:
    """Delete a heartbeat; return whether there was one."""
    return await connection.fetchrow(sql("delete_heartbeat"), owner, name) is not None
