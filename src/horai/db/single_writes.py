"""Single writes over REST: one function per statement of sql/single_writes.sql."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import asyncpg

from horai.core.actor import Actor
from horai.core.audit import AuditVerb
from horai.core.limits import KEPT_ANSWER_BYTES, KEPT_KEYS, SHARDS
from horai.core.shards import Role
from horai.db.audit import json_of
from horai.db.catalog import sql
from horai.db.claims import Claimable
from horai.db.instance_queries import InstanceRow, instance_of
from horai.db.jobs import JobReference
from horai.db.pool import TenantWrite, milliseconds


class FreshPut(NamedTuple):
    """The put of a key that may have no instance yet. No time means now, by the clock of the database."""

    key: str
    at: datetime | None
    payload: str | None
    version: int | None


class AuditedTrigger(NamedTuple):
    """A trigger with an Idempotency-Key that may be new, and the values of its row in the audit log."""

    key: str
    digest: bytes
    """Stored to recognise the body of a repeat."""
    payload: str | None
    actor: Actor
    after: Mapping[str, Any]
    """The masked values of the audit log. The id of the instance is added to them, before the others."""


@dataclass(frozen=True, slots=True)
class FreshRow:
    """A row that one of the statements has inserted."""

    woken: Claimable
    instance: InstanceRow


async def insert_fresh(
    connection: TenantWrite, tenant_id: int, job: JobReference, puts: Sequence[FreshPut], patience: timedelta
) -> dict[str, FreshRow]:
    """Insert instances of keys that have neither a live instance nor a past; other keys are absent. `puts` has each key once.

    Returns nothing if there is no such job, if it is encrypted or metered, or if an instance of a key ended meanwhile. `patience`
    limits the wait for each lock. The connection must have no transaction.
    """
    keys, times, payloads, versions = zip(*puts, strict=True)
    values = (keys, times, payloads, versions, _text_of(patience))
    try:
        rows = await connection.fetch(sql("insert_fresh"), tenant_id, *job, SHARDS, *values)
    except asyncpg.DivisionByZeroError:
        return {}
    return {row["key"]: _fresh(row) for row in rows}


async def insert_triggered(
    connection: TenantWrite, tenant_id: int, job: JobReference, triggers: Sequence[AuditedTrigger], patience: timedelta
) -> dict[str, FreshRow]:
    """Insert instances for Idempotency-Keys that are new, with their rows of the audit log; other keys are absent.

    `triggers` has each key once. Returns nothing if there is no such job, if it is encrypted, metered or a refresh job, if no node
    that executes is live, or if the tenant has too many keys. `patience` limits the wait for each lock.
    """
    keys, digests, payloads, actors, after = zip(*triggers, strict=True)
    values = (
        *(keys, digests, payloads),
        [actor.kind for actor in actors],
        [actor.id for actor in actors],
        [actor.name for actor in actors],
        [actor.role for actor in actors],
        [actor.address for actor in actors],
        [actor.request_id for actor in actors],
        [json_of(each) for each in after],
        *(AuditVerb.JOB_TRIGGER, Role.executor, KEPT_KEYS, KEPT_ANSWER_BYTES),
    )
    rows = await connection.fetch(sql("insert_triggered"), tenant_id, *job, SHARDS, _text_of(patience), *values)
    return {row["request_key"]: _fresh(row) for row in rows}


def _fresh(row: asyncpg.Record) -> FreshRow:
    return FreshRow(Claimable(row["id"], row["lane"], row["due"]), instance_of(row))


def _text_of(patience: timedelta) -> str:
    return f"{milliseconds(patience)}ms"
