"""A caller's own transaction: one function per statement of sql/callers.sql, and a savepoint in it."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime

from horai.core.wakes import Wake, from_text, to_text
from horai.db.catalog import sql
from horai.db.pool import GONE, Connection

READ_COMMITTED = "read committed"


@dataclass(frozen=True, slots=True)
class CallerTransaction:
    """What matters of a transaction that is not ours."""

    isolation: str
    now: datetime
    told: Sequence[Wake]
    is_json_text: bool


async def caller_transaction(connection: Connection) -> CallerTransaction:
    """Its isolation, the database's time, the wakes it has been given so far, whether json comes as text here."""
    row = await connection.fetchrow(sql("caller_transaction"))
    assert row is not None  # noqa: S101 — a select without a table always has a row
    told = [wake for word in row["told"].split() for wake in from_text(word)]
    return CallerTransaction(row["isolation"], row["now"], told, isinstance(row["plain"], str))


@asynccontextmanager
async def savepoint(connection: Connection) -> AsyncGenerator[None]:
    """All of what is done in it, or nothing; the caller's transaction can go on either way.

    Not asyncpg's nested transaction: that one refuses a transaction which the caller began with a BEGIN of their own.
    """
    await connection.execute(sql("set_savepoint"))
    try:
        yield
    except BaseException:
        with suppress(*GONE):  # without a connection there is nothing to return to
            await connection.execute(sql("return_to_savepoint"))
            await connection.execute(sql("release_savepoint"))
        raise
    await connection.execute(sql("release_savepoint"))


async def notify_at_commit(connection: Connection, wakes: Sequence[Wake], told: Sequence[Wake]) -> None:
    """Tells every process that listens, once the caller has committed; `told` is what has been said before."""
    await connection.execute(sql("notify_at_commit"), to_text(wakes), to_text([*told, *wakes]))
