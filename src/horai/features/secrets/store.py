"""Targets and sources with secrets that are not sealed: one function per statement of store.sql."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from horai.db.catalog import sql
from horai.db.pool import Platform


@dataclass(frozen=True, slots=True)
class PlainDocument:
    """A job's definition or a reconciler's source, and the version at which it was read."""

    id: int
    tenant_id: int
    name: str
    version: int
    document: Mapping[str, Any]


async def plain_targets(connection: Platform, after: int, limit: int) -> list[PlainDocument]:
    """Return a page of jobs by id whose target may have secrets that are not sealed."""
    rows = await connection.fetch(sql("plain_targets"), after, limit)
    return [_plain(*row.values()) for row in rows]


async def plain_sources(connection: Platform, after: int, limit: int) -> list[PlainDocument]:
    """Return a page of reconcilers by id whose source may have secrets that are not sealed."""
    rows = await connection.fetch(sql("plain_sources"), after, limit)
    return [_plain(*row.values()) for row in rows]


def _plain(row_id: int, tenant_id: int, name: str, version: int, document: str) -> PlainDocument:
    return PlainDocument(row_id, tenant_id, name, version, json.loads(document))


async def store_sealed_target(connection: Platform, plain: PlainDocument, document: Mapping[str, Any]) -> None:
    """Store the definition of a job, unless the job was changed since it was read."""
    await _store(connection, "store_sealed_target", plain, document)


async def store_sealed_source(connection: Platform, plain: PlainDocument, source: Mapping[str, Any]) -> None:
    """Store the source of a reconciler, unless it was changed since it was read."""
    await _store(connection, "store_sealed_source", plain, source)


async def _store(connection: Platform, name: str, plain: PlainDocument, document: Mapping[str, Any]) -> None:
    text = json.dumps(document, ensure_ascii=False)
    await connection.execute(sql(name), plain.id, plain.tenant_id, plain.version, text)
