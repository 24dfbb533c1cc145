"""The source database as a reconciler reads it: one read-only connection, with keyset paging.

Messages never repeat an address, a query or a value: any of them may contain a secret.
"""

import json
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import asyncpg
from asyncpg.cursor import Cursor

from horai.core.limits import PAYLOAD_LIMIT
from horai.db.pool import GONE, Dedicated, close
from horai.features.reconcile.pinned_loop import dialling
from horai.features.reconcile.rules import Faulty, Row, wanted_row

CONNECT_TIMEOUT = 10.0
PAGE_BYTES = 64 * 1024 * 1024
FETCHED_AT_ONCE = 50
"""The number of rows per fetch; the largest payloads of the database bound the cost of one fetch."""
HINT = "select key, execute_time, payload from … where key > $1 order by key limit $2"

Key = str | int | uuid.UUID
_FIRST: Mapping[str, tuple[Callable[[str], Key], Key]] = {
    "text": (str, ""),
    "varchar": (str, ""),
    "bpchar": (str, ""),
    "int2": (int, -(2**15)),
    "int4": (int, -(2**31)),
    "int8": (int, -(2**63)),
    "uuid": (uuid.UUID, uuid.UUID(int=0)),
}
"""For each type of `$1`: the parser of a key, and a value that sorts before every key."""


class SourceFault(Exception):
    """A source that cannot be read; the message contains no secrets."""


@dataclass(frozen=True, slots=True)
class Database:
    """A source database by its URL.

    `addresses` are the checked addresses of its host; None means that the URL is trusted.
    """

    url: str
    addresses: tuple[str, ...] | None = None


class BusinessTable:
    """The rows of a query over a source database; `patience` is the time limit of a page."""

    def __init__(self, connection: Dedicated, query: str, patience: timedelta) -> None:
        self._connection = connection
        self._query = query
        self._patience = patience

    async def page(self, cursor: str | None, limit: int) -> tuple[list[Row], str | None]:
        """Return up to `limit` rows after the key `cursor`, and the key to continue from; None after the last page."""
        try:
            async with self._connection.transaction(readonly=True):
                records = await self._fetch(cursor, limit)
        except asyncpg.QueryCanceledError as error:
            raise SourceFault(f"the query took longer than {self._patience.total_seconds():g} s") from error
        except asyncpg.PostgresError as error:
            raise SourceFault(f"the query failed: {type(error).__name__} ({error.sqlstate})") from error
        except (UnicodeError, ValueError, OverflowError, asyncpg.InterfaceError, *GONE) as error:
            raise SourceFault(f"the database did not answer: {type(error).__name__}") from error
        rows = [_row(record) for record in records]
        return rows, self._next(records, cursor) if len(records) >= limit else None

    async def _fetch(self, cursor: str | None, limit: int) -> list[asyncpg.Record]:
        statement = await self._connection.prepare(self._query)
        parameters, columns = statement.get_parameters(), [column.name for column in statement.get_attributes()]
        if (
            len(parameters) != 2
            or columns[:2] != ["key", "execute_time"]
            or not set(columns[2:]) <= {"payload", "version"}
        ):
            raise SourceFault(
                f"the query does not return key, execute_time and perhaps payload, version, by $1 and $2: {HINT}"
            )
        known = _FIRST.get(parameters[0].name)
        if known is None:
            raise SourceFault(
                f"keys of type {parameters[0].name} cannot be paged: write key::text, here and in order by"
            )
        read, first = known
        reading = await statement.cursor(first if cursor is None else read(cursor), limit)
        return await _within(reading, limit)

    def _next(self, records: Sequence[asyncpg.Record], cursor: str | None) -> str:
        last = str(records[-1]["key"])
        if last == cursor:
            raise SourceFault(f"the query returns the same rows again: it must continue after $1 ({HINT})")
        return last


async def _within(reading: "Cursor[asyncpg.Record]", limit: int) -> list[asyncpg.Record]:
    """Return at most `limit` rows, even if the query ignores its limit. Raises `SourceFault` above `PAGE_BYTES`."""
    records: list[asyncpg.Record] = []
    size = 0
    while len(records) < limit:
        fetched = await reading.fetch(min(FETCHED_AT_ONCE, limit - len(records)))
        size += sum(len(value) for record in fetched for value in record.values() if isinstance(value, str))
        if size > PAGE_BYTES:
            raise SourceFault(f"a page is larger than {PAGE_BYTES} bytes")
        records += fetched
        if not fetched:
            break
    return records


def _row(record: asyncpg.Record) -> Row:
    key = record["key"]
    key = str(key) if isinstance(key, uuid.UUID) else key
    payload: Any = record.get("payload")
    if isinstance(payload, str):  # json and jsonb arrive as text; a text column must contain JSON as well
        if len(payload) > PAYLOAD_LIMIT:
            return _faulty(key, f"payload: is larger than {PAYLOAD_LIMIT} bytes")
        try:
            payload = json.loads(payload)
        except (ValueError, RecursionError):
            return _faulty(key, "payload: is not JSON")
    return wanted_row(key, record["execute_time"], payload, record.get("version"))


def _faulty(key: object, why: str) -> Row:
    """Return a faulty row with its key if the key is valid, so that its instance is not counted as surplus."""
    read = wanted_row(key, None)
    return Faulty(read.key, why) if isinstance(read, Faulty) and read.key is not None else read


@asynccontextmanager
async def business_table(database: Database, query: str, patience: timedelta) -> AsyncGenerator[BusinessTable]:
    """Open a read-only connection for one run, with a time limit for every statement."""
    milliseconds = str(patience // timedelta(milliseconds=1))
    settings = {
        "application_name": "horai reconcile",
        "timezone": "UTC",
        "default_transaction_read_only": "on",
        "statement_timeout": milliseconds,
        "idle_in_transaction_session_timeout": milliseconds,
    }
    try:
        connection: Dedicated = await asyncpg.connect(
            database.url,
            timeout=CONNECT_TIMEOUT,
            command_timeout=patience.total_seconds() + 5,
            server_settings=settings,
            statement_cache_size=0,  # a connection pooler may not support prepared statements
            **_checked(database),
        )
    except (ValueError, UnicodeError, asyncpg.PostgresError, *GONE) as error:
        raise SourceFault(f"the database cannot be reached: {type(error).__name__}") from error
    try:
        yield BusinessTable(connection, query, patience)
    finally:
        await close(connection)


def _checked(database: Database) -> dict[str, Any]:
    """Return the connect options for a URL that is not the operator's.

    asyncpg then connects only to the checked addresses, and never sends a password from the environment of the node.
    """
    if database.addresses is None:
        return {}
    parts = urlsplit(database.url)
    password = unquote(parts.password) if parts.password else parse_qs(parts.query).get("password", [""])[-1]
    return {"loop": dialling(database.addresses), "password": password}
