"""The scope of a request: its tenant, the resources to serve it, and checks of the versions that it has read.

A scope decides which server a request reads. The rule: `read` uses a standby if the scope has a `reader`, and only the scope of a
route that is marked `may_lag` has one; all other reads, and every write, use the primary.
"""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar, cast

from horai.core.actor import Actor
from horai.core.errors import Invalid, NotFound, PreconditionFailed
from horai.db import jobs
from horai.db.jobs import JobRow
from horai.db.pool import (
    Lender,
    Plans,
    Platform,
    PlatformConnections,
    TenantConnections,
    TenantPool,
    TenantRead,
    TenantWrite,
    acquire,
    transaction,
)
from horai.db.replicas import ReplicaReader
from horai.db.wakeups import Wakeups
from horai.operations.job_hooks import JobHooks
from horai.operations.keyring import Keyring
from horai.text import Hint, Refused

LONGEST = 20.0
"""Seconds that one request works: a client waits for half a minute."""


@dataclass(slots=True)
class Disclosure:
    """A mark that a response has values of encrypted jobs: such a response is stored only sealed."""

    is_made: bool = False


Connections = TypeVar("Connections")


@dataclass(frozen=True, slots=True)
class ScopeFields(Generic[Connections]):
    """The fields that both kinds of scope have."""

    pool: Connections
    wakeups: Wakeups
    tenant_id: int
    tenant: str
    actor: Actor
    """The key, user or process that acts; every write names it in the audit log."""
    hooks: tuple[JobHooks, ...]
    """The hooks that features add to the operations on jobs."""
    longest: float = LONGEST
    """Seconds after which work that is done in pages stops and reports that there is more."""
    sources: frozenset[str] = frozenset()
    """Names of the databases that the operator allows reconcilers to read."""
    brokers: frozenset[str] = frozenset()
    """Names of the message brokers that the operator allows sinks to use."""
    nats_brokers: frozenset[str] = frozenset()
    """Those of them that jobs may be handed over to."""
    keyring: Keyring = field(default_factory=Keyring)
    """The keys that seal secrets. Without keys they are stored as they are."""
    disclosure: Disclosure = field(default_factory=Disclosure)
    reader: ReplicaReader | None = None
    """The standby that answers the reads of this request; None for the primary."""


@dataclass(frozen=True, slots=True)
class Scope(ScopeFields[TenantConnections]):
    """A caller's tenant, and the resources to serve it. `read` and `write` give its connections."""

    def read(self, plans: Plans = Plans.FRESH) -> AbstractAsyncContextManager[TenantRead]:
        """Return a connection that reads the tenant's rows. A write with it fails (25006).

        A request with an Idempotency-Key has one transaction, in which it also reads.
        """
        return acquire(self.pool, plans) if self.reader is None else self.reader.acquire(plans, self.tenant_id)

    def write(self, plans: Plans = Plans.KEPT, *, autocommit: bool = False) -> AbstractAsyncContextManager[TenantWrite]:
        """Return a connection in a transaction that may write the tenant's rows.

        With `autocommit` there is no transaction: each statement, or each transaction that the caller begins, is one.
        """
        return acquire(self.pool, plans, writes=True) if autocommit else transaction(self.pool, plans)


@dataclass(frozen=True, slots=True)
class PlatformScope(ScopeFields[PlatformConnections]):
    """A caller of the platform's routes. Only the rows of its Idempotency-Keys belong to `tenant_id`."""

    def read(self, plans: Plans = Plans.FRESH) -> AbstractAsyncContextManager[Platform]:
        """Return a connection without a transaction."""
        return acquire(self.pool, plans) if self.reader is None else self.reader.acquire(plans, None)

    def write(self, plans: Plans = Plans.KEPT, *, autocommit: bool = False) -> AbstractAsyncContextManager[Platform]:
        """Return a connection in a transaction, or with `autocommit` without one."""
        return acquire(self.pool, plans) if autocommit else transaction(self.pool, plans)

    def of_tenant(self, tenant_id: int, tenant: str) -> Scope:
        """Return the scope in which the platform acts for a tenant. A request with an Idempotency-Key keeps its one transaction."""
        lent = self.pool
        pool = cast("Lender[TenantWrite]", lent) if isinstance(lent, Lender) else TenantPool(lent, tenant_id)
        return Scope(pool, self.wakeups, tenant_id, tenant, self.actor, self.hooks, keyring=self.keyring)


AnyScope: TypeAlias = Scope | PlatformScope


async def require_job(connection: TenantRead, scope: Scope, reference: str) -> JobRow:
    """Return the tenant's job by id or name. Raise `NotFound` otherwise, also for another tenant's job."""
    job = await jobs.find_job(connection, scope.tenant_id, reference)
    if job is None:
        raise job_not_found(reference)
    return job


async def hold_job(connection: TenantWrite, scope: Scope, reference: str, if_version: int | None = None) -> JobRow:
    """Lock the job for update. Raises `PreconditionFailed` if its version is not `if_version`."""
    found = await require_job(connection, scope, reference)
    job = await jobs.lock_job(connection, found.id)
    if job is None:
        raise job_not_found(reference)
    if job.ticks_for is not None:
        raise Invalid(Refused.JOB_IS_TICKS(job=job.name), Hint.CHANGE_REFRESH_JOB())
    require_version(f"job {job.name!r}", job.version, if_version)
    return job


def job_not_found(reference: str) -> NotFound:
    """Return the same error for a job that never existed, was deleted, or belongs to another tenant."""
    return NotFound(Refused.NO_JOB(name=reference[:128]), Hint.LISTED_AT(path="/api/v1/jobs"))


def require_version(what: str, version: int, if_version: int | None) -> None:
    """Raise `PreconditionFailed` if the caller has read another version. None skips the check."""
    if if_version is not None and version != if_version:
        raise PreconditionFailed(
            Refused.OTHER_VERSION(what=what, version=version, read=if_version),
            Hint.READ_AGAIN(),
        )
