"""The audit log in tests: rows, a sealer that steps when it is told, and the hands of a superuser who tampers."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import make
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from stages import Workbench

from horai.core.actor import Actor, ActorKind
from horai.core.audit import AuditEntry, AuditVerb
from horai.db.pool import Platform
from horai.features import audit
from horai.features.audit.heads import HeadPublisher
from horai.features.audit.rules import parse_head
from horai.features.audit.service import ChainReport, verify_chain
from horai.features.audit.signing import AuditKey, load_key, make_key
from horai.features.audit.stage import Sealer
from horai.operations.audit import record
from horai.operations.scope import Scope

ACTOR = Actor(ActorKind.KEYLESS, "", "", "admin", "127.0.0.1", "")
MINUTE = timedelta(minutes=1)
Tamper = Callable[[Platform], Awaitable[Any]]


def new_key() -> AuditKey:
    private = Ed25519PrivateKey.generate()
    return AuditKey(private.public_key(), private)


def key_in(place: Path) -> tuple[str, AuditKey]:
    """Make a key in a directory; its file and itself."""
    file = str(place / "audit.key")
    make_key(file)
    key = load_key(file)
    assert key is not None
    return file, key


async def write(connection: Platform, name: str = "publish", tenant_id: int | None = 1) -> int:
    """Add a row in the transaction of the connection, or in one of its own; its id."""
    entry = AuditEntry(AuditVerb.JOB_CHANGE, "job", "7", name, {"queue": "default"}, {"queue": name})
    await record(connection, tenant_id, ACTOR, entry)
    return await connection.fetchval("select max(id) from horai.audit")


async def write_many(connection: Platform, count: int) -> list[int]:
    """Add rows in transactions of their own."""
    return [await write(connection, f"job-{number}") for number in range(count)]


def sealer_of(bench: Workbench) -> Sealer:
    """The sealer of a process with every role, woken by the wakes of the bench."""
    return cast("Sealer", bench.feature_stage(audit.FEATURE))


async def seal(bench: Workbench, key: AuditKey | None = None) -> None:
    """Seal all rows of finished transactions now, as a new leader does."""
    sealer = Sealer(bench.line("audit"), bench.lease, bench.clock.now(), key, HeadPublisher(None, None))
    await sealer.step(bench.clock.now())


async def check(scope: Scope, key: AuditKey | None = None, head: str | None = None) -> ChainReport:
    return await verify_chain(make.platform_scope(scope), key, None if head is None else parse_head(head))


def named(report: ChainReport) -> list[tuple[str, int, int | None]]:
    """Return the faults as (kind, seal, row)."""
    return [(str(fault.kind), fault.seal, fault.row) for fault in report.faults]


@asynccontextmanager
async def as_intruder(connection: Platform) -> AsyncGenerator[Platform]:
    """A superuser for whom no trigger fires."""
    await connection.execute("set session_replication_role = replica")
    try:
        yield connection
    finally:
        await connection.execute("set session_replication_role = origin")


async def months_ago(connection: Platform, months: int, rows: int = 1) -> str:
    """Add sealed-to-be rows of an earlier month, whose partition is made if it is missing; the month as YYYY-MM."""
    now: datetime = await connection.fetchval("select now()")
    first = now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    for _ in range(months):
        first = (first - timedelta(days=1)).replace(day=1)
    await connection.execute("select horai.make_audit_months($1::date, 1)", first.date())
    await connection.execute(
        "insert into horai.audit (tenant_id, at, actor_kind, actor_id, actor_name, actor_role, address, request_id, verb,"
        " object_kind, object_id, object_name) select 1, $1::timestamptz + n * interval '1 minute', 'keyless', '', 'keyless',"
        " 'admin', '', '', 'job.change', 'job', '7', 'publish' from generate_series(1, $2) n",
        first,
        rows,
    )
    return f"{first:%Y-%m}"
