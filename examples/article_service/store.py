"""The service's own tables. Every change of an article is one guarded statement: zero rows if another was first."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import asyncpg

from .articles import MOVABLE, Article, IllegalMove, Status, sources

SCHEMA = Path(__file__).with_name("schema.sql")
APPLICATION = "article service"


class NoSuchArticle(Exception):
    """There is no article of this id."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One attempt of Horai to have something done: which one, of which business unit, and how new it is."""

    idempotency_key: str
    unit: str
    attempt: int
    fence: int
    article_id: int
    version: int


@dataclass(frozen=True, slots=True)
class Receipt:
    """The effect of a delivery."""

    idempotency_key: str
    unit: str
    attempt: int
    fence: int
    effect: str | None


class Store:
    """Articles and the calls about them."""

    def __init__(self, pool: "asyncpg.Pool[asyncpg.Record]") -> None:
        self._pool = pool

    async def write(self, title: str, text: str, publish_at: datetime) -> Article:
        """A new draft."""
        statement = "insert into article (title, text, publish_at) values ($1, $2, $3) returning *"
        (row,) = await self._pool.fetch(statement, title, text, publish_at)
        return _article(row)

    async def find(self, article_id: int) -> Article:
        """The article as it is now."""
        row = await self._pool.fetchrow("select * from article where id = $1", article_id)
        if row is None:
            raise NoSuchArticle(f"There is no article {article_id}.")
        return _article(row)

    async def move(self, article_id: int, to: Status) -> Article:
        """An author's or the auditors' move; `IllegalMove` when the article is elsewhere."""
        statement = (
            "update article set status = $2, version = version + 1 where id = $1 and status = any($3) returning *"
        )
        return await self._moved(article_id, await self._pool.fetch(statement, article_id, to, list(sources(to))))

    async def move_publish_time(self, article_id: int, publish_at: datetime) -> Article:
        """A change of mind, possible until it is published."""
        statement = (
            "update article set publish_at = $2, version = version + 1 where id = $1 and status = any($3) returning *"
        )
        return await self._moved(article_id, await self._pool.fetch(statement, article_id, publish_at, list(MOVABLE)))

    async def _moved(self, article_id: int, rows: list[asyncpg.Record]) -> Article:
        if not rows:
            found = await self.find(article_id)
            raise IllegalMove(f"Article {article_id} is {found.status}.")
        return _article(rows[0])

    async def publish(self, delivery: Delivery) -> bool:
        """AUDIT_SUCCESS → PUBLISHED, once; whether this delivery did it.

        Not when the article is elsewhere, when its time was moved since this delivery was planned, or when a newer
        attempt has arrived: Horai has given this one up, and only the newer one's answer counts.
        """
        statement = (
            "update article set status = $3, version = version + 1, told = version + 1"
            " where id = $1 and version = $2 and status = any($4)"
            " and not exists (select from delivery where idempotency_key = $5 and fence > $6)"
        )
        moved = (delivery.article_id, delivery.version, Status.PUBLISHED, list(sources(Status.PUBLISHED)))
        done = await self._pool.execute(statement, *moved, delivery.idempotency_key, delivery.fence)
        return done == "UPDATE 1"

    async def arrived(self, delivery: Delivery) -> None:
        """Keeps that a call came; the same one twice is one row."""
        await self._pool.execute(
            "insert into delivery (idempotency_key, fence, unit, attempt, article_id) values ($1, $2, $3, $4, $5)"
            " on conflict do nothing",
            *(delivery.idempotency_key, delivery.fence, delivery.unit, delivery.attempt, delivery.article_id),
        )

    async def ended(self, delivery: Delivery, effect: str) -> None:
        """Keeps what it did."""
        await self._pool.execute(
            "update delivery set effect = $3 where idempotency_key = $1 and fence = $2",
            *(delivery.idempotency_key, delivery.fence, effect),
        )

    async def receipts(self, article_id: int) -> list[Receipt]:
        """All calls about an article, in the order of their arrival."""
        rows = await self._pool.fetch(
            "select idempotency_key, unit, attempt, fence, effect from delivery where article_id = $1"
            " order by arrived_at, fence",
            article_id,
        )
        return [Receipt(**row) for row in rows]

    async def untold(self) -> list[Article]:
        """The articles whose latest change Horai has not taken in."""
        rows = await self._pool.fetch("select * from article where told < version order by id limit 1000")
        return [_article(row) for row in rows]

    async def tell(self, article: Article) -> None:
        """Horai has taken in this version."""
        await self._pool.execute(
            "update article set told = $2 where id = $1 and told < $2", article.id, article.version
        )


def _article(row: asyncpg.Record) -> Article:
    article = Article(**row)
    return replace(article, status=Status(article.status))


@asynccontextmanager
async def open_store(url: str) -> AsyncGenerator[Store]:
    """The service's database, with its tables."""
    settings = {"application_name": APPLICATION}
    async with asyncpg.create_pool(url, min_size=1, max_size=10, server_settings=settings) as pool:
        await pool.execute(SCHEMA.read_text())
        yield Store(pool)
