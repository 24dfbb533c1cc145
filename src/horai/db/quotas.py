"""Quotas of tenants: functions over the statements of sql/quotas.sql, and the refusals of the database as our errors."""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import asyncpg

from horai.core.quotas import Quotas, refusal_of
from horai.db.catalog import sql
from horai.db.pool import AnyRead, AnyWrite, Platform, TenantRead, TenantWrite


@contextmanager
def translated() -> Generator[None]:
    """Raise the error of a quota that the database reports as `RetryLimited`, `TooLarge` or `Invalid`."""
    try:
        yield
    except asyncpg.PostgresError as error:
        refused = refusal_of(error.sqlstate, error.detail)
        if refused is None:
            raise
        raise refused from error


async def charge(connection: AnyWrite, tenant_id: int, count: int, payloads: Iterable[str | None]) -> None:
    """Charge new instances to the quotas of the tenant, or raise. The lock is held until the caller's commit."""
    with translated():
        await connection.execute(sql("charge"), tenant_id, count, _largest(payloads))


async def check_payloads(connection: TenantRead, tenant_id: int, payloads: Iterable[str | None]) -> None:
    """Raise `TooLarge` if a payload is larger than the quota of the tenant."""
    with translated():
        await connection.execute(sql("check_payload_quota"), tenant_id, _largest(payloads))


async def charge_jobs(connection: TenantWrite, job_ids: Sequence[int]) -> None:
    """Charge one new instance for each of these jobs to the quotas of their tenants, if they have quotas."""
    with translated():
        await connection.execute(sql("charge_jobs"), list(job_ids))


def _largest(payloads: Iterable[str | None]) -> int | None:
    return max((len(payload.encode()) for payload in payloads if payload is not None), default=None)


async def room(connection: Platform, tenant_id: int) -> int | None:
    """Return how many instances may be added below the quota `liveInstances`, or None without that quota."""
    return await connection.fetchval(sql("quota_room"), tenant_id)


async def note_added(connection: Platform, tenant_id: int, count: int) -> None:
    """Add instances that Horai itself has made to the estimate of live instances. This refuses none."""
    await connection.execute(sql("note_added"), tenant_id, count)


@dataclass(frozen=True, slots=True)
class CountedTenant:
    """A tenant with the quota `liveInstances`, whose live instances are to be counted again."""

    tenant_id: int
    limit: int
    estimate: int
    counted_at: datetime


async def tenants_to_count(connection: Platform) -> list[CountedTenant]:
    """Return the tenants with the quota `liveInstances` whose estimate may differ from the count."""
    return [CountedTenant(**row) for row in await connection.fetch(sql("tenants_to_count"))]


async def begin_count(connection: Platform, tenant_id: int) -> None:
    """Start a count: instances that are added from now on are added to its result."""
    await connection.execute(sql("begin_count"), tenant_id)


async def finish_count(connection: Platform, tenant_id: int) -> int | None:
    """Count the live instances, at most one more than the limit, and store the result."""
    return await connection.fetchval(sql("finish_count"), tenant_id)


async def read_quotas(connection: AnyRead, tenant_id: int) -> Quotas:
    """Return the quotas of a tenant."""
    row = await connection.fetchrow(sql("read_quotas"), tenant_id)
    return Quotas() if row is None else _quotas(row)


def _quotas(row: asyncpg.Record) -> Quotas:
    networks = row["callback_networks"]
    return Quotas(
        row["jobs"],
        row["live_instances"],
        row["enqueue_per_second"],
        row["payload_bytes"],
        row["concurrency"],
        None if networks is None else tuple(networks),
    )


async def write_quotas(connection: Platform, tenant_id: int, quotas: Quotas) -> None:
    """Store the quotas and mark the tenant's jobs. The caller has locked the tenant, so that no job is missed."""
    networks = None if quotas.callback_networks is None else list(quotas.callback_networks)
    numbers = (quotas.jobs, quotas.live_instances, quotas.enqueue_per_second, quotas.payload_bytes, quotas.concurrency)
    await connection.execute(sql("write_quotas"), tenant_id, *numbers, networks)
    await connection.execute(sql("mark_metered"), tenant_id)


@dataclass(frozen=True, slots=True)
class TenantUsage:
    """The use of a tenant's quotas. `live_instances` and `running` are counted up to `USAGE_COUNTED`."""

    jobs: int
    live_instances: int
    running: int


USAGE_COUNTED = 100_000


async def usage_of(connection: AnyRead, tenant_id: int) -> TenantUsage:
    """Count the jobs, the live and the running instances of a tenant."""
    row = await connection.fetchrow(sql("usage_of_tenant"), tenant_id, USAGE_COUNTED)
    assert row is not None  # noqa: S101 — a statement of aggregates returns one row
    return TenantUsage(**row)
