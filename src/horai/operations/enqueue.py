"""Instances without a key, created by the name of their job: the shortest way to insert one."""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime

from horai.core.call_settings import NO_SETTINGS, CallSettings
from horai.core.errors import Duplicate, HoraiError, Invalid
from horai.core.sealed_values import SealedColumn
from horai.core.wakes import LaneWake
from horai.db import concurrency_keys, instances, jobs
from horai.db.claims import Claimable
from horai.db.instances import MadeInstance, SealedPaths, Unkeyed
from horai.db.pool import AnyRead, AnyWrite, TenantWrite, retrying
from horai.operations import request_keys
from horai.operations.call_settings import apply_settings, place_calls
from horai.operations.instances import find_place, publish_wakes
from horai.operations.keyring import Keyring
from horai.operations.put import PutResult
from horai.operations.request_keys import Once
from horai.operations.scope import Scope, job_not_found
from horai.operations.sealed_values import SealedJob, seal_texts
from horai.operations.windowed_calls import WindowedCall, add_windowed, call_digests
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
    is_new = found is not None and not found.is_encrypted and sealed is None  # another process has created it since
    if found is None or found.name != job or is_new:
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
    keys: Sequence[str] | None = None,
) -> list[int]:
    """Insert batch after batch of payloads, all or none. Prepare the next batch while one is written.

    With `keys`, each instance has a concurrency key.
    """
    made: list[MadeInstance | None] = []
    count = 0
    async with scope.write() as connection:
        writing: asyncio.Task[MadeInstance | None] | None = None
        try:
            for batch in payloads:
                if writing is not None:
                    made.append(await writing)
                if sealed is not None:
                    own = SealedJob(scope.tenant_id, job, sealed)
                    batch = await seal_texts(connection, scope.keyring, own, SealedColumn.PAYLOAD, batch)  # noqa: PLW2901
                own_keys, count = keys and keys[count : count + len(batch)], count + len(batch)
                writing = asyncio.create_task(_write_batch(connection, scope, job, at, batch, own_keys, sealed))
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


async def _write_batch(
    connection: TenantWrite,
    scope: Scope,
    job: str,
    at: datetime | None,
    payloads: Sequence[str | None],
    keys: Sequence[str] | None,
    sealed: SealedPaths,
) -> MadeInstance | None:
    if keys is None:
        return await instances.enqueue_many(connection, scope.tenant_id, job, at, payloads, sealed=sealed)
    return await concurrency_keys.enqueue_with_keys(connection, scope.tenant_id, job, at, payloads, keys, sealed=sealed)


async def enqueue_once(
    scope: Scope,
    job: str,
    item: Unkeyed,
    once: Once,
    *,
    sealed: SealedPaths = None,
    settings: CallSettings = NO_SETTINGS,
) -> tuple[int, bool]:
    """Insert one instance per idempotency key. Return its id, and whether this call created it."""
    woken: list[Claimable] = []
    async with scope.write() as connection:
        request = request_keys.request_key(scope, f"enqueue:{job}", once)
        if await request_keys.take(connection, scope, request):
            at, payload = item
            woken = await _with_settings(connection, scope, job, at, [payload], [settings], sealed)
            await request_keys.bind(connection, request, await instances.job_of(connection, woken[0].id), woken[0].id)
    if woken:
        scope.wakeups.announce_new(woken)
        return woken[0].id, True
    first = await request_keys.duplicate_of(scope, request)
    if not isinstance(first, Duplicate) or (made := first.extra.get("instanceId")) is None:
        raise first
    return int(made), False


async def enqueue_with_settings(
    scope: Scope,
    job: str,
    at: datetime | None,
    payloads: Iterable[Sequence[str | None]],
    settings: Sequence[CallSettings],
    *,
    sealed: SealedPaths = None,
) -> list[int]:
    """Insert batch after batch of payloads with their settings, all or none. Return the ids in order."""
    keys = [own.concurrency_key for own in settings if own.concurrency_key is not None]
    if len(keys) == len(settings) > 1 and not any(own.is_placed for own in settings):
        return await enqueue_many(scope, job, at, payloads, sealed=sealed, keys=keys)
    made: list[Claimable] = []
    async with scope.write() as connection:
        for batch in payloads:
            own = settings[len(made) : len(made) + len(batch)]
            made += await _with_settings(connection, scope, job, at, batch, own, sealed)
    scope.wakeups.announce_new(made)
    return [row.id for row in made]


async def _with_settings(
    connection: TenantWrite,
    scope: Scope,
    job: str,
    at: datetime | None,
    payloads: Sequence[str | None],
    settings: Sequence[CallSettings],
    sealed: SealedPaths,
) -> list[Claimable]:
    keys = [each.concurrency_key for each in settings]
    if all(key is None for key in keys):
        items = [(at, payload) for payload in payloads]
        made = await enqueue_within(connection, scope.tenant_id, job, items, sealed=sealed, keyring=scope.keyring)
    else:
        made = await _keyed_within(connection, scope, job, at, payloads, [key or "" for key in keys], sealed)
    placed = await place_calls(connection, {row.id: own for row, own in zip(made, settings, strict=True)}, are_new=True)
    return [placed.get(row.id, row) for row in made]


async def _keyed_within(
    connection: TenantWrite,
    scope: Scope,
    job: str,
    at: datetime | None,
    payloads: Sequence[str | None],
    keys: Sequence[str],
    sealed: SealedPaths,
) -> list[Claimable]:
    if sealed is not None:
        own = SealedJob(scope.tenant_id, job, sealed)
        payloads = await seal_texts(connection, scope.keyring, own, SealedColumn.PAYLOAD, payloads)
    made = await concurrency_keys.enqueue_with_keys(connection, scope.tenant_id, job, at, payloads, keys, sealed=sealed)
    if made is None:
        raise await _not_found(connection, scope.tenant_id, job, sealed)
    return [Claimable(id_, made.lane, made.due) for id_ in made.ids]


async def enqueue_calls(scope: Scope, job: str, calls: Sequence[WindowedCall]) -> list[PutResult]:
    """Add calls with windows, all or none. Return the decisions and the instances that stand for them, in order."""

    async def attempt() -> list[PutResult]:
        async with scope.write() as connection:
            place = await find_place(connection, scope, job)
            answers = await add_windowed(connection, scope, place, calls)
            return await apply_settings(connection, place, answers, [call.settings for call in calls])

    made = await retrying(attempt)
    publish_wakes(scope, made)
    return made


async def digests_of_calls(scope: Scope, job: str, payloads: Sequence[str | None]) -> list[bytes | None]:
    """Return the digests of arguments, for a transaction of the caller; None where the database computes it."""
    async with scope.write() as connection:
        place = await find_place(connection, scope, job)
        return await call_digests(connection, scope.keyring, place, payloads)
