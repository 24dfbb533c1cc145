"""Digests of declared fields of encrypted payloads: one function per statement of sql/payload_digests.sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from horai.core.sealed_values import parted
from horai.db.catalog import sql
from horai.db.pool import AnyWrite, Platform, TenantRead

Position = tuple[int, int, int]
"""A row of the index: instance, job and path."""
BEGINNING: Position = (-1, 0, 0)


class IndexedPayload(NamedTuple):
    """The payload of a live instance to index: its digests, or the instance whose payload it has (0: the job's)."""

    instance_id: int
    digests: str | None
    source: int = 0


@dataclass(frozen=True, slots=True)
class PartedPayloads:
    """Payloads as they are stored. Those of a job with search paths are indexed after they are stored."""

    texts: Sequence[str | None]
    digests: Sequence[str | None] | None = None
    sources: Sequence[int | None] = ()

    async def index(self, connection: AnyWrite, instance_ids: Sequence[int | None]) -> None:
        """Index the payloads of instances, given in the order of the payloads; None: its payload was not stored."""
        if self.digests is None:
            return
        rows = zip(instance_ids, self.digests, self.sources, strict=True)
        made = [IndexedPayload(id_, digests, source or 0) for id_, digests, source in rows if id_ is not None]
        if made:
            await index_payloads(connection, made)


def part_payloads(payloads: Sequence[str | None], sources: Sequence[int | None] = ()) -> PartedPayloads:
    """Return payloads of a job with search paths apart from their digests.

    `sources` are the instances that payloads were copied from. Raises an error, instead of storing it, if a payload has
    no digests and was not copied.
    """
    sources = sources or [None for _ in payloads]
    parts = [parted(payload) for payload in payloads]
    for part, source in zip(parts, sources, strict=True):
        if part.text is not None and part.digests is None and source is None:
            raise RuntimeError("a payload of a job with search paths has no digests")
    return PartedPayloads([part.text for part in parts], [part.digests for part in parts], sources)


async def index_payloads(connection: AnyWrite, payloads: Sequence[IndexedPayload]) -> None:
    """Index the payloads of instances that the caller's transaction has inserted or changed."""
    ids, digests = [one.instance_id for one in payloads], [one.digests for one in payloads]
    await connection.execute(sql("index_payloads"), ids, digests, [one.source for one in payloads])


async def index_job_payload(connection: AnyWrite, job_id: int, digests: str | None) -> None:
    """Index the payload of a job that the caller has locked; None if the job has no payload any more."""
    await connection.execute(sql("index_job_payload"), job_id, digests)


async def instances_with_digest(
    connection: TenantRead, tenant_id: int, job_id: int, path: int, digests: Sequence[bytes], limit: int
) -> list[int]:
    """Return up to `limit` instances of a job with one of the digests at the path of this number, which begins at 1."""
    rows = await connection.fetch(sql("instances_with_digest"), tenant_id, job_id, path, list(digests), limit)
    return [row["instance_id"] for row in rows]


async def wipe_payload_digests(connection: Platform, tenant_id: int) -> None:
    """Delete the digests of a tenant, whose data keys the caller's transaction has erased."""
    await connection.execute(sql("wipe_payload_digests"), tenant_id)


async def prune_payload_digests(connection: Platform, after: Position, limit: int) -> Position:
    """Delete the rows of a page whose instance or data key is gone. Return where the next page begins."""
    row = await connection.fetchrow(sql("prune_payload_digests"), *after, limit)
    return BEGINNING if row is None or row["rows"] < limit else (row["instance_id"], row["job_id"], row["path"])
