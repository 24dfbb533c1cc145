"""Requests that must take effect once: the first request of a key applies, and repeats learn its result.

Bodies may have secrets. The database keeps only the keyed digest of a body, or its SHA-256 if the process has no encryption
key for the tenant: then the secrets themselves are stored as they are. Both are recognised in a repeat.
"""

import hashlib
import hmac
from dataclasses import dataclass

import asyncpg

from horai.core.encryption import Place, key_of_digest
from horai.core.errors import Conflict, Duplicate, Invalid, RetryLimited
from horai.core.limits import KEPT_ANSWER_BYTES, KEPT_KEYS
from horai.core.settings import EngineSettings
from horai.db import idempotency, instance_queries, jobs
from horai.db.idempotency import First, RequestKey
from horai.db.pool import AnyRead, AnyWrite, Plans, TenantRead, TenantWrite
from horai.operations.scope import AnyScope, Scope
from horai.text import Hint, Refused, Wrong

KEY_LIMIT = 255
BODY: Place = ("request body",)


@dataclass(frozen=True, slots=True)
class Once:
    """The caller's `Idempotency-Key` and the body it came with."""

    key: str
    body: bytes


def check_request_key(key: str) -> str:
    """Return a valid `Idempotency-Key`; raise `Invalid` otherwise."""
    if not 0 < len(key) <= KEY_LIMIT or not key.isprintable() or not key.isascii():
        raise Invalid.field("Idempotency-Key", Wrong.PRINTABLE(most=KEY_LIMIT))
    return key


def request_key(scope: AnyScope, verb: str, once: Once) -> RequestKey:
    """Return the stored form of a key. The same key may be used once for each verb and object."""
    check_request_key(once.key)
    return RequestKey(scope.tenant_id, verb, once.key, hashlib.sha256(once.body).digest())


async def take(connection: AnyWrite, scope: AnyScope, request: RequestKey | None) -> bool:
    """Return whether to continue: True for the first request of its key, and for a request without a key.

    If the first request is in flight, wait for it, at most the connection's lock_timeout, then raise `Conflict`.
    """
    if request is None:
        return True
    digest = await scope.keyring.digest(connection, scope.tenant_id, BODY, request.digest)
    try:
        is_first = await idempotency.take_key(connection, request, digest or request.digest)
    except asyncpg.LockNotAvailableError as error:
        raise Conflict(Refused.KEY_IN_FLIGHT(key=request.key), Hint.REPEAT_SOON(), extra={"retryAfter": "1"}) from error
    if not is_first and await idempotency.key_holder(connection, request) is None:
        raise too_many_keys()
    return is_first


async def has_its_body(connection: AnyRead, scope: AnyScope, request: RequestKey, first: First) -> bool:
    """Return whether the request repeats the body of the first one.

    Raises `KeyUnavailable` if the digest of the first body cannot be checked, because its data key was erased.
    """
    if key_of_digest(first.digest) is None:
        return hmac.compare_digest(first.digest, request.digest)
    return await scope.keyring.has_digest(connection, scope.tenant_id, BODY, request.digest, first.digest)


def too_many_keys() -> RetryLimited:
    """Return the error for a tenant that has as many keys as are kept."""
    days, gigabytes = EngineSettings().idempotency_keep.days, KEPT_ANSWER_BYTES // 1024**3
    return RetryLimited(
        Refused.KEYS_FULL(most=KEPT_KEYS, gigabytes=gigabytes, days=days),
        Hint.KEYS_EXPIRE(),
        extra={"retryAfter": "3600"},
    )


async def bind(connection: TenantWrite, request: RequestKey | None, job_id: int, instance_id: int | None) -> None:
    """Store what the first request created."""
    if request is not None:
        await idempotency.bind_key(connection, request, job_id, instance_id)


def another_body(request: RequestKey) -> Invalid:
    """Return the error for a key that was used before with another body."""
    return Invalid(
        Refused.KEY_OTHER_BODY(key=request.key),
        Hint.NEW_KEY(),
    )


async def duplicate_of(scope: Scope, request: RequestKey) -> Duplicate | Invalid:
    """Return the error for a repeated request: what the first one created, or that its body was different."""
    async with scope.read(Plans.KEPT) as connection:
        first = await idempotency.key_holder(connection, request)
        if first is not None and not await has_its_body(connection, scope, request, first):
            return another_body(request)
        return Duplicate(
            Refused.KEY_USED(key=request.key),
            Hint.NOTHING_AGAIN(),
            extra={"idempotencyKey": request.key, **await _made_by(connection, request, first)},
        )


async def _made_by(connection: TenantRead, request: RequestKey, first: First | None) -> dict[str, str | None]:
    if first is None or first.job_id is None:
        return {}
    if first.instance_id is not None:
        instance = await instance_queries.instance_by_id(connection, request.tenant_id, first.instance_id)
        state = instance.state.name if instance else None
        return {"jobId": str(first.job_id), "instanceId": str(first.instance_id), "state": state}
    job = await jobs.find_job(connection, request.tenant_id, str(first.job_id))
    return {"jobId": str(first.job_id), "state": job.status.name if job else None}
