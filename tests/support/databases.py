"""The databases of the test server: one migrated template, and short-lived copies of it."""

import asyncio
import os
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache

import asyncpg

from horai.db.pool import Dedicated
from horai.embedded import EmbeddedPostgres

TEMPLATE = "horai_template"


def url_for(server: EmbeddedPostgres, database: str) -> str:
    """Another database of the same server."""
    return server.url.replace("/horai?", f"/{database}?")


class Admin:
    """One connection for all that makes and drops databases, in a loop that stands still in between.

    A new one each time, and a loop with it, would take as long as the statement.
    """

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._connection: Dedicated = self._runner.run(asyncpg.connect(url))

    def execute(self, statement: str) -> None:
        self._runner.run(self._connection.execute(statement))

    def close(self) -> None:
        self._runner.run(self._connection.close())
        self._runner.close()


@cache
def admin_of(server: EmbeddedPostgres) -> Admin:
    """Return the admin connection of this server; close it before you stop the server."""
    return Admin(server.url)


@contextmanager
def fresh_database(server: EmbeddedPostgres, template: str = TEMPLATE) -> Generator[str]:
    """The URL of a new database, which is dropped afterwards."""
    name, admin = f"t{os.urandom(6).hex()}", admin_of(server)
    admin.execute(f"create database {name} template {template}")
    try:
        yield url_for(server, name)
    finally:
        admin.execute(f"drop database if exists {name} with (force)")
