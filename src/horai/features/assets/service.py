"""Assets by request: list, show with their updates, and update from outside."""

from dataclasses import dataclass

from horai.core.assets import METADATA_LIMIT
from horai.core.audit import AuditVerb
from horai.core.errors import Invalid, NotFound
from horai.core.limits import KEY_LIMIT
from horai.core.wakes import AssetsWake
from horai.features.assets import store
from horai.features.assets.rules import AssetEdge
from horai.features.assets.store import AssetRow, OutsideUpdate, UpdateRow, UseRow
from horai.operations import audit
from horai.operations.scope import Scope
from horai.text import Hint, Refused, Wrong


@dataclass(frozen=True, slots=True)
class AssetView:
    """An asset with the jobs that use it and a page of its updates, newest first."""

    row: AssetRow
    uses: list[UseRow]
    updates: list[UpdateRow]


async def list_assets(scope: Scope, after: str, limit: int) -> list[AssetRow]:
    """Return a page of the tenant's assets by name."""
    async with scope.read() as connection:
        return await store.list_assets(connection, scope.tenant_id, after, limit)


async def asset_graph(scope: Scope) -> list[AssetEdge]:
    """Return what follows what: jobs, workflows and assets, whose names have a colon in front."""
    async with scope.read() as connection:
        return await store.asset_edges(connection, scope.tenant_id)


async def read_asset(scope: Scope, name: str, before: int, limit: int) -> AssetView:
    """Return an asset with updates whose ids are below `before`. Raises `NotFound` if there is none of this name."""
    async with scope.read() as connection:
        rows = [] if "\x00" in name else await store.list_assets(connection, scope.tenant_id, "", 1, name)
        if not rows:
            raise _not_found(name)
        uses = await store.uses_of_asset(connection, scope.tenant_id, rows[0].id)
        updates = await store.updates_of_asset(connection, scope.tenant_id, rows[0].id, before, limit)
    return AssetView(rows[0], uses, updates)


async def update_asset(scope: Scope, name: str, update: OutsideUpdate) -> tuple[int, bool]:
    """Record an update from outside; return its id, and False if its request key has made it before."""
    _check(update)
    async with scope.write() as connection:
        made = None
        if "\x00" not in name:
            made = await store.note_asset_update(connection, scope.tenant_id, name, update, scope.actor.name)
        if made is None:
            raise _not_found(name)
        if made[1]:
            await audit.record_write(connection, scope, AuditVerb.ASSET_UPDATE, made[0], name)
    scope.wakeups.publish(AssetsWake())
    return made


def _check(update: OutsideUpdate) -> None:
    if len((update.metadata or "").encode()) > METADATA_LIMIT:
        raise Invalid.field("metadata", Wrong.LONGER_THAN_BYTES(most=METADATA_LIMIT), Hint.KEEP_METADATA_SHORT())
    start, end = update.interval_start, update.interval_end
    if (start is None) is not (end is None) or (start is not None and end is not None and end < start):
        raise Invalid.field("interval", Wrong.HALF_INTERVAL(), Hint.GIVE_INTERVAL())
    if update.request_key is not None and not 1 <= len(update.request_key) <= KEY_LIMIT:
        raise Invalid.field("idempotency_key", Wrong.PRINTABLE(most=KEY_LIMIT))


def _not_found(name: str) -> NotFound:
    return NotFound(Refused.NO_ASSET(name=name[:128]), Hint.DECLARE_ASSET())
