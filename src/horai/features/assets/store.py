"""Assets and their uses by jobs: one function per statement of store.sql that requests run."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from horai.core.assets import AssetRole
from horai.db.catalog import sql
from horai.db.pool import AnyRead, AnyWrite, TenantRead, TenantWrite
from horai.features.assets.rules import AssetEdge, PendingUpdate


@dataclass(frozen=True, slots=True, order=True)
class AssetUse:
    """The use of an asset by a job, or by a node of its workflow."""

    role: AssetRole
    asset: str
    node: str = ""


async def lock_asset_uses(connection: TenantWrite, tenant_id: int) -> None:
    """Make other transactions that change the uses of the tenant's assets wait until commit."""
    await connection.execute(sql("lock_asset_uses"), tenant_id)


async def uses_of_job(connection: TenantRead, job_id: int) -> tuple[frozenset[AssetUse], bool]:
    """Return the stored uses of a job, and whether any of the assets that it waits for starts it."""
    rows = await connection.fetch(sql("uses_of_job"), job_id)
    uses = frozenset(AssetUse(AssetRole(row["role"]), row["name"], row["node"]) for row in rows)
    return uses, any(row["is_any"] for row in rows)


async def node_assets_of_job(connection: TenantRead, job_id: int) -> frozenset[AssetUse]:
    """Return the assets that the nodes of a workflow produce; `job_id` is the job that starts its runs."""
    rows = await connection.fetch(sql("node_assets_of_job"), job_id)
    return frozenset(AssetUse(AssetRole.PRODUCES, row["name"], row["node"]) for row in rows)


async def keep_asset_uses(
    connection: TenantWrite, tenant_id: int, job_id: int, uses: Collection[AssetUse], *, is_any: bool
) -> None:
    """Replace the uses of a job. New assets are added."""
    wished = sorted(uses)
    await connection.execute(sql("add_assets"), tenant_id, sorted({use.asset for use in wished}))
    roles = [int(use.role) for use in wished]
    names, nodes = [use.asset for use in wished], [use.node for use in wished]
    await connection.execute(sql("keep_asset_uses"), tenant_id, job_id, roles, names, nodes)
    if AssetRole.WAITS in {use.role for use in wished}:
        await connection.execute(sql("keep_asset_wait"), tenant_id, job_id, is_any)
    else:
        await connection.execute(sql("drop_asset_wait"), tenant_id, job_id)


async def asset_edges(connection: TenantRead, tenant_id: int) -> list[AssetEdge]:
    """Return what follows what in a tenant. Assets have names with a colon in front."""
    return [AssetEdge(*row.values()) for row in await connection.fetch(sql("asset_edges"), tenant_id)]


async def clear_asset_uses(connection: AnyWrite, job_id: int, limit: int) -> int:
    """Delete the uses of a deleted job and the updates that wait for it; return the number of deleted rows."""
    return await connection.fetchval(sql("clear_asset_uses"), job_id, limit)


async def has_asset_uses(connection: AnyRead, job_id: int) -> bool:
    """Return whether rows are left that `clear_asset_uses` deletes."""
    return await connection.fetchval(sql("has_asset_uses"), job_id)


async def pending_updates(connection: AnyRead, job_id: int) -> list[PendingUpdate]:
    """Return the updates that a job did not start with yet, oldest first."""
    return [PendingUpdate(*row.values()) for row in await connection.fetch(sql("pending_updates"), job_id)]


@dataclass(frozen=True, slots=True)
class OutsideUpdate:
    """An update of an asset from outside. `metadata` is JSON text. A second one with the same `request_key` changes nothing."""

    metadata: str | None = None
    interval_start: datetime | None = None
    interval_end: datetime | None = None
    request_key: str | None = None


async def note_asset_update(
    connection: TenantWrite, tenant_id: int, name: str, update: OutsideUpdate, actor: str
) -> tuple[int, bool] | None:
    """Record an update; return its id and whether it is new. Return None if there is no such asset."""
    row = await connection.fetchrow(
        sql("note_asset_update"),
        tenant_id,
        name,
        update.metadata,
        update.interval_start,
        update.interval_end,
        actor,
        update.request_key,
    )
    return None if row is None else (row["update_id"], row["is_new"])


@dataclass(frozen=True, slots=True)
class AssetRow:
    """An asset. `updates` counts the kept updates, up to 1,000; `updated_at` and `last_…` are of the newest."""

    id: int
    name: str
    created_at: datetime
    updated_at: datetime | None
    updates: int
    last_job: str | None
    last_instance_id: int | None
    last_actor: str | None
    producers: list[str]
    consumers: list[str]


async def list_assets(
    connection: TenantRead, tenant_id: int, after: str, limit: int, name: str | None = None
) -> list[AssetRow]:
    """Return a page of assets by name, or the one with this name."""
    rows = await connection.fetch(sql("list_assets"), tenant_id, after, limit, name)
    return [AssetRow(*row.values()) for row in rows]


@dataclass(frozen=True, slots=True)
class UseRow:
    """A job that uses an asset. `pending` updates of the asset did not start it yet, up to 1,000."""

    role: AssetRole
    job_id: int
    job: str
    node: str | None
    is_workflow: bool
    is_paused: bool
    is_any: bool
    pending: int


async def uses_of_asset(connection: TenantRead, tenant_id: int, asset_id: int) -> list[UseRow]:
    """Return the jobs that produce an asset or wait for it."""
    rows = await connection.fetch(sql("uses_of_asset"), tenant_id, asset_id)
    return [
        UseRow(
            AssetRole(row["role"]),
            row["job_id"],
            row["job"],
            row["node"] or None,
            row["is_workflow"],
            row["is_paused"],
            row["is_any"],
            row["pending"],
        )
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class UpdateRow:
    """An update of an asset. `started` are the instances that were started with it."""

    id: int
    at: datetime
    job: str | None
    instance_id: int | None
    run_id: int | None
    node: str | None
    interval_start: datetime | None
    interval_end: datetime | None
    metadata: str | None
    actor: str | None
    started: list[int]


LAST_UPDATE = 2**63 - 1
"""The cursor of the first page of updates."""


async def updates_of_asset(
    connection: TenantRead, tenant_id: int, asset_id: int, before: int, limit: int
) -> list[UpdateRow]:
    """Return a page of the updates of an asset, newest first, with ids below `before`."""
    rows = await connection.fetch(sql("updates_of_asset"), tenant_id, asset_id, before, limit)
    return [UpdateRow(*row.values()) for row in rows]
