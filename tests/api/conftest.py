"""One node, one database and one receiver per file: to start them for every test would cost more than the tests.

They live in the loop of `runner`, which stands still between tests; hence the long lease. Tests keep apart by the
names of their jobs (`given.name`).
"""

import asyncio
import os
from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import timedelta

import harness
import make
import pytest
from databases import Superuser, fresh_database, superuser
from harness import Client
from receiver import Receiver

from api import given
from api.repeat_recipes import ARCHIVE, World
from horai.core.encryption import KeyEncryptionKey
from horai.core.shards import Role
from horai.embedded import EmbeddedPostgres

SOME_KEY = KeyEncryptionKey(bytes(range(32)))


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    """The event loop of one file."""
    with asyncio.Runner() as running:
        yield running


@pytest.fixture(scope="module")
def database(postgres: EmbeddedPostgres) -> Iterator[str]:
    """The database of one file."""
    with fresh_database(postgres) as made:
        yield made


@pytest.fixture(scope="module")
def api(runner: asyncio.Runner, database: str) -> Iterator[Client]:
    """A client of a whole node on `database`."""
    stack = AsyncExitStack()
    node = harness.node(
        database, lease=timedelta(seconds=60), grace=timedelta(milliseconds=100), sources={"business": database}
    )
    yield runner.run(stack.enter_async_context(node))
    runner.run(stack.aclose())


@pytest.fixture(scope="module")
def receiver(runner: asyncio.Runner) -> Iterator[Receiver]:
    """A target; every test scripts paths of its own."""
    stack = AsyncExitStack()
    yield runner.run(stack.enter_async_context(Receiver()))
    runner.run(stack.aclose())


@pytest.fixture(scope="module")
def db(runner: asyncio.Runner, database: str) -> Iterator[Superuser]:
    """A connection of the test's own to `database`."""
    connection = runner.run(superuser(database, "horai api tests"))
    yield connection
    connection.terminate()


@pytest.fixture(scope="module")
def world(runner: asyncio.Runner, database: str, db: Superuser) -> Iterator[World]:
    """A server with the role `api` alone: nothing but the requests of a test changes the database."""
    stack = AsyncExitStack()

    async def build() -> World:
        served = harness.node(
            database,
            lease=timedelta(seconds=60),
            roles=frozenset({Role.api}),
            encryption_keys=(SOME_KEY,),
            archive_dir=ARCHIVE,
        )
        api = await stack.enter_async_context(served)
        scope = await stack.enter_async_context(make.scope(database))
        await given.job(
            api
        )  # it makes the default queue, and the rotation the first secret: tests count the rows of one request
        assert (await api("POST", "/api/v1/signing-secrets", {"expireOld": "0s"})).status == 201
        return World(api, db, scope, await make.node(db, timedelta(hours=1), "quiet-node"))

    os.environ["BUSINESS_DB_URL"] = database
    yield runner.run(build())
    runner.run(stack.aclose())
    del os.environ["BUSINESS_DB_URL"]
