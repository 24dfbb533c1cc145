"""Real PostgreSQL for every test: one embedded server per test process, one fresh database per test."""

import asyncio
import gc
import inspect
import os
import shutil
import signal
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import asyncpg
import pytest
from databases import (
    IS_SINGLE_ROLE,
    PARTITIONS_AHEAD,
    TEMPLATE,
    Superuser,
    admin_of,
    fresh_database,
    superuser,
    url_for,
)
from forked import end_nursery
from hypothesis import settings
from memory import keep_files_in_memory
from sizes import IS_LONG, examples
from turns import first_of_run

from horai.db.isolation import Isolation
from horai.db.migrate import migrate
from horai.db.nodes import make_partitions
from horai.db.pool import Platform, connect
from horai.embedded import EmbeddedPostgres, EmbeddedSettings
from horai.embedded.admin import admin_url

pytest_plugins = ["requirements.plugin"]

# A shell without job control starts what it runs in the background deaf to Ctrl-C, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Collecting the tests makes objects that stay until the end: to look through them for garbage is a tenth of that work.
gc.set_threshold(50_000, 20, 20)

keep_files_in_memory()

# What processes of the tests remember about servers ends with this run: a later one may use the same port.
_STATE = tempfile.TemporaryDirectory(prefix="horai-state-")
os.environ["HORAI_STATE_DIR"] = _STATE.name

# A busy machine is no fault of what is tested. In its short form a run does the same as the one before; the long one explores.
settings.register_profile("horai", deadline=None, derandomize=not IS_LONG, max_examples=examples(100))
settings.load_profile("horai")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the visits first, then the tests that wait for long: one process waits for them, and the others do the rest."""
    items.sort(key=lambda item: [item.get_closest_marker(name) is None for name in ("visits", "early")])


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """In a fresh clone one process compiles the tests, and the others read what it has written."""
    with first_of_run(session.config):
        return (yield)


def pytest_collection_finish() -> None:
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs `async def` tests, in the loop of the `runner` fixture where the test has one."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    running = pyfuncitem.funcargs.get("runner")
    if isinstance(running, asyncio.Runner):
        running.run(pyfuncitem.obj(**arguments))
    else:
        asyncio.run(pyfuncitem.obj(**arguments))
    return True


@pytest.fixture(scope="session", autouse=True)
def _cooled_down() -> Iterator[None]:
    yield
    end_nursery()


@pytest.fixture(scope="session")
def short_place() -> Iterator[Path]:
    """A directory that an unprivileged PostgreSQL can enter; pytest's own are for root alone."""
    place = Path(tempfile.mkdtemp(prefix="horai-tests-"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="module")
def module_place(short_place: Path) -> Path:
    """A new directory at each set-up of a module, to which a worker that steals tests may come back."""
    place = Path(tempfile.mkdtemp(prefix="module-", dir=short_place))
    place.chmod(0o755)
    return place


async def only_report(connection: Platform) -> None:
    """Let the governor only report: tests that fail attempts on purpose want their retries. Its own tests set thresholds."""
    await connection.execute("""update horai.governor set thresholds = '{"is_dry_run": true}'""")


@pytest.fixture(scope="session")
def postgres(short_place: Path) -> Iterator[EmbeddedPostgres]:
    """The server of this test process, with a migrated template database."""
    little = {"max_wal_size": "256MB", "min_wal_size": "80MB"}  # each new database is 10 MB of it
    little["autovacuum_naptime"] = "1min"  # a visit every 10 s reads the catalogs of databases that live for a second
    server = EmbeddedPostgres(EmbeddedSettings(short_place / "server", max_connections=300, extra=little))

    async def prepare() -> None:
        await server.start()
        admin = await asyncpg.connect(admin_url(server.url))
        await admin.execute(f"create database {TEMPLATE}")
        await admin.close()
        connection = await connect(url_for(server, TEMPLATE), "horai tests")
        await migrate(connection, isolation=Isolation(single_role=True) if IS_SINGLE_ROLE else None)
        await make_partitions(connection, PARTITIONS_AHEAD)
        await only_report(connection)
        await connection.close()

    asyncio.run(prepare())
    yield server
    admin_of(server).close()
    asyncio.run(server.stop())


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    """The event loop of one test."""
    with asyncio.Runner() as running:
        yield running


@pytest.fixture
def url(postgres: EmbeddedPostgres) -> Iterator[str]:
    """A fresh, migrated database."""
    with fresh_database(postgres) as made:
        yield made


@pytest.fixture
def connection(runner: asyncio.Runner, url: str) -> Iterator[Superuser]:
    """A connection to the fresh database, in the loop of the test."""
    opened = runner.run(superuser(url))
    yield opened
    if not opened.is_closed():
        opened.terminate()
