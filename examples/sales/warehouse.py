"""The business: the files that shops send, what was loaded of them, and the reports, in a schema beside Horai's."""

import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import date

import asyncpg

URL = "HORAI_DATABASE_URL"
TABLES = """
create schema if not exists sales;
create table if not exists sales.file (day date, shop text, lines text[] not null, primary key (day, shop));
create table if not exists sales.loaded (day date, shop text, cents integer not null, primary key (day, shop));
create table if not exists sales.report (day date primary key, cents integer not null, written integer not null default 1);
create table if not exists sales.ledger (day date primary key, cents integer not null);
"""


class Warehouse:
    """The statements of the business."""

    def __init__(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        self._connection = connection

    async def send(self, day: date, shop: str, lines: Sequence[str]) -> None:
        """Store the file of a shop, or replace it."""
        await self._connection.execute(
            "insert into sales.file values ($1, $2, $3) on conflict (day, shop) do update set lines = excluded.lines",
            day,
            shop,
            list(lines),
        )

    async def shops_of(self, day: date) -> list[str]:
        """Return the shops that have sent a file."""
        return [
            row[0]
            for row in await self._connection.fetch("select shop from sales.file where day = $1 order by shop", day)
        ]

    async def lines_of(self, day: date, shop: str) -> list[str]:
        """Return the lines of a file."""
        return await self._connection.fetchval("select lines from sales.file where day = $1 and shop = $2", day, shop)

    async def load(self, day: date, shop: str, cents: int) -> int:
        """Store the sum of a file, or replace it; return it."""
        return await self._connection.fetchval(
            "insert into sales.loaded values ($1, $2, $3) on conflict (day, shop) do update set cents = excluded.cents returning cents",
            day,
            shop,
            cents,
        )

    async def write_report(self, day: date, cents: int) -> int:
        """Store the report of a day, or replace it; return its sum."""
        return await self._connection.fetchval(
            "insert into sales.report values ($1, $2) on conflict (day)"
            " do update set cents = excluded.cents, written = report.written + 1 returning cents",
            day,
            cents,
        )

    async def sum_up(self, days: Sequence[date]) -> None:
        """Enter the sums of days into the ledger, or replace them."""
        await self._connection.execute(
            "insert into sales.ledger select day, sum(cents) from sales.loaded where day = any ($1) group by day"
            " on conflict (day) do update set cents = excluded.cents",
            list(days),
        )

    async def ledger_days(self) -> int:
        """Return how many days are in the ledger."""
        return await self._connection.fetchval("select count(*) from sales.ledger")

    async def books(self) -> str:
        """Return what the reports say."""
        row = await self._connection.fetchrow(
            "select count(*), coalesce(sum(cents), 0), coalesce(sum(written), 0) from sales.report"
        )
        assert row is not None  # noqa: S101 — an aggregate has one row
        return f"{row[0]} reports of {row[1]} cents, written {row[2]} times"


@asynccontextmanager
async def connected() -> AsyncGenerator[Warehouse]:
    """The warehouse in the database that Horai lives in. `horai worker` names it in the environment of its functions."""
    connection = await asyncpg.connect(os.environ[URL])
    try:
        yield Warehouse(connection)
    finally:
        await connection.close()


async def make_tables() -> None:
    """Make the tables if they are not there."""
    connection = await asyncpg.connect(os.environ[URL])
    try:
        await connection.execute(TABLES)
    finally:
        await connection.close()
