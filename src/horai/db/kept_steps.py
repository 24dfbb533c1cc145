"""Puts that keep the records of durable functions: one function per statement of sql/kept_steps.sql."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from horai.db.catalog import sql
from horai.db.pool import TenantWrite


@asynccontextmanager
async def keeping_steps(connection: TenantWrite) -> AsyncGenerator[None]:
    """Leave the records of instances as they are that are moved in this block of the caller's transaction."""
    await connection.execute(sql("keep_steps"), "on")
    yield
    await connection.execute(sql("keep_steps"), "off")  # after an error, the transaction ends, and the setting with it


async def carry_steps(connection: TenantWrite, successors: Mapping[int, int]) -> None:
    """Give the records of superseded instances to their successors, with their signals and children."""
    await connection.execute(sql("carry_steps"), list(successors), list(successors.values()))
