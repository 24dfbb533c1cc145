"""Payloads of new instances, sealed if their job is encrypted."""

from collections.abc import Sequence

from horai.core.sealed_values import SealedColumn
from horai.db.instances import InsertTarget
from horai.db.pool import TenantWrite
from horai.operations.scope import Scope
from horai.operations.sealed_values import SealedJob, seal_texts


async def sealed_payloads(
    connection: TenantWrite, scope: Scope, place: InsertTarget, payloads: Sequence[str | None]
) -> Sequence[str | None]:
    """Return the payloads of new instances as they are stored. Call it in the transaction that stores them."""
    if place.sealed_for is None:
        return payloads
    job = SealedJob(place.tenant_id, place.sealed_for, place.search_paths)
    return await seal_texts(connection, scope.keyring, job, SealedColumn.PAYLOAD, payloads)
