"""Requests that must take effect once: the first of a key stands, the others learn what it made."""

import hashlib
from dataclasses import dataclass

from horai.accept.scope import Scope
from horai.core.errors import Duplicate, Invalid
from horai.core.wording import Hint, Refused, Wrong
from horai.db import idempotency, jobs, reads
from horai.db.idempotency import First, RequestKey
from horai.db.pool import Connection, Plans, Pool, acquire

KEY_LIMIT = 255


@dataclass(frozen=True, slots=True)
class Once:
    """The caller's `Idempotency-Key` and the body it came with."""

    key: str
    body: bytes


def request_key(scope: Scope, verb: str, once: Once) -> RequestKey:
    """The stored form of a key; the same key may be used once for each verb and object."""
    if not 0 < len(once.key) <= KEY_LIMIT or not once.key.isprintable() or not once.key.isascii():
        raise Invalid.field("Idempotency-Key", Wrong.PRINTABLE(most=KEY_LIMIT))
    return RequestKey(scope.tenant_id, verb, once.key, hashlib.sha256(once.body).digest())


async def take(connection: Connection, request: RequestKey | None) -> bool:
    """Whether to go on: True for the first request of its key, and for one that brought none."""
    return request is None or await idempotency.take_key(connection, request)


async def bind(connection: Connection, request: RequestKey | None, job_id: int, instance_id: int | None) -> None:
    """Remembers what the first request made."""
    if request is not None:
        await idempotency.bind_key(connection, request, job_id, instance_id)


def another_body(request: RequestKey) -> Invalid:
    """What a request is told that uses the key of one that asked for something else."""
    return Invalid(
        Refused.KEY_OTHER_BODY(key=request.key),
        Hint.NEW_KEY(),
    )


async def duplicate_of(pool: Pool, request: RequestKey) -> Duplicate | Invalid:
    """What a repeated request is told: what the first one made, or that it asked for something else."""
    async with acquire(pool, Plans.KEPT) as connection:
        first = await idempotency.key_holder(connection, request)
        if first is not None and first.digest != request.digest:
            return another_body(request)
        return Duplicate(
            Refused.KEY_USED(key=request.key),
            Hint.NOTHING_AGAIN(),
            extra={"idempotencyKey": request.key, **await _made_by(connection, request, first)},
        )


async def _made_by(connection: Connection, request: RequestKey, first: First | None) -> dict[str, str | None]:
    if first is None or first.job_id is None:
        return {}
    if first.instance_id is not None:
        instance = await reads.instance_by_id(connection, request.tenant_id, first.instance_id)
        state = instance.state.name if instance else None
        return {"jobId": str(first.job_id), "instanceId": str(first.instance_id), "state": state}
    job = await jobs.find_job(connection, request.tenant_id, str(first.job_id))
    return {"jobId": str(first.job_id), "state": job.status.name if job else None}
