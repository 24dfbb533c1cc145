"""The uses of assets by a job, stored whenever its definition is written."""

from horai.core.assets import AssetRole, assets_of
from horai.core.errors import Invalid
from horai.core.job import is_builtin
from horai.db.jobs import JobRow
from horai.db.pool import TenantWrite
from horai.features.assets import store
from horai.features.assets.rules import circle_through, may_carry
from horai.features.assets.store import AssetUse
from horai.text import Hint, Wrong

MOST_SHOWN = 12
"""Names of a circle that an error shows."""


async def keep_uses(connection: TenantWrite, job: JobRow) -> None:
    """Store what a job or the nodes of a workflow produce, and what it waits for.

    Raises `Invalid` if jobs and assets would wait for one another in a circle, and for a payload that cannot carry updates.
    """
    own = assets_of(job.document)
    is_workflow = is_builtin(job.document)
    if not own.produces and not own.waits and job.version == 1 and not is_workflow:
        return  # a new job, without assets
    wished: frozenset[AssetUse] = frozenset(AssetUse(AssetRole.PRODUCES, name) for name in own.produces)
    wished |= {AssetUse(AssetRole.WAITS, name) for name in own.waits}
    if is_workflow:
        wished |= await store.node_assets_of_job(connection, job.id)
    known, was_any = await store.uses_of_job(connection, job.id)
    if own.waits and not may_carry(job.payload):
        raise Invalid.field("payload", Wrong.ASSET_PAYLOAD())
    if known != wished or was_any != own.is_any:
        await store.lock_asset_uses(connection, job.tenant_id)
        await store.keep_asset_uses(connection, job.tenant_id, job.id, wished, is_any=own.is_any)
    elif not wished and not is_workflow:
        return
    await _refuse_circle(connection, job)


async def _refuse_circle(connection: TenantWrite, job: JobRow) -> None:
    edges = await store.asset_edges(connection, job.tenant_id)
    if (circle := circle_through(job.name, edges)) is not None:
        names = [name.removeprefix(":") for name in circle[:MOST_SHOWN]]
        shown = " → ".join([*names, "…"] if len(circle) > MOST_SHOWN else names)
        raise Invalid.field("when", Wrong.CIRCLE(circle=shown), Hint.BREAK_ASSET_CIRCLE())
