"""The databases of the test server: one migrated template, and short-lived copies of it."""

import asyncio
import os
from collections.abc import Generator
from contextlib import contextmanager

import asyncpg

from horai.db.embedded import EmbeddedPostgres

TEMPLATE = "horai_template"


def url_for(server: EmbeddedPostgres, database: str) -> str:
    """Another database of the same server."""
    return server.url.replace("/horai?", f"/{database}?")


@contextmanager
def fresh_database(server: EmbeddedPostgres, template: str = TEMPLATE) -> Generator[str]:
    """The URL of a new database, which is dropped afterwards."""
    name = f"t{os.urandom(6).hex()}"

    async def admin(statement: str) -> None:
        connection = await asyncpg.connect(server.url)
        await connection.execute(statement)
        await connection.close()

    asyncio.run(admin(f"create database {name} template {template}"))
    try:
        yield url_for(server, name)
    finally:
        asyncio.run(admin(f"drop database if exists {name} with (force)"))
