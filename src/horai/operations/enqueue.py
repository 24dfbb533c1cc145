"""Instances without a key, created by the name of their job: the shortest way to insert one."""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime

from horai.core.errors import Duplicate, HoraiError, Invalid
from horai.core.sealed_values import SealedColumn
from horai.core.wakes import LaneWake
from horai.db import instances, jobs
from horai.db.claims import Claimable
from horai.db.instances import MadeInstance, SealedPaths, Unkeyed
from horai.db.pool import AnyRead, AnyWrite
from horai.operations import request_keys
from horai.operations.keyring import Keyring
from horai.operations.request_keys import Once
from horai.operations.scope import Scope, job_not_found
from horai.operations.sealed_values import SealedJob, seal_texts
from horai.text import Hint, Wrong


async def enqueue_within(
    connection: AnyWrite,
    tenant_id: int,
    job: str,
    items: Sequence[Unkeyed],
    *,
    sealed: SealedPaths = None,
    keyring: Keyring | None = None,
) -> list[Claimable]:
    """Insert all items in one statement. The caller publishes the wakes. An encrypted job needs the `keyring`.

    The rows are durable when this returns, unless the caller has a transaction open.
    """
    if sealed is not None:
        own = SealedJob(tenant_id, job, sealed)
        made = await _enqueue_sealed(connection, own, items, keyring or Keyring())
    elif len(items) == 1:
        one = await instances.enqueue_one(connection, tenant_id, job, items[0])
        made = [] if one is None else [one]
    else:
        made = await instances.enqueue(connection, tenant_id, job, items)
    if items:
        await require_known(connection, tenant_id, job, made, sealed=sealed)
    return made


async def require_known(
    connection: AnyRead, tenant_id: int, job: str, made: Sequence[object], *, sealed: SealedPaths = None
) -> None:
    """Raise the error for a job of which nothing was made: it does not exist, or it is declared otherwise here."""
    if not made:
        raise await _not_found(connection, tenant_id, job, sealed)


async def _enqueue_sealed(
    connection: AnyWrite, job: SealedJob, items: Sequence[Unkeyed], keyring: Keyring
) -> list[Claimable]:
    async with connection.transaction():
        payloads = await seal_texts(connection, keyring, job, SealedColumn.PAYLOAD, [payload for _, payload in items])
        sealed = [(at, payload) for (at, _), payload in zip(items, payloads, strict=True)]
        return await instances.enqueue(connection, job.tenant_id, job.name, sealed, sealed=job.search_paths)


async def _not_found(connection: AnyRead, tenant_id: int, job: str, sealed: SealedPaths) -> HoraiError:
    """Return the error for a job that was not found: it does not exist, or it is declared otherwise here."""
    found = await jobs.find_job(connection, tenant_id, job)
    if found is None or found.name != job:
        return job_not_found(job)
    if found.is_encrypted and sealed is not None:
        paths = ", ".join(found.search_paths) or "-"
        return Invalid.field("searchPaths", Wrong.OTHER_SEARCH_PATHS(paths=paths), Hint.DECLARE_SEARCH_PATHS())
    told = Wrong.IS_ENCRYPTED() if found.is_encrypted else Wrong.IS_NOT_ENCRYPTED()
    return Invalid.field("encrypted", told, Hint.DECLARE_ENCRYPTED())


async def enqueue_many(
    scope: Scope,
    job: str,
    at: datetime | None,
    payloads: Iterable[Sequence[str | None]],
    *,
    sealed: SealedPaths = None,
) -> list[int]:
    """Insert batch after batch of payloads, all or none. Prepare the next batch while one is written."""
    made: list[MadeInstance | None] = []
    async with scope.write() as connection:
        writing: asyncio.Task[MadeInstance | None] | None = None
        try:
            for batch in payloads:
                if writing is not None:
                    made.append(await writing)
                if sealed is not None:
                    own = SealedJob(scope.tenant_id, job, sealed)
                    batch = await seal_texts(connection, scope.keyring, own, SealedColumn.PAYLOAD, batch)  # noqa: PLW2901
                writing = asyncio.create_task(
                    instances.enqueue_many(connection, scope.tenant_id, job, at, batch, sealed=sealed)
                )
                await asyncio.sleep(0)  # start it before the next batch is prepared
        finally:
            if writing is not None:
                made.append(await writing)
        if None in made:
            raise await _not_found(connection, scope.tenant_id, job, sealed)
    written = [one for one in made if one is not None]
    for lane in {one.lane for one in written}:
        scope.wakeups.publish(LaneWake(None, lane, min(one.due for one in written if one.lane == lane)))
    made_ids = [instance_id for one in written for instance_id in one.ids]
    if scope.wakeups.on_made is not None:
        scope.wakeups.on_made(made_ids)
    return made_ids


async def enqueue_once(
    scope: Scope, job: str, item: Unkeyed, once: Once, *, sealed: SealedPaths = None
) -> tuple[int, bool]:
    """Insert one instance per idempotency key. Return its id, and whether this call created it."""
    woken: list[Claimable] = []
    async with scope.write() as connection:
        request = request_keys.request_key(scope, f"enqueue:{job}", once)
        if await request_keys.take(connection, scope, request):
            woken = await enqueue_within(connection, scope.tenant_id, job, [item], sealed=sealed, keyring=scope.keyring)
            await request_keys.bind(connection, request, await instances.job_of(connection, woken[0].id), woken[0].id)
    if woken:
        scope.wakeups.announce_new(woken)
        return woken[0].id, True
    first = await request_keys.duplicate_of(scope, request)
    if not isinstance(first, Duplicate) or (made := first.extra.get("instanceId")) is None:
        raise first
    return int(made), False
