"""Retention in the database: one function per statement of store.sql."""

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta

from horai.db.catalog import sql
from horai.db.pool import Platform
from horai.features.retention.rules import Clearing, HistoryDays, OwnTimes

ADOPT_WITHIN = 900.0
"""Seconds that the rows of one day may take to be moved."""
FORGETTING: Mapping[str, str] = {
    "dead letters": "forget_dead_letters",
    "skips": "forget_skips",
    "source events": "forget_source_events",
    "workflow runs": "forget_workflow_runs",
    "reconcile reports": "forget_reconcile_reports",
    "keys of deleted jobs": "forget_keys_of_deleted_jobs",
    "backfills": "forget_backfills",
    "parked events": "forget_parked_events",
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


async def stray_days(connection: Platform) -> dict[str, date]:
    """Return the oldest day with rows in the default partition, by table. Days that are archived already are left out."""
    return {row["parent"]: row["day"] for row in await connection.fetch(sql("stray_days"))}


async def adopt_strays(connection: Platform, parent: str, day: date) -> int | None:
    """Create the partition of a day that is over, and move its rows there. Return how many; None while the outbox needs them."""
    return await connection.fetchval(sql("adopt_strays"), parent, day, timeout=ADOPT_WITHIN)


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


async def lock_fold(connection: Platform) -> None:
    """Keep tenants and jobs from getting other times until the end of the transaction."""
    await connection.execute(sql("lock_fold"))


async def own_times(connection: Platform) -> list[OwnTimes]:
    """Return the tenants and jobs that keep history for a time of their own."""
    rows = await connection.fetch(sql("own_times"))
    return [OwnTimes(*row.values()) for row in rows]


async def move_kept_from_of(connection: Platform, clearing: Clearing, since: datetime) -> None:
    """Record that the history of these tenants and jobs is complete only from this time on."""
    await connection.execute(sql("move_kept_from_of"), clearing.jobs, clearing.tenants, since)


async def forgettable_instances(
    connection: Platform, clearing: Clearing, above: int, most: int
) -> tuple[Sequence[int], datetime | None]:
    """Return the next instances that go, by id, and when the first of them was created."""
    whose = (clearing.day, clearing.jobs, clearing.tenants, clearing.apart)
    row = await connection.fetchrow(sql("forgettable_instances"), *whose, above, most)
    assert row is not None  # noqa: S101 — the function returns one row
    return row["ids"] or (), row["oldest"]


async def days_of_rows(
    connection: Platform, ids: Sequence[int], since: datetime, before: datetime
) -> list[tuple[str, date]]:
    """Return the days on which these instances have attempts, events and notes, by table."""
    rows = await connection.fetch(sql("days_of_rows"), ids, since, before)
    return [(row["parent"], row["day"]) for row in rows]


async def forget_rows(connection: Platform, parent: str, day: tuple[datetime, datetime], ids: Sequence[int]) -> None:
    """Delete the rows of these instances on a day of a table."""
    await connection.execute(sql(_OF_TABLE[parent]), ids, *day)


_OF_TABLE = {
    "instance_history": "forget_history_of",
    "attempt": "forget_attempts_of",
    "event": "forget_events_of",
    "note": "forget_notes_of",
}


async def forget(connection: Platform, statement: str, keep: timedelta, most: int) -> int:
    """Forget up to `most` rows that are older than `keep`. Return how many."""
    return await connection.fetchval(sql(statement), keep, most)
