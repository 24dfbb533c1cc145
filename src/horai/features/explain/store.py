"""Facts about one job around one instant: one function per statement of store.sql.

Call them in one REPEATABLE READ transaction to get the facts of one moment.
"""

from dataclasses import dataclass
from datetime import datetime

import asyncpg

from horai.core.controls import Controls, controls_from
from horai.db.catalog import sql
from horai.db.pool import TenantRead
from horai.features.explain.facts import CursorFact, Other, Skip
from horai.time.misfire import Stretch

OTHERS_LOOKED_AT = 2_000


@dataclass(frozen=True, slots=True)
class FoundSlot:
    """An instance found by its fire time; `is_parked`: it is in the parking lane."""

    id: int
    is_slot: bool
    is_parked: bool


async def instance_at(
    connection: TenantRead, job_id: int, fire_time: datetime, ended_from: datetime
) -> FoundSlot | None:
    """Return the instance of a job with exactly this fire time, a slot if there is one.

    Ignore instances that ended before `ended_from`.
    """
    row = await connection.fetchrow(sql("instance_at"), job_id, fire_time, ended_from)
    return None if row is None else FoundSlot(*row.values())


async def others_under_way(connection: TenantRead, job_id: int, at: datetime, but: int) -> tuple[Other, ...]:
    """Return what the job had under way at `at` except `but`, newest first; instances with a key do not count."""
    rows = await connection.fetch(sql("others_under_way"), job_id, at, but, OTHERS_LOOKED_AT)
    return tuple(Other(*row.values()) for row in rows)


async def skip_over(connection: TenantRead, job_id: int, schedule_id: int | None, at: datetime) -> Skip | None:
    """Return the stored skip that covers `at`: of the job itself, or of every job of its schedule."""
    of_job = await connection.fetchrow(sql("skip_of_job"), job_id, at)
    if of_job is not None or schedule_id is None:
        return _skip(of_job)
    return _skip(await connection.fetchrow(sql("skip_of_schedule"), schedule_id, at))


def _skip(row: asyncpg.Record | None) -> Skip | None:
    return None if row is None else Skip(*row.values())


async def catchup_over(connection: TenantRead, job_id: int, at: datetime) -> Stretch | None:
    """Return the late slots of a job that are still to be created, if `at` is among them."""
    row = await connection.fetchrow(sql("catchup_of_job"), job_id, at)
    return None if row is None else Stretch(*row.values())


async def cursor_of_schedule(connection: TenantRead, schedule_id: int) -> CursorFact | None:
    """Return the position of a schedule."""
    row = await connection.fetchrow(sql("cursor_of_schedule"), schedule_id)
    return None if row is None else CursorFact(*row.values())


async def place_of_instance(connection: TenantRead, instance_id: int) -> FoundSlot | None:
    """Return whether an instance is a slot, and whether it is in the parking lane."""
    row = await connection.fetchrow(sql("place_of_instance"), instance_id)
    return None if row is None else FoundSlot(instance_id, *row.values())


async def dispatch_facts(connection: TenantRead, tenant_id: int) -> tuple[Controls, bool]:
    """Return the limits of the governor, and whether the tenant holds its own dispatch."""
    row = await connection.fetchrow(sql("dispatch_facts"), tenant_id)
    assert row is not None  # noqa: S101 — a select without a table returns a row
    return controls_from(row["controls"]), row["is_paused"]
