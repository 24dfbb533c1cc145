"""Facts about one job around one instant: one function per statement of store.sql.

Call them in one REPEATABLE READ transaction to get the facts of one moment.
"""

from dataclasses import dataclass
from datetime import datetime

import asyncpg

from horai.core.controls import Controls, controls_from
from horai.core.states import State
from horai.db.catalog import sql
from horai.db.pool import TenantRead
from horai.features.explain.facts import AwaitedAsset, CursorFact, OpenNode, Other, SkippedSlots
from horai.time.misfire import Stretch

OTHERS_LOOKED_AT = 2_000
NODES_NAMED = 5


@dataclass(frozen=True, slots=True)
class FoundSlot:
    """An instance found by its fire time. `is_parked`: it is in the parking lane."""

    id: int
    is_slot: bool
    is_parked: bool
    is_suspended: bool
    is_rewinding: bool


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


async def skip_over(connection: TenantRead, job_id: int, schedule_id: int | None, at: datetime) -> SkippedSlots | None:
    """Return the stored skip that covers `at`: of the job itself, or of every job of its schedule."""
    of_job = await connection.fetchrow(sql("skip_of_job"), job_id, at)
    if of_job is not None or schedule_id is None:
        return _skip(of_job)
    return _skip(await connection.fetchrow(sql("skip_of_schedule"), schedule_id, at))


def _skip(row: asyncpg.Record | None) -> SkippedSlots | None:
    return None if row is None else SkippedSlots(*row.values())


async def catchup_over(connection: TenantRead, job_id: int, at: datetime) -> Stretch | None:
    """Return the late slots of a job that are still to be created, if `at` is among them."""
    row = await connection.fetchrow(sql("catchup_of_job"), job_id, at)
    return None if row is None else Stretch(*row.values())


async def awaited_assets(connection: TenantRead, job_id: int) -> list[AwaitedAsset]:
    """Return the assets that a job waits for, with their updates that did not start it yet, up to 1,000."""
    return [AwaitedAsset(*row.values()) for row in await connection.fetch(sql("awaited_assets"), job_id)]


async def cursor_of_schedule(connection: TenantRead, schedule_id: int) -> CursorFact | None:
    """Return the position of a schedule."""
    row = await connection.fetchrow(sql("cursor_of_schedule"), schedule_id)
    return None if row is None else CursorFact(*row.values())


async def place_of_instance(connection: TenantRead, instance_id: int) -> FoundSlot | None:
    """Return whether an instance is a slot, is in the parking lane, is suspended, and is marked to be compensated."""
    row = await connection.fetchrow(sql("place_of_instance"), instance_id)
    return None if row is None else FoundSlot(instance_id, *row.values())


async def version_awaited(connection: TenantRead, instance_id: int) -> int | None:
    """Return the version of the code that a suspended instance waits for."""
    return await connection.fetchval(sql("version_awaited"), instance_id)


async def sensor_until(connection: TenantRead, instance_id: int) -> datetime | None:
    """Return the deadline of an instance that is a sensor of a workflow."""
    return await connection.fetchval(sql("sensor_until"), instance_id)


async def dispatch_facts(connection: TenantRead, tenant_id: int) -> tuple[Controls, bool]:
    """Return the limits of the governor, and whether the tenant holds its own dispatch."""
    row = await connection.fetchrow(sql("dispatch_facts"), tenant_id)
    assert row is not None  # noqa: S101 — a select without a table returns a row
    return controls_from(row["controls"]), row["is_paused"]


async def open_nodes_of(connection: TenantRead, run_id: int) -> tuple[OpenNode, ...]:
    """Return nodes of the run of a workflow that have not ended, those that work first, at most `NODES_NAMED`."""
    rows = await connection.fetch(sql("open_nodes_of"), run_id, NODES_NAMED)
    return tuple(
        OpenNode(row["name"], row["instance_id"], None if row["state"] is None else State(row["state"])) for row in rows
    )
