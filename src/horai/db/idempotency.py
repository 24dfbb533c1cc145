"""Idempotency keys: one function per statement of sql/idempotency.sql."""

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from horai.core.limits import KEPT_ANSWER_BYTES, KEPT_KEYS
from horai.db.catalog import sql
from horai.db.pool import AnyRead, AnyWrite, Platform, TenantWrite


@dataclass(frozen=True, slots=True)
class RequestKey:
    """The idempotency key of a request, and the SHA-256 of its body."""

    tenant_id: int
    scope: str
    key: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """The stored answer to a request, which a repeated request receives."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class First:
    """The first request with a key, the stored digest of its body, what it created, and its stored answer."""

    digest: bytes
    job_id: int | None
    instance_id: int | None
    answer: KeptAnswer | None = None


async def take_key(connection: AnyWrite, request: RequestKey, digest: bytes) -> bool:
    """Take the key; return False if another request has it, or if the tenant has reached its limit of keys or bytes.

    `digest` is stored, to recognise the body of a repeat.

    Waits for a concurrent request with the same key to commit or to fail, at most the connection's lock_timeout.
    """
    named = (request.tenant_id, request.scope, request.key, digest)
    return await connection.fetchval(sql("take_key"), *named, KEPT_KEYS, KEPT_ANSWER_BYTES) is not None


async def bind_key(connection: TenantWrite, request: RequestKey, job_id: int, instance_id: int | None) -> None:
    """Store the job and the instance that the first request created."""
    await connection.execute(sql("bind_key"), request.tenant_id, request.scope, request.key, job_id, instance_id)


async def keep_answer(connection: AnyWrite, request: RequestKey, answer: KeptAnswer) -> None:
    """Store the answer in the row of the key, compressed: a batch of 10,000 is answered with up to 1 MB."""
    body = zlib.compress(answer.body, 1)
    named = (request.tenant_id, request.scope, request.key)
    await connection.execute(
        sql("keep_answer"), *named, answer.status, json.dumps(dict(answer.headers)), body, len(body)
    )


async def key_holder(connection: AnyRead, request: RequestKey) -> First | None:
    """Return the first request with this key, or None."""
    row = await connection.fetchrow(sql("key_holder"), request.tenant_id, request.scope, request.key)
    if row is None:
        return None
    digest, job_id, instance_id, status, headers, body = row
    kept = None if status is None else KeptAnswer(status, json.loads(headers), zlib.decompress(body))
    return First(digest, job_id, instance_id, kept)


async def forget_keys(connection: Platform, older_than: timedelta, limit: int) -> int:
    """Delete up to `limit` keys that are older than `older_than`, oldest first; return how many were deleted."""
    return await connection.fetchval(sql("forget_keys"), older_than, limit)


async def count_keys(connection: Platform) -> None:
    """Store the number of keys and the bytes of answers of each tenant."""
    await connection.execute(sql("count_keys"))
