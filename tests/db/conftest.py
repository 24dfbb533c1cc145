"""A database in which a bit of everything has happened, made once and copied for each test that breaks it."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import AsyncExitStack

import make
import pytest
from databases import TEMPLATE, url_for
from eventful_store import FILLED, Store, admin, live_a_little

from horai.db.pool import connect
from horai.embedded import EmbeddedPostgres


@pytest.fixture(scope="session")
def filled(postgres: EmbeddedPostgres) -> str:
    """A database in which a bit of everything has happened, to make copies of."""

    async def fill() -> None:
        await admin(postgres, f"create database {FILLED} template {TEMPLATE}")
        url = url_for(postgres, FILLED)
        connection = await connect(url, "horai test")
        async with make.scope(url) as scope:
            await live_a_little(Store(scope, connection, url))
        await connection.close()

    asyncio.run(fill())
    return FILLED


@pytest.fixture
def store(runner: asyncio.Runner, postgres: EmbeddedPostgres, filled: str) -> Iterator[Store]:
    name, stack = f"t{os.urandom(6).hex()}", AsyncExitStack()

    async def copy() -> Store:
        await admin(postgres, f"create database {name} template {filled} strategy file_copy")
        url = url_for(postgres, name)
        connection = await connect(url, "horai test")
        stack.callback(connection.terminate)
        return Store(await stack.enter_async_context(make.scope(url, size=2)), connection, url)

    async def drop() -> None:
        await stack.aclose()
        await admin(postgres, f"drop database {name} with (force)")

    yield runner.run(copy())
    runner.run(drop())
