"""Evaluation of rules in the database: one function per statement of engine_store.sql."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from horai.db.calendars import days_of
from horai.db.catalog import sql
from horai.db.pool import Platform
from horai.features.alerts.grouping import Notification, OpenAlert, RuleInForce, Silence
from horai.features.alerts.rules import DeadlineWindow

OPEN_ALERTS = 10_000
"""The most open alerts that one decision reads; those that were never told come first."""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The number of alerts that an evaluation added, of those that it resolved, and of acknowledged ones with other data."""

    fired: int = 0
    resolved: int = 0
    renewed: int = 0

    @property
    def has_changed(self) -> bool:
        """Return whether there may be something to send."""
        return bool(self.fired or self.resolved or self.renewed)


async def rules_in_force(connection: Platform) -> list[RuleInForce]:
    """Return the rules of all tenants and of the platform that are enabled."""
    return [
        RuleInForce(
            row["id"],
            row["tenant_id"],
            row["name"],
            row["kind"],
            json.loads(row["definition"]),
            tuple(row["channels"]),
            row["group_wait"],
            row["repeat_every"],
            row["active_from"],
            None if row["days"] is None else days_of(row["days"]),
        )
        for row in await connection.fetch(sql("rules_in_force"))
    ]


async def _evaluated(connection: Platform, statement: str, *arguments: Any) -> Evaluated:
    row = await connection.fetchrow(sql(statement), *arguments)
    assert row is not None  # noqa: S101 — a select of counts has one row
    return Evaluated(*row.values())


async def evaluate_dead(connection: Platform, limit: int) -> Evaluated:
    """Evaluate the rules of kind INSTANCE_DEAD; add at most `limit` alerts."""
    return await _evaluated(connection, "evaluate_dead", limit)


async def evaluate_modes(connection: Platform) -> Evaluated:
    """Evaluate the rules of kind MODE_ENTERED."""
    return await _evaluated(connection, "evaluate_modes")


async def evaluate_runs_and_reports(connection: Platform) -> Evaluated:
    """Evaluate the rules of the kinds RUN_BLOCKED and RECONCILE_DRIFT."""
    return await _evaluated(connection, "evaluate_runs_and_reports")


async def evaluate_times(connection: Platform, allowed: float) -> Evaluated:
    """Evaluate the rules of the kinds JOB_LATE, QUEUE_WAIT, HEARTBEAT_MISSING, BUDGET_BURN, SINK_PARKED and ARCHIVE_FAILED."""
    return await _evaluated(connection, "evaluate_times", allowed)


@dataclass(frozen=True, slots=True)
class StuckFact:
    """A stuck run or a clogged queue of a tenant: what a rule of the kind reports."""

    tenant_id: int
    kind: str
    object: str
    job_id: int | None
    since: datetime
    data: Mapping[str, Any]


async def evaluate_stuck(connection: Platform, facts: Sequence[StuckFact]) -> Evaluated:
    """Evaluate the rules of the kinds RUN_STUCK and QUEUE_CLOGGED: these facts are all that holds now."""
    columns: list[list[Any]] = [
        [one.tenant_id for one in facts],
        [one.kind for one in facts],
        [one.object for one in facts],
        [one.job_id for one in facts],
        [one.since for one in facts],
        [json.dumps(one.data, ensure_ascii=False) for one in facts],
    ]
    return await _evaluated(connection, "evaluate_stuck", *columns)


async def evaluate_deadlines(connection: Platform, windows: Mapping[int, DeadlineWindow]) -> Evaluated:
    """Evaluate the rules of kind NOT_SUCCESS_BY, with the window of each rule."""
    begins = [window.begin for window in windows.values()]
    deadlines = [window.deadline for window in windows.values()]
    return await _evaluated(connection, "evaluate_deadlines", list(windows), begins, deadlines)


async def store_alert_data(connection: Platform, data: Mapping[int, Mapping[str, Any]]) -> None:
    """Store the data of open alerts, by id."""
    texts = [json.dumps(each, ensure_ascii=False) for each in data.values()]
    await connection.execute(sql("store_alert_data"), list(data), texts)


async def lock_notifying(connection: Platform) -> bool:
    """Take the lock of the process that decides; False if another one has it. It ends with the transaction."""
    return await connection.fetchval(sql("lock_notifying"))


async def open_alerts(connection: Platform) -> tuple[list[OpenAlert], datetime | None]:
    """Return the alerts about which something may be sent, and the time of the database; None without alerts."""
    rows = await connection.fetch(sql("open_alerts"), OPEN_ALERTS)
    alerts = [
        OpenAlert(
            row["id"],
            row["rule_id"],
            row["object"],
            row["job"],
            tuple(row["tags"]),
            json.loads(row["data"]),
            row["since"],
            row["fired_at"],
            row["resolved_at"],
            row["notified_at"],
            row["silenced_by"],
            row["acknowledged_at"],
            None if row["acknowledged_data"] is None else json.loads(row["acknowledged_data"]),
        )
        for row in rows
    ]
    return alerts, rows[0]["now"] if rows else None


async def silences_in_force(connection: Platform) -> list[Silence]:
    """Return the silences that have not ended."""
    return [Silence(*row.values()) for row in await connection.fetch(sql("silences_in_force"))]


async def mark_notified(connection: Platform, notification: Notification) -> None:
    """Record that the alerts of a notification are told. Those that are resolved are closed."""
    ids = [alert.id for alert in notification.alerts]
    await connection.fetch(sql("mark_notified"), ids, notification.kind == "RESOLVED")


async def mark_silenced(connection: Platform, silenced: Mapping[int, int]) -> None:
    """Record which silence holds which alert."""
    await connection.execute(sql("mark_silenced"), list(silenced), list(silenced.values()))


async def end_acknowledgements(connection: Platform, ids: Sequence[int]) -> None:
    """Forget who acknowledged these alerts: they got worse."""
    await connection.execute(sql("end_acknowledgements"), list(ids))


async def close_alerts(connection: Platform, ids: Sequence[int]) -> None:
    """Close alerts that are over without a notification."""
    await connection.execute(sql("close_alerts"), list(ids))


async def forget_alerts(connection: Platform, keep: timedelta) -> None:
    """Delete closed alerts, ended silences and finished deliveries that are older than `keep`."""
    await connection.execute(sql("forget_alerts"), keep)


@dataclass(frozen=True, slots=True)
class PlainChannel:
    """A channel whose secrets are stored as they are, and the version at which it was read."""

    id: int
    tenant_id: int
    name: str
    kind: str
    language: str
    version: int
    config: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"PlainChannel({self.name!r})"


async def plain_channels(connection: Platform, limit: int) -> list[PlainChannel]:
    """Return channels of tenants whose secrets are stored as they are."""
    rows = await connection.fetch(sql("plain_channels"), limit)
    return [
        PlainChannel(
            row["id"],
            row["tenant_id"],
            row["name"],
            row["kind"],
            row["language"],
            row["version"],
            json.loads(row["config"]),
        )
        for row in rows
    ]


async def store_sealed_channel(connection: Platform, channel: PlainChannel, config: Mapping[str, Any]) -> None:
    """Store the sealed secrets of a channel, unless it was changed since it was read."""
    await connection.execute(sql("store_sealed_channel"), channel.id, channel.version, json.dumps(config))


async def tenant_names(connection: Platform, ids: Collection[int]) -> dict[int, str]:
    """Return the names of tenants by id."""
    return {row["id"]: row["name"] for row in await connection.fetch(sql("tenant_names"), list(ids))}
