"""`conn=`: queries in the caller's own transaction, over any supported connection.

asyncpg, psycopg, SQLAlchemy and Django are distinguished by type; no driver is imported that is not loaded already.
Each query runs in a savepoint, so that an error does not end the caller's transaction. Without an open transaction
there can be no savepoint, and the query is refused.
"""

import re
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, TypeVar

from horai.core.errors import FieldError, Forbidden, HoraiError, Invalid, NotFound, TooLarge
from horai.core.quotas import refusal_of
from horai.db import caller_transaction
from horai.db.caller_transaction import Argument, Query, Row

T = TypeVar("T")
_Arguments: TypeAlias = tuple[Argument, ...]
_Run: TypeAlias = Callable[[Any, str, _Arguments], Awaitable[list[Row]]]

_PLACEHOLDER = re.compile(r"\$(\d+)")
KNOWN = "asyncpg, psycopg, SQLAlchemy (connections and sessions), django.db.connection"


def is_sync(conn: object) -> bool:
    """Return whether this connection blocks. Raises `Invalid` if it is not a supported connection."""
    return _kind_of(conn).is_sync


async def fetch(conn: object, question: Query[T]) -> T:
    """Run a query in the caller's transaction, which the caller commits. A blocking connection blocks the thread."""
    run = _kind_of(conn).run
    try:
        await run(conn, caller_transaction.SAVEPOINT, ())
        answer = question.read(await run(conn, question.statement, question.arguments))
        await run(conn, caller_transaction.RELEASE, ())
    except BaseException as error:  # cancellation too: the caller's transaction may continue
        with suppress(Exception):  # without a transaction or connection there is no savepoint to return to
            await run(conn, caller_transaction.RETURN, ())
            await run(conn, caller_transaction.RELEASE, ())
        if (refusal := _refusal(error)) is not None:
            raise refusal from error
        raise
    return answer


def fetch_now(conn: object, question: Query[T]) -> T:
    """Run a query without `await`, over a blocking connection."""
    if not is_sync(conn):
        raise Invalid(
            f"{_name_of(conn)} is an asynchronous connection, and this call cannot wait for it.",
            "Use the asynchronous method (`await job.put(…, conn=conn)`), or pass a blocking connection.",
        )
    asked = fetch(conn, question)
    try:
        asked.send(None)  # runs to the end: with a blocking connection, no await suspends
    except StopIteration as end:
        return end.value
    raise AssertionError("a blocking connection suspended the coroutine")


async def _asyncpg(conn: Any, statement: str, arguments: _Arguments) -> list[Row]:
    return [tuple(row) for row in await conn.fetch(statement, *arguments)]


async def _psycopg(conn: Any, statement: str, arguments: _Arguments) -> list[Row]:
    """Run a statement with a plain cursor: the connection may be configured for other kinds of cursors and rows."""
    psycopg: Any = sys.modules["psycopg"]
    with psycopg.Cursor(conn, row_factory=psycopg.rows.tuple_row) as cursor:
        cursor.execute(_with_names(statement, r"%(a\1)s"), _named(arguments))
        return cursor.fetchall() if cursor.description else []


async def _psycopg_async(conn: Any, statement: str, arguments: _Arguments) -> list[Row]:
    psycopg: Any = sys.modules["psycopg"]
    async with psycopg.AsyncCursor(conn, row_factory=psycopg.rows.tuple_row) as cursor:
        await cursor.execute(_with_names(statement, r"%(a\1)s"), _named(arguments))
        return await cursor.fetchall() if cursor.description else []


async def _sqlalchemy(conn: Any, statement: str, arguments: _Arguments) -> list[Row]:
    return _rows(conn.execute(_clause(statement), _named(arguments)))


async def _sqlalchemy_async(conn: Any, statement: str, arguments: _Arguments) -> list[Row]:
    return _rows(await conn.execute(_clause(statement), _named(arguments)))


async def _session(session: Any, statement: str, arguments: _Arguments) -> list[Row]:
    return await _sqlalchemy(session.connection(), statement, arguments)


async def _session_async(session: Any, statement: str, arguments: _Arguments) -> list[Row]:
    return await _sqlalchemy_async(await session.connection(), statement, arguments)


async def _django(conn: Any, statement: str, arguments: _Arguments) -> list[Row]:
    with conn.cursor() as cursor:
        cursor.execute(_with_names(statement, r"%(a\1)s"), _named(arguments))
        return cursor.fetchall() if cursor.description else []


@lru_cache
def _with_names(statement: str, style: str) -> str:
    return _PLACEHOLDER.sub(style, statement)


@lru_cache
def _clause(statement: str) -> Any:
    sqlalchemy: Any = sys.modules["sqlalchemy"]
    return sqlalchemy.text(_with_names(statement, r":a\1"))


def _named(arguments: _Arguments) -> dict[str, Argument]:
    return {f"a{number}": argument for number, argument in enumerate(arguments, 1)}


def _rows(result: Any) -> list[Row]:
    return [tuple(row) for row in result] if result.returns_rows else []


class _Kind(NamedTuple):
    """A class of connections: the module that defines it, and the function that runs a statement over it."""

    module: str
    name: str
    is_sync: bool
    run: _Run


_KINDS = (
    _Kind("asyncpg.connection", "Connection", False, _asyncpg),
    _Kind("asyncpg.pool", "PoolConnectionProxy", False, _asyncpg),
    _Kind("psycopg", "Connection", True, _psycopg),
    _Kind("psycopg", "AsyncConnection", False, _psycopg_async),
    _Kind("sqlalchemy.engine", "Connection", True, _sqlalchemy),
    _Kind("sqlalchemy.orm", "Session", True, _session),
    _Kind("sqlalchemy.orm", "scoped_session", True, _session),
    _Kind("sqlalchemy.ext.asyncio", "AsyncConnection", False, _sqlalchemy_async),
    _Kind("sqlalchemy.ext.asyncio", "AsyncSession", False, _session_async),
    _Kind("sqlalchemy.ext.asyncio", "async_scoped_session", False, _session_async),
    _Kind("django.db.backends.base.base", "BaseDatabaseWrapper", True, _django),
    _Kind("django.utils.connection", "ConnectionProxy", True, _django),
)


def _kind_of(conn: object) -> _Kind:
    for kind in _KINDS:
        known = getattr(sys.modules.get(kind.module), kind.name, None)
        if known is not None and isinstance(conn, known):
            return kind
    raise Invalid.field("conn", f"must be a database connection, not {_name_of(conn)}", f"Known: {KNOWN}.")


def _name_of(conn: object) -> str:
    return f"{type(conn).__module__}.{type(conn).__qualname__}"


class _Answered(NamedTuple):
    """The error that PostgreSQL reported, independent of the driver."""

    code: str
    message: str
    hint: str | None
    field: str | None
    detail: str | None


def _said(error: BaseException) -> _Answered | None:
    """Return the innermost error of the chain that has an SQLSTATE: SQLAlchemy and Django wrap the driver's error."""
    found: _Answered | None = None
    inner: Any = error
    while inner is not None:
        diagnosed = getattr(inner, "diag", None)
        if diagnosed is not None and diagnosed.sqlstate:
            found = _Answered(
                diagnosed.sqlstate,
                diagnosed.message_primary,
                diagnosed.message_hint,
                diagnosed.column_name or None,
                diagnosed.message_detail,
            )
        elif hasattr(inner, "sqlstate") and hasattr(inner, "message"):
            found = _Answered(
                inner.sqlstate,
                inner.message,
                getattr(inner, "hint", None),
                getattr(inner, "column_name", None),
                getattr(inner, "detail", None),
            )
        inner = inner.__cause__
    return found


_OURS: dict[str, type[HoraiError]] = {"HR404": NotFound, "HR413": TooLarge, "HR422": Invalid}
_NO_TRANSACTION = "25P01"
_NO_PERMISSION = "42501"
_NO_FUNCTION = frozenset({"42883", "3F000"})


def _refusal(error: BaseException) -> HoraiError | None:
    """Return the Horai error to raise; None for errors that concern only the caller and its database."""
    said = _said(error)
    if said is None:
        return None
    if (quota := refusal_of(said.code, said.detail)) is not None:
        return quota
    if said.code in _OURS:
        fault = said.message.removeprefix(f"{said.field}: ")
        errors = [FieldError(said.field, fault)] if said.field else []
        return _OURS[said.code](said.message, said.hint, errors)
    if said.code == _NO_TRANSACTION:
        return Invalid(
            "The connection has no open transaction.",
            "Begin one: `async with conn.transaction()`, `with transaction.atomic()`, …. Without one, leave conn= out.",
        )
    if said.code == _NO_PERMISSION:
        return Forbidden(
            f"The connection's role may not do this: {said.message}.",
            "The owner of the schema calls horai.grant_client('<role>') to allow it: docs/guides/sql.md.",
        )
    if said.code in _NO_FUNCTION:
        return Invalid(
            f"The connection's database does not have this version of Horai: {said.message}.",
            "conn= must be a connection to Horai's database; `horai migrate` upgrades it to this version.",
        )
    return None
