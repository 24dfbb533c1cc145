"""Connections: a pool for the API, dedicated ones for the loops, each with its timeouts."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import timedelta
from typing import TypeAlias, TypeVar, cast

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from horai.core.errors import DatabaseUnavailable, HoraiError
from horai.core.wording import Hint, Refused

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]"
Dedicated: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
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
ACQUIRE_TIMEOUT = 5.0
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
)
"""The database is out of reach for now: worth trying again."""


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
) -> Dedicated:
    """A connection of one's own, for a loop.

    A loop's plans are cached for the life of its connection, and the first is made while the tables may be empty: it
    must not be a sequential scan that is still there when they have grown.
    """
    return await asyncpg.connect(
        url,
        timeout=min(CONNECT_TIMEOUT, command_timeout.total_seconds()),
        command_timeout=command_timeout.total_seconds(),
        server_settings=_server_settings(application, lock_timeout, idle_timeout) | {"enable_seqscan": "off"},
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
        connection: Dedicated = await asyncpg.connect(
            url,
            timeout=CONNECT_TIMEOUT,
            server_settings={"application_name": application, "timezone": "UTC", "jit": "off"},
        )
    except (ValueError, asyncpg.PostgresError, *GONE) as error:
        raise DatabaseUnreachable(
            f"The database cannot be reached: {error or type(error).__name__}.",
            "Check --database-url: postgresql://user@host:5432/name.",
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


async def open_pool(url: str, application: str, size: int, idle_timeout: timedelta = IDLE_TIMEOUT) -> Pool:
    """The API's pool. Its plans are made for the values given: a list's optional filters would spoil a generic plan."""
    settings = _server_settings(application, LOCK_TIMEOUT, idle_timeout)
    return await asyncpg.create_pool(
        url,
        min_size=0,
        max_size=size,
        timeout=CONNECT_TIMEOUT,
        command_timeout=COMMAND_TIMEOUT.total_seconds(),
        server_settings=settings | {"plan_cache_mode": "force_custom_plan"},
        reset=_reset,
    )


async def close_pool(pool: Pool) -> None:
    """Lets the connections end what they do, for a moment."""
    try:
        async with asyncio.timeout(ACQUIRE_TIMEOUT):
            await pool.close()
    except (TimeoutError, *GONE):
        pool.terminate()


async def _reset(connection: Dedicated) -> None:
    """Nothing of the API outlives its transaction, so that only one cut short leaves something to clear away."""
    if connection.is_in_transaction():
        await connection.reset()


def unavailable(error: BaseException) -> DatabaseUnavailable:
    """What a user is told when the database cannot be reached or cannot write."""
    return DatabaseUnavailable(
        Refused.DATABASE_REFUSED(error=type(error).__name__),
        Hint.TRY_AGAIN_BY_KEY(),
        extra={"retryAfter": "1"},
    )


@asynccontextmanager
async def acquire(pool: Pool) -> AsyncGenerator[Connection]:
    """A pooled connection, or `DatabaseUnavailable` after a few seconds."""
    if isinstance(pool, Lender):
        async with pool.lend() as lent:
            yield lent
        return
    try:
        connection = await pool.acquire(timeout=ACQUIRE_TIMEOUT)
    except (asyncpg.PostgresError, *GONE) as error:
        raise unavailable(error) from error
    try:
        yield connection
    finally:
        await asyncio.shield(_release(pool, connection))


async def _release(pool: Pool, connection: "PoolConnectionProxy[asyncpg.Record]") -> None:
    try:
        await pool.release(connection, timeout=ACQUIRE_TIMEOUT)
    except GONE:
        with suppress(*GONE):  # a broken connection may have left the pool by itself
            connection.terminate()


@asynccontextmanager
async def transaction(pool: Pool) -> AsyncGenerator[Connection]:
    """A READ COMMITTED transaction on a pooled connection; a savepoint in the transaction of a lender."""
    async with acquire(pool) as connection, connection.transaction():
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
