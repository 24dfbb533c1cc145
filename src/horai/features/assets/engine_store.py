"""The statements of the stage of assets, for all tenants: one function per statement of engine_store.sql."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from horai.core.assets import METADATA_LIMIT
from horai.core.horizon import HorizonSample, read_samples, samples_text
from horai.core.timing import Rhythm
from horai.db.catalog import sql
from horai.db.pool import Platform
from horai.time.previous import previous_before


@dataclass(frozen=True, slots=True)
class AssetCursor:
    """The position up to which the history was read. No transaction from `oldest_open` on is known to be final; `next_id` was not assigned yet."""

    samples: tuple[HorizonSample, ...]
    now: datetime
    oldest_open: int
    next_id: int


@dataclass(frozen=True, slots=True)
class SuccessOf:
    """A success that updates an asset."""

    tenant_id: int
    asset_id: int
    at: datetime
    job_id: int
    instance_id: int
    run_id: int | None
    fire_time: datetime
    interval_start: datetime | None
    metadata: str | None


async def any_assets(connection: Platform) -> bool:
    """Return whether any job produces an asset or waits for one."""
    return await connection.fetchval(sql("any_assets"))


async def lock_asset_cursor(connection: Platform) -> AssetCursor | None:
    """Lock the cursor until the end of the transaction; return None if another process holds it."""
    row = await connection.fetchrow(sql("lock_asset_cursor"))
    if row is None:
        return None
    return AssetCursor(read_samples(row["samples"]), row["now"], row["oldest_open"], row["next_id"])


async def move_asset_cursor(connection: Platform, samples: Sequence[HorizonSample]) -> None:
    """Store how far the history was read. The caller has locked the cursor."""
    await connection.execute(sql("move_asset_cursor"), samples_text(samples))


async def new_successes(connection: Platform, earliest: datetime, limit: int) -> list[SuccessOf]:
    """Return successes since `earliest` whose updates are not recorded, oldest first."""
    rows = await connection.fetch(sql("new_successes"), earliest, METADATA_LIMIT, limit)
    return [
        SuccessOf(
            row["tenant_id"],
            row["asset_id"],
            row["finished_at"],
            row["job_id"],
            row["id"],
            row["run_id"],
            row["fire_time"],
            row["interval_start"] or _interval_start(row["spec"], row["fire_time"]),
            row["metadata"],
        )
        for row in rows
    ]


def _interval_start(spec: str | None, fire_time: datetime) -> datetime | None:
    """Return the start of the data interval of a job with a schedule."""
    return None if spec is None else previous_before(Rhythm.from_spec(json.loads(spec)).schedule, fire_time)


async def add_asset_updates(connection: Platform, successes: Sequence[SuccessOf]) -> None:
    """Record the updates of successes. Those that are recorded already stay."""
    await connection.execute(
        sql("add_asset_updates"),
        [each.tenant_id for each in successes],
        [each.asset_id for each in successes],
        [each.at for each in successes],
        [each.job_id for each in successes],
        [each.instance_id for each in successes],
        [each.run_id for each in successes],
        [each.interval_start for each in successes],
        [None if each.interval_start is None else each.fire_time for each in successes],
        [each.metadata for each in successes],
    )


async def ready_jobs(connection: Platform, limit: int) -> list[int]:
    """Lock jobs that may start with their updates, and return them."""
    return [row["job_id"] for row in await connection.fetch(sql("ready_jobs"), limit)]


async def note_start(connection: Platform, job_id: int, instance_id: int, update_ids: Collection[int]) -> None:
    """Record that a job has started an instance with these updates."""
    await connection.execute(sql("note_start"), job_id, instance_id, list(update_ids))


async def trim_asset_updates(connection: Platform, before: datetime, limit: int) -> int:
    """Forget updates from before this time; return how many."""
    return len(await connection.fetch(sql("trim_asset_updates"), before, limit))
