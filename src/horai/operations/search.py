"""Search in encrypted jobs: instances are found by the digest of a value at a declared path."""

from horai.core.errors import Forbidden, Invalid
from horai.core.roles import AccessRole
from horai.core.sealed_values import place_of_search
from horai.db import payload_digests
from horai.db.instance_lists import PayloadField
from horai.db.jobs import JobRow
from horai.operations.readable_values import may_read
from horai.operations.scope import Scope
from horai.text import Hint, Refused, Wrong

MOST_FOUND = 5_000
"""The most instances that may have one value: all of them are looked up for each page."""


async def instances_with(scope: Scope, job: JobRow, field: PayloadField) -> tuple[int, ...]:
    """Return the instances of an encrypted job whose payload has this value.

    Raises `Invalid` if the path is not declared or more than `MOST_FOUND` instances have the value, `Forbidden` for a
    caller who may not see payloads of encrypted jobs, and `KeyUnavailable` if this process lacks a key of the tenant.
    """
    path = ".".join(field.path)
    if path not in job.search_paths:
        declared = Hint.FILTER_DECLARED(paths=", ".join(job.search_paths))
        hint = declared if job.search_paths else Hint.FILTER_OTHERWISE()
        raise Invalid.field("payload", Wrong.PAYLOAD_SEALED(path=path[:60], job=job.name), hint)
    if not may_read(scope):
        needed = AccessRole.OPERATOR
        raise Forbidden(Refused.ROLE_TOO_LOW(role=scope.actor.role, needed=needed), Hint.ASK_FOR_ROLE(needed=needed))
    place, number = place_of_search(job.name, path), job.search_paths.index(path) + 1
    async with scope.read() as connection:
        digests = await scope.keyring.digests(connection, scope.tenant_id, place, field.value.encode())
        wanted = (scope.tenant_id, job.id, number, digests)
        found = await payload_digests.instances_with_digest(connection, *wanted, MOST_FOUND + 1)
    if len(found) > MOST_FOUND:
        raise Invalid.field("payload", Wrong.TOO_COMMON(most=MOST_FOUND), Hint.FILTER_RARER())
    return tuple(found)
