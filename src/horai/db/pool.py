"""Connections: a pool for the API and dedicated connections for the loops, each with its own timeouts."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar, cast, overload

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from horai.core.errors import DatabaseUnavailable, HoraiError
from horai.db.catalog import sql
from horai.db.dial import dial
from horai.db.known_types import InformedConnection
from horai.db.patience import Dial, Watch, unwatch, watch_over
from horai.db.route import Dedicated, ServerUnfit
from horai.text import Hint, Refused

Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"


class TenantRead(asyncpg.Connection):  # pyright: ignore[reportMissingTypeArgument] — generic only for type checkers
    """A connection that reads the rows of one tenant.

    This class and the next two exist for the type checker: the driver makes the connections, and `acquire`,
    `transaction` and `connect` hand them out as one of these types.
    """


class TenantWrite(TenantRead):
    """A connection that reads and writes the rows of one tenant."""


class Platform(asyncpg.Connection):  # pyright: ignore[reportMissingTypeArgument] — generic only for type checkers
    """A connection that reads and writes the rows of every tenant, and those of no tenant.

    Only the engine, processes with the SDK, commands of an operator, and routes of keys, tenants, health and the audit log
    have one.
    """


AnyRead: TypeAlias = TenantRead | Platform
"""The connection of a read that requests and the engine share. Its statements name the tenant, or an id of the tenant."""
AnyWrite: TypeAlias = TenantWrite | Platform
"""The connection of a write that requests and the engine share."""

Lent_co = TypeVar("Lent_co", bound=AnyWrite, covariant=True)


class Lender(ABC, Generic[Lent_co]):
    """A replacement of the pool for one request, whose statements share one transaction (operations/idempotency.py)."""

    @abstractmethod
    def lend(self) -> AbstractAsyncContextManager[Lent_co]:
        """Return the connection of that transaction."""


CONNECT_TIMEOUT = 10.0
COMMAND_TIMEOUT = timedelta(seconds=30)
LOOP_LOCK_TIMEOUT = timedelta(seconds=2)
ACQUIRE_TIMEOUT = 4.2
STATEMENTS_KEPT = 1000
"""The cache size for prepared statements of a pooled connection: larger than the catalog, so that none is evicted."""
LOCK_TIMEOUT = timedelta(seconds=5)
"""The time that a request waits for a lock, including that of an Idempotency-Key in progress."""
IDLE_TIMEOUT = timedelta(seconds=60)
"""The time that a transaction may wait for its next statement. After it, the server ends the session and its locks."""

GONE: tuple[type[Exception], ...] = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # asyncpg raises it if a connection breaks between two of its own steps
    asyncpg.TooManyConnectionsError,
    asyncpg.ReadOnlySQLTransactionError,  # a primary that was demoted or fenced: another host may be writable
)
"""Errors of a database that cannot be reached for now: a retry may succeed."""


class Plans(StrEnum):
    """The planning mode for the statements of a connection: values of `plan_cache_mode` (decision 0024)."""

    KEPT = "force_generic_plan"
    """One plan per statement for the life of the connection: for statements that one plan suits."""
    FRESH = "force_custom_plan"
    """A new plan for the values of each call: for lists, whose optional filters make a kept plan slow."""
    CHOSEN = "auto"
    """PostgreSQL compares both and chooses."""

    @property
    def settings(self) -> dict[str, str]:
        """Return the settings of this mode.

        Sequential scans are off except for `FRESH`: a kept plan may be made while the tables are empty, and must not
        read whole tables after they have grown.
        """
        return {"plan_cache_mode": self.value, "enable_seqscan": "on" if self is Plans.FRESH else "off"}


def _server_settings(application: str, lock_timeout: timedelta, idle_timeout: timedelta) -> dict[str, str]:
    return {
        "application_name": application,
        "timezone": "UTC",
        "lock_timeout": str(milliseconds(lock_timeout)),
        "idle_in_transaction_session_timeout": str(milliseconds(idle_timeout)),
        "jit": "off",
    }


def milliseconds(duration: timedelta) -> int:
    """Return a duration in whole milliseconds, the unit of the server's time-outs."""
    return int(duration.total_seconds() * 1000)


async def connect(
    url: str,
    application: str,
    command_timeout: timedelta = COMMAND_TIMEOUT,
    lock_timeout: timedelta = LOOP_LOCK_TIMEOUT,
    idle_timeout: timedelta = IDLE_TIMEOUT,
    plans: Plans = Plans.KEPT,
) -> Platform:
    """Open a dedicated connection for one loop. By default it plans each statement once."""
    opened = await dial(
        url,
        timeout=min(CONNECT_TIMEOUT, command_timeout.total_seconds()),
        command_timeout=command_timeout.total_seconds(),
        server_settings=_server_settings(application, lock_timeout, idle_timeout) | plans.settings,
    )
    return cast("Platform", opened)


NO_LOGIN = (
    "Check the login of --database-url. An embedded database that an earlier version started gets its login for nodes from"
    " `horai up` or `horai migrate` of this version."
)


class DatabaseUnreachable(HoraiError):
    """The given database cannot be reached or used."""

    code = "SCH_503_DATABASE_UNREACHABLE"
    status = 503
    title = "Database unreachable"


@asynccontextmanager
async def opened(url: str, application: str) -> AsyncGenerator[Platform]:
    """Open a connection without timeouts for one task, such as a migration that builds an index for a long time."""
    try:
        connection = await dial(
            url,
            timeout=CONNECT_TIMEOUT,
            server_settings={"application_name": application, "timezone": "UTC", "jit": "off"},
        )
    except (ValueError, asyncpg.PostgresError, *GONE) as error:
        raise DatabaseUnreachable(
            f"The database cannot be reached: {error or type(error).__name__}.",
            (isinstance(error, ServerUnfit) and error.hint)
            or (isinstance(error, asyncpg.InvalidAuthorizationSpecificationError) and NO_LOGIN)
            or "Check --database-url: postgresql://user@host:5432/name.",
        ) from error
    try:
        yield cast("Platform", connection)
    finally:
        await asyncio.shield(close(connection))


async def close(connection: Dedicated) -> None:
    """Close the connection; terminate it if the server does not answer within `ACQUIRE_TIMEOUT` seconds."""
    try:
        await connection.close(timeout=ACQUIRE_TIMEOUT)
    except (OSError, TimeoutError):
        connection.terminate()


class _Session(NamedTuple):
    """The state of a pooled connection: its planning mode, whether it may write, and the tenant that it serves."""

    plans: Plans
    writes: bool = True
    tenant_id: int | None = None
    """None for the platform, which sees the rows of every tenant."""

    @property
    def settings(self) -> tuple[str, ...]:
        tenant = "" if self.tenant_id is None else str(self.tenant_id)
        return (*self.plans.settings.values(), tenant)


class _Pooled(InformedConnection):
    """A pooled connection that remembers its state: no round trip if it already has the requested one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._session: _Session | None = _Session(Plans.FRESH)

    async def serve(self, session: _Session) -> None:
        """Set the state for later statements. Call it outside a transaction: a rollback would undo it."""
        before = self._session
        if before == session:
            return
        self._session = None  # unknown until the server has answered
        if before is None or before.settings != session.settings:
            await self.execute(sql("set_session"), *session.settings)
        if before is None or before.writes != session.writes:
            await self.execute(sql("permit_writes" if session.writes else "forbid_writes"))
        self._session = session


@dataclass(frozen=True, slots=True)
class TenantPool:
    """The pool of one tenant: row-level security hides the rows of all others from its connections.

    A statement that forgets its tenant finds no row of another one, and a write outside `transaction` is refused.
    """

    pool: Pool
    tenant_id: int


TenantConnections: TypeAlias = TenantPool | Lender[TenantWrite]
"""The connections of a scope. Only `Scope` uses them."""
PlatformConnections: TypeAlias = "Pool | Lender[Platform]"
POOL_REST_AFTER = 300.0
"""Seconds without use after which a pool closes a connection."""


async def open_pool(
    url: str,
    application: str,
    size: int,
    idle_timeout: timedelta = IDLE_TIMEOUT,
    dialled: Dial = dial,
    rest_after: float = POOL_REST_AFTER,
    **more: str,
) -> Pool:
    """Open a pool for requests. `acquire` and `transaction` set the planning mode; prepared statements are kept.

    `dialled` opens its connections, and those without use for `rest_after` seconds are closed; `more` are further
    settings of their sessions.
    """
    settings = _server_settings(application, LOCK_TIMEOUT, idle_timeout) | more
    pool = await asyncpg.create_pool(
        url,
        min_size=0,
        max_size=size,
        timeout=CONNECT_TIMEOUT,
        command_timeout=COMMAND_TIMEOUT.total_seconds(),
        max_inactive_connection_lifetime=rest_after,
        server_settings=settings | Plans.FRESH.settings,
        connection_class=_Pooled,
        statement_cache_size=STATEMENTS_KEPT,
        reset=_reset,
        connect=dialled,  # pyright: ignore[reportArgumentType] - it accepts the arguments that the pool passes
    )
    watch_over(pool, url, dialled)
    return pool


async def close_pool(pool: Pool) -> None:
    """Close the pool. Connections have `ACQUIRE_TIMEOUT` seconds to finish, then they are terminated."""
    unwatch(pool)
    try:
        async with asyncio.timeout(ACQUIRE_TIMEOUT):
            await pool.close()
    except (TimeoutError, *GONE):
        pool.terminate()


async def _reset(_: Dedicated) -> None:
    """Keep the session as it is: the API leaves no state after a transaction, and asyncpg rolls back an open one."""


def unavailable(error: BaseException) -> DatabaseUnavailable:
    """Return the error for a database that cannot be reached or cannot write."""
    return DatabaseUnavailable(
        Refused.DATABASE_REFUSED(error=str(error) if isinstance(error, ServerUnfit) else type(error).__name__),
        Hint.TRY_AGAIN_BY_KEY(),
        extra={"retryAfter": "1"},
    )


@overload
def acquire(
    pool: TenantConnections, plans: Plans = ..., *, writes: Literal[False] = ...
) -> AbstractAsyncContextManager[TenantRead]: ...
@overload
def acquire(
    pool: TenantConnections, plans: Plans = ..., *, writes: Literal[True]
) -> AbstractAsyncContextManager[TenantWrite]: ...
@overload
def acquire(pool: PlatformConnections, plans: Plans = ...) -> AbstractAsyncContextManager[Platform]: ...
def acquire(
    pool: TenantConnections | PlatformConnections, plans: Plans = Plans.FRESH, *, writes: bool = False
) -> AbstractAsyncContextManager[Any]:
    """Acquire a pooled connection with this planning mode. That of a tenant is read-only without `writes`.

    Raises `DatabaseUnavailable` after `ACQUIRE_TIMEOUT` seconds.
    """
    return _acquired(pool, plans, writes=writes)


@asynccontextmanager
async def _acquired(
    pool: TenantConnections | PlatformConnections, plans: Plans, *, writes: bool
) -> AsyncGenerator["Dedicated | PoolConnectionProxy[asyncpg.Record]"]:
    if isinstance(pool, Lender):
        async with pool.lend() as lent:
            yield lent
        return
    session = _Session(plans)
    if isinstance(pool, TenantPool):
        pool, session = pool.pool, _Session(plans, writes, pool.tenant_id)
    try:
        async with asyncio.timeout(ACQUIRE_TIMEOUT):  # `acquire` itself would start a task for its time limit
            connection = await pool.acquire()
    except (asyncpg.PostgresError, *GONE) as error:
        raise unavailable(error) from error
    watch = Watch(pool, connection)
    try:
        await _serve(connection, session)
        yield connection
    except asyncpg.ReadOnlySQLTransactionError:
        await pool.expire_connections()  # they are connected to the same host
        raise
    finally:
        watch.end()
        await asyncio.shield(_release(pool, connection))


async def _serve(connection: "PoolConnectionProxy[asyncpg.Record]", session: _Session) -> None:
    pooled: Any = connection  # the proxy has the methods of `_Pooled`, its type does not
    try:
        await pooled.serve(session)
    except (asyncpg.PostgresError, *GONE) as error:
        raise unavailable(error) from error


async def _release(pool: Pool, connection: "PoolConnectionProxy[asyncpg.Record]") -> None:
    try:
        await pool.release(connection, timeout=ACQUIRE_TIMEOUT)
    except GONE:
        with suppress(*GONE):  # a broken connection may have left the pool by itself
            connection.terminate()


@overload
def transaction(pool: TenantConnections, plans: Plans = ...) -> AbstractAsyncContextManager[TenantWrite]: ...
@overload
def transaction(pool: PlatformConnections, plans: Plans = ...) -> AbstractAsyncContextManager[Platform]: ...
@asynccontextmanager
async def transaction(pool: TenantConnections | PlatformConnections, plans: Plans = Plans.KEPT) -> AsyncGenerator[Any]:
    """Open a READ COMMITTED transaction on a pooled connection, or a savepoint in the transaction of a lender.

    Writes find their rows by keys, so their plans can be kept.
    """
    async with _acquired(pool, plans, writes=True) as connection, connection.transaction():
        yield connection


T = TypeVar("T")

RETRIED = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)


async def retrying(
    attempt: Callable[[], Awaitable[T]], times: int = 5, after: tuple[type[Exception], ...] = RETRIED
) -> T:
    """Run a transaction; retry it after these errors, by default a deadlock or a serialization failure.

    After `times` attempts, the last error is raised.
    """
    for left in reversed(range(times)):
        try:
            return await attempt()
        except after:
            if left == 0:
                raise
    raise AssertionError("times is at least one")


async def limit_lock_wait(connection: AnyWrite, patience: timedelta) -> None:
    """Limit the wait for each lock to `patience`, for the rest of the transaction."""
    await connection.fetchval(sql("limit_lock_wait"), f"{milliseconds(patience)}ms")
