"""Connections: a pool for the API, dedicated ones for the loops, each with its timeouts."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeAlias, TypeVar, cast

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from horai.core.errors import DatabaseUnavailable, HoraiError
from horai.db.catalog import sql
from horai.db.dial import dial
from horai.db.patience import Watch, unwatch, watch_over
from horai.db.route import Dedicated, ServerUnfit
from horai.text import Hint, Refused

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]"
Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"


class Lender(ABC):
    """Takes the place of a pool for one request, whose statements then share one transaction (accept/keyed.py)."""

    @abstractmethod
    def lend(self) -> AbstractAsyncContextManager[Connection]:
        """The connection of that transaction."""

    def as_pool(self) -> Pool:
        """Itself, for a scope: only `acquire` and `transaction` use a scope's pool."""
        return cast("Pool", self)


CONNECT_TIMEOUT = 10.0
COMMAND_TIMEOUT = timedelta(seconds=30)
LOOP_LOCK_TIMEOUT = timedelta(seconds=2)
ACQUIRE_TIMEOUT = 4.2
STATEMENTS_KEPT = 400
"""Prepared statements of a pooled connection: more than the catalog has, so that none pushes another out."""
LOCK_TIMEOUT = timedelta(seconds=5)
"""How long a request waits for a lock, that of an Idempotency-Key in flight included."""
IDLE_TIMEOUT = timedelta(seconds=60)
"""How long a transaction may wait for its next statement; past it the server ends the session, and its locks are free."""

GONE: tuple[type[Exception], ...] = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # asyncpg's word for a connection that broke between two of its own steps
    asyncpg.TooManyConnectionsError,
    asyncpg.ReadOnlySQLTransactionError,  # a primary that was demoted or fenced: another host may be writable
)
"""The database is out of reach for now: worth trying again."""


class Plans(StrEnum):
    """How PostgreSQL plans the statements of a connection: values of `plan_cache_mode` (decision 0024)."""

    KEPT = "force_generic_plan"
    """One plan per statement, kept for the life of the connection: for statements whose shape permits one plan."""
    FRESH = "force_custom_plan"
    """A plan for the values of each call: for lists, whose optional filters would spoil a kept plan."""
    CHOSEN = "auto"
    """PostgreSQL compares both."""

    @property
    def settings(self) -> dict[str, str]:
        """A kept plan may be made while the tables are empty, and must not read them from end to end when they have grown."""
        return {"plan_cache_mode": self.value, "enable_seqscan": "on" if self is Plans.FRESH else "off"}


def _server_settings(application: str, lock_timeout: timedelta, idle_timeout: timedelta) -> dict[str, str]:
    return {
        "application_name": application,
        "timezone": "UTC",
        "lock_timeout": _millis(lock_timeout),
        "idle_in_transaction_session_timeout": _millis(idle_timeout),
        "jit": "off",
    }


def _millis(duration: timedelta) -> str:
    return str(int(duration.total_seconds() * 1000))


async def connect(
    url: str,
    application: str,
    command_timeout: timedelta = COMMAND_TIMEOUT,
    lock_timeout: timedelta = LOOP_LOCK_TIMEOUT,
    idle_timeout: timedelta = IDLE_TIMEOUT,
    plans: Plans = Plans.KEPT,
) -> Dedicated:
    """Open a connection for one loop, which plans its statements once."""
    return await dial(
        url,
        timeout=min(CONNECT_TIMEOUT, command_timeout.total_seconds()),
        command_timeout=command_timeout.total_seconds(),
        server_settings=_server_settings(application, lock_timeout, idle_timeout) | plans.settings,
    )


class DatabaseUnreachable(HoraiError):
    """The database that was named cannot be worked with."""

    code = "SCH_503_DATABASE_UNREACHABLE"
    status = 503
    title = "Database unreachable"


@asynccontextmanager
async def opened(url: str, application: str) -> AsyncGenerator[Dedicated]:
    """A connection for one errand, which may take its time: migrations wait for locks and run for long."""
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
            or "Check --database-url: postgresql://user@host:5432/name.",
        ) from error
    try:
        yield connection
    finally:
        await asyncio.shield(close(connection))


async def close(connection: Dedicated) -> None:
    """Says goodbye, or cuts the connection when the server does not listen."""
    try:
        await connection.close(timeout=ACQUIRE_TIMEOUT)
    except (OSError, TimeoutError):
        connection.terminate()


class _Pooled(asyncpg.Connection):  # pyright: ignore[reportMissingTypeArgument] — generic for type checkers alone
    """A connection of a pool, which remembers how it plans: one that plans as asked costs no round trip."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._plans: Plans | None = Plans.FRESH

    async def plan(self, plans: Plans) -> None:
        """Plan the statements that follow in this way. Call it outside a transaction: a rollback would undo it."""
        if self._plans is not plans:
            self._plans = None  # unknown until the server has answered
            await self.execute(sql("set_plans"), *plans.settings.values())
            self._plans = plans


async def open_pool(url: str, application: str, size: int, idle_timeout: timedelta = IDLE_TIMEOUT) -> Pool:
    """Open a pool for requests. Its connections plan as `acquire` or `transaction` asks, and keep their prepared statements."""
    settings = _server_settings(application, LOCK_TIMEOUT, idle_timeout)
    pool = await asyncpg.create_pool(
        url,
        min_size=0,
        max_size=size,
        timeout=CONNECT_TIMEOUT,
        command_timeout=COMMAND_TIMEOUT.total_seconds(),
        server_settings=settings | Plans.FRESH.settings,
        connection_class=_Pooled,
        statement_cache_size=STATEMENTS_KEPT,
        reset=_reset,
        connect=dial,  # pyright: ignore[reportArgumentType] - it takes what this call passes
    )
    watch_over(pool, url)
    return pool


async def close_pool(pool: Pool) -> None:
    """Lets the connections end what they do, for a moment."""
    unwatch(pool)
    try:
        async with asyncio.timeout(ACQUIRE_TIMEOUT):
            await pool.close()
    except (TimeoutError, *GONE):
        pool.terminate()


async def _reset(_: Dedicated) -> None:
    """Keep the session as it is: nothing of the API outlives its transaction, and asyncpg has rolled back one cut short."""


def unavailable(error: BaseException) -> DatabaseUnavailable:
    """What a user is told when the database cannot be reached or cannot write."""
    return DatabaseUnavailable(
        Refused.DATABASE_REFUSED(error=str(error) if isinstance(error, ServerUnfit) else type(error).__name__),
        Hint.TRY_AGAIN_BY_KEY(),
        extra={"retryAfter": "1"},
    )


@asynccontextmanager
async def acquire(pool: Pool, plans: Plans = Plans.FRESH) -> AsyncGenerator[Connection]:
    """A pooled connection that plans in this way, or `DatabaseUnavailable` after a few seconds."""
    if isinstance(pool, Lender):
        async with pool.lend() as lent:
            yield lent
        return
    try:
        connection = await pool.acquire(timeout=ACQUIRE_TIMEOUT)
    except (asyncpg.PostgresError, *GONE) as error:
        raise unavailable(error) from error
    watch = Watch(pool, connection)
    try:
        await _plan(connection, plans)
        yield connection
    except asyncpg.ReadOnlySQLTransactionError:
        await pool.expire_connections()  # they lead to the same host
        raise
    finally:
        watch.end()
        await asyncio.shield(_release(pool, connection))


async def _plan(connection: "PoolConnectionProxy[asyncpg.Record]", plans: Plans) -> None:
    pooled: Any = connection  # lends the methods of `_Pooled`, which its type does not know
    try:
        await pooled.plan(plans)
    except (asyncpg.PostgresError, *GONE) as error:
        raise unavailable(error) from error


async def _release(pool: Pool, connection: "PoolConnectionProxy[asyncpg.Record]") -> None:
    try:
        await pool.release(connection, timeout=ACQUIRE_TIMEOUT)
    except GONE:
        with suppress(*GONE):  # a broken connection may have left the pool by itself
            connection.terminate()


@asynccontextmanager
async def transaction(pool: Pool, plans: Plans = Plans.KEPT) -> AsyncGenerator[Connection]:
    """A READ COMMITTED transaction on a pooled connection; a savepoint in the transaction of a lender.

    Writes find their rows by keys, so their plans can be kept.
    """
    async with acquire(pool, plans) as connection, connection.transaction():
        yield connection


T = TypeVar("T")

RETRIED = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)


async def retrying(attempt: Callable[[], Awaitable[T]], times: int = 5) -> T:
    """Runs a transaction again when PostgreSQL chose it as a deadlock's victim, a few times."""
    for left in reversed(range(times)):
        try:
            return await attempt()
        except RETRIED:
            if left == 0:
                raise
    raise AssertionError("times is at least one")


async def limit_lock_wait(connection: Connection, patience: timedelta) -> None:
    """Wait at most this long for each lock, for the rest of the transaction."""
    await connection.fetchval(sql("limit_lock_wait"), f"{int(patience.total_seconds() * 1000)}ms")
