"""Hooks of assets into the life cycle of a job."""

from horai.db.pool import AnyRead
from horai.features.assets.store import clear_asset_uses, has_asset_uses
from horai.features.assets.uses import keep_uses
from horai.operations.job_hooks import JobHooks


async def _is_clear(connection: AnyRead, job_id: int) -> bool:
    return not await has_asset_uses(connection, job_id)


HOOKS = JobHooks(written=keep_uses, clear=clear_asset_uses, is_clear=_is_clear)
