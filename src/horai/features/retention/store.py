"""Retention in the database: one function per statement of store.sql."""

import json
from collections.abc import Mapping
from datetime import date, datetime, timedelta

from horai.db.catalog import sql
from horai.db.pool import Platform
from horai.features.retention.rules import HistoryDays

FORGETTING: Mapping[str, str] = {
    "dead letters": "forget_dead_letters",
    "skips": "forget_skips",
    "source events": "forget_source_events",
    "workflow runs": "forget_workflow_runs",
    "reconcile reports": "forget_reconcile_reports",
    "keys of deleted jobs": "forget_keys_of_deleted_jobs",
}
"""The statements that forget old rows, by the name of the rows."""


async def history_days(connection: Platform) -> HistoryDays:
    """Return the days that have partitions, and the bounds of history."""
    row = await connection.fetchrow(sql("history_days"))
    assert row is not None  # noqa: S101 — the migration inserts the row
    days = {
        parent.removeprefix("horai."): [date.fromisoformat(day) for day in some]
        for parent, some in json.loads(row["days"]).items()
    }
    return HistoryDays(row["now"], days, row["folded_before"], row["first_stray"])


async def watch_history_day(connection: Platform, day: date) -> None:
    """Fold each row at once that is written to this day from now on. Wait for transactions that have written to it."""
    await connection.execute(sql("watch_history_day"), day)


async def fold_history(connection: Platform, since: datetime, before: datetime, above: int, most: int) -> int | None:
    """Add instances that ended in this time to the past of their keys. Return the highest id; None without any."""
    return await connection.fetchval(sql("fold_history"), since, before, above, most)


async def move_fold(connection: Platform, before: datetime) -> None:
    """Read the past of keys before this time from the compact table from now on."""
    await connection.execute(sql("move_fold"), before)


async def move_kept_from(connection: Platform, since: datetime) -> None:
    """Record that history is complete only from this time on."""
    await connection.execute(sql("move_kept_from"), since)


async def lock_history_day(connection: Platform, parent: str, day: date) -> None:
    """Keep other transactions from writing to a day until the end of the transaction."""
    await connection.execute(sql("lock_history_day"), parent, day)


async def drop_history_day(connection: Platform, parent: str, day: date) -> int:
    """Drop a day of a table, except for rows that are still needed. Return how many stay."""
    return await connection.fetchval(sql("drop_history_day"), parent, day)


async def forget(connection: Platform, statement: str, keep: timedelta, most: int) -> int:
    """Forget up to `most` rows that are older than `keep`. Return how many."""
    return await connection.fetchval(sql(statement), keep, most)
