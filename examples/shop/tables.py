"""The business: its tables, in a schema of their own beside Horai's in one database. So one transaction covers both."""

import os
from enum import StrEnum

import asyncpg
from sqlalchemy import CheckConstraint, ForeignKey, MetaData, text
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

SCHEMA = "shop"
URL = "HORAI_DATABASE_URL"


class Status(StrEnum):
    """PLACED → RESERVED → SHIPPED, or CANCELLED from either of the first two."""

    PLACED = "PLACED"
    RESERVED = "RESERVED"
    SHIPPED = "SHIPPED"
    CANCELLED = "CANCELLED"


class Table(DeclarativeBase):
    """All of ours."""

    metadata = MetaData(schema=SCHEMA)


class Product(Table):
    """A product; `stock` is what is neither sold nor reserved."""

    __tablename__ = "product"
    __table_args__ = (CheckConstraint("stock >= 0"),)
    name: Mapped[str] = mapped_column(primary_key=True)
    cents: Mapped[int]
    stock: Mapped[int]


class Order(Table):
    """An order of one product."""

    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    product: Mapped[str] = mapped_column(ForeignKey(Product.name))
    quantity: Mapped[int]
    status: Mapped[str] = mapped_column(default=Status.PLACED)


class Transfer(Table):
    """A booking of the bank, positive to the shop. One per idempotency key."""

    __tablename__ = "transfer"
    key: Mapped[str] = mapped_column(primary_key=True)
    order_id: Mapped[int]
    cents: Mapped[int]


async def _connect() -> "asyncpg.Connection[asyncpg.Record]":
    """To the database that Horai lives in. `horai worker` names it in the environment of its functions."""
    return await asyncpg.connect(os.environ[URL], server_settings={"application_name": "shop"})


engine: AsyncEngine = create_async_engine("postgresql+asyncpg://", async_creator=_connect)
sessions: "async_sessionmaker[AsyncSession]" = async_sessionmaker(engine, expire_on_commit=False)


async def make_tables() -> None:
    """If they are not there."""
    async with engine.begin() as connection:
        await connection.execute(text(f"create schema if not exists {SCHEMA}"))
        await connection.run_sync(Table.metadata.create_all)
