"""Hooks of rolling refresh into the life cycle of a job: its entities are deleted with it."""

from horai.db.pool import AnyRead
from horai.features.refresh import store
from horai.operations.job_hooks import JobHooks


async def _is_clear(connection: AnyRead, job_id: int) -> bool:
    return not await store.has_entities(connection, job_id)


HOOKS = JobHooks(clear=store.clear_entities, is_clear=_is_clear)
