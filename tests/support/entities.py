"""Entities of refresh jobs, and ticks of theirs, for tests."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import make
from databases import Superuser

from horai.core.refresh import Status
from horai.db.jobs import JobRow, ticks_of
from horai.features.refresh import service as refreshes
from horai.features.refresh.store import EntityRow, entity_by_key
from horai.features.refresh.tick import Tick, TickResult, check
from horai.operations.scope import Scope

LONG_AGO = datetime(2023, 1, 1, tzinfo=UTC)


async def refresh_job(scope: Scope, name: str = "refresh_stock", **fields: Any) -> JobRow:
    """Make a job that looks once a day for entities that were not refreshed for ten days."""
    refresh = {"window": "10d", **fields.pop("refresh", {})}
    return await make.job(scope, name, **{"every": "1d", "refresh": refresh, **fields})


async def add(scope: Scope, *keys: str, job: str = "refresh_stock", payload: Any = None) -> int:
    """Entities, as by request."""
    text = None if payload is None else json.dumps(payload)
    return await refreshes.add_entities(scope, job, dict.fromkeys(keys, text))


async def age(connection: Superuser, since: datetime = LONG_AGO) -> None:
    """Every entity was added long ago."""
    await connection.execute("update horai.entity set create_time = $1", since)


async def set_entity(connection: Superuser, key: str, status: Status, finished_at: datetime | None) -> None:
    """Set the status and the end of an entity's last run."""
    await connection.execute(
        "update horai.entity set status = $2, finish_time = $3, fresh_at = $3 where key = $1",
        key,
        int(status),
        finished_at,
    )


async def tick(connection: Superuser, job: JobRow, at: datetime, batch_no: int = 1) -> TickResult:
    """One look of a tick that was due at a time."""
    ticks = await ticks_of(connection, job.id)
    assert ticks is not None
    return await check(connection, Tick(ticks.id, batch_no, at))


async def entity(connection: Superuser, job: JobRow, key: str) -> EntityRow:
    """One entity as it is in the table."""
    found = await entity_by_key(connection, job.id, key)
    assert found is not None
    return found


async def keys_of_batch(connection: Superuser, batch_no: int) -> list[str]:
    """Return the keys of the entities that a tick has loaded."""
    found = await connection.fetch("select key from horai.entity where batch_no = $1 order by key", batch_no)
    return [row["key"] for row in found]


async def end(connection: Superuser, key: str, state: int = 2, at: datetime | None = None) -> None:
    """The live instance of a key has ended, in this state."""
    await connection.execute(
        "with gone as (delete from horai.instance_live where key = $1 returning *)"
        " insert into horai.instance_history (id, job_id, fire_time, execute_time, born_for, slot, created_at, finished_at,"
        " fence, tenant_id, lane, attempt, retry_count, events, state, reason, key, error_code, error_msg)"
        " select id, job_id, fire_time, execute_time, born_for, slot, created_at, coalesce($3, clock_timestamp()), fence + 1,"
        " tenant_id, lane, 1, 0, 0, $2::smallint, case when $2::smallint = 5 then 1 end, key, case when $2::smallint = 4 then 'BROKEN' end,"
        " case when $2::smallint = 4 then 'no answer' end from gone",
        key,
        state,
        at,
    )


def days(count: float) -> timedelta:
    return timedelta(days=count)


def names(count: int) -> Sequence[str]:
    return [f"sku-{number:05}" for number in range(count)]
