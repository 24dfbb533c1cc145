"""The business: its tables, in a schema of their own beside Horai's in one database. So one transaction covers both."""

import os
from datetime import datetime
from enum import StrEnum

import asyncpg
from sqlalchemy import DateTime, ForeignKey, MetaData, UniqueConstraint, text
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

SCHEMA = "exhibition"
URL = "HORAI_DATABASE_URL"


class Status(StrEnum):
    """SUBMITTED → APPROVED → ENROLLING; an exhibition may be withdrawn until enrolment has started."""

    SUBMITTED = "SUBMITTED"
    APPROVED = "APPROVED"
    ENROLLING = "ENROLLING"
    WITHDRAWN = "WITHDRAWN"


class Table(DeclarativeBase):
    """All of ours."""

    metadata = MetaData(schema=SCHEMA)


class Exhibition(Table):
    """`enrolment_at` is when visitors may enrol."""

    __tablename__ = "exhibition"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    status: Mapped[str] = mapped_column(default=Status.SUBMITTED)
    enrolment_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))


class Reservation(Table):
    """A visitor who wants to be told."""

    __tablename__ = "reservation"
    id: Mapped[int] = mapped_column(primary_key=True)
    exhibition_id: Mapped[int] = mapped_column(ForeignKey(Exhibition.id))
    visitor: Mapped[str]


class Letter(Table):
    """A letter to a visitor: one per exhibition, however often it is tried."""

    __tablename__ = "letter"
    __table_args__ = (UniqueConstraint("exhibition_id", "visitor"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    exhibition_id: Mapped[int]
    visitor: Mapped[str]


async def _connect() -> "asyncpg.Connection[asyncpg.Record]":
    """To the database that Horai lives in. `horai worker` names it in the environment of its functions."""
    return await asyncpg.connect(os.environ[URL], server_settings={"application_name": "exhibition"})


engine: AsyncEngine = create_async_engine("postgresql+asyncpg://", async_creator=_connect)
sessions: "async_sessionmaker[AsyncSession]" = async_sessionmaker(engine, expire_on_commit=False)


async def make_tables() -> None:
    """If they are not there."""
    async with engine.begin() as connection:
        await connection.execute(text(f"create schema if not exists {SCHEMA}"))
        await connection.run_sync(Table.metadata.create_all)
