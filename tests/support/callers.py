"""Callers with a transaction of their own: one for each kind of connection that `conn=` takes."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import asyncpg
import django
import psycopg
import sqlalchemy
from django.conf import settings as django_settings
from django.db import connection as django_connection
from django.db import connections as django_connections
from django.db import transaction as django_transaction
from psycopg.rows import dict_row
from sqlalchemy import orm
from sqlalchemy.ext import asyncio as sqlalchemy_asyncio

from horai.db.caller_transaction import Query
from horai.sdk import drivers

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Caller:
    """A connection, and how its owner uses it. `runner` is where an asynchronous one lives."""

    conn: Any
    begin: Callable[[], object]
    execute: Callable[[str], object]
    commit: Callable[[], object]
    rollback: Callable[[], object]
    runner: asyncio.Runner

    def ask(self, question: Query[T]) -> T:
        """As the SDK does."""
        if drivers.is_sync(self.conn):
            return drivers.fetch_now(self.conn, question)
        return self.runner.run(drivers.fetch(self.conn, question))


def _nothing() -> None:
    """These begin by themselves, with the first statement."""


def _asyncpg(conn: Any, runner: asyncio.Runner) -> Caller:
    def run(statement: str) -> object:
        return runner.run(conn.execute(statement))

    return Caller(conn, lambda: run("begin"), run, lambda: run("commit"), lambda: run("rollback"), runner)


@contextmanager
def asyncpg_connection(url: str, runner: asyncio.Runner) -> Generator[Caller]:
    conn = runner.run(asyncpg.connect(url))
    yield _asyncpg(conn, runner)
    runner.run(conn.close())


@contextmanager
def asyncpg_pooled(url: str, runner: asyncio.Runner) -> Generator[Caller]:
    async def open_pool() -> Any:
        return await asyncpg.create_pool(url, min_size=0, max_size=1)

    pool = runner.run(open_pool())

    async def acquire() -> Any:
        return await pool.acquire()

    conn = runner.run(acquire())
    yield _asyncpg(conn, runner)
    runner.run(pool.release(conn))
    runner.run(pool.close())


@contextmanager
def psycopg_connection(url: str, runner: asyncio.Runner) -> Generator[Caller]:
    """One that has rows of its own kind."""
    with psycopg.connect(url, row_factory=cast("Any", dict_row)) as conn:
        yield Caller(conn, _nothing, lambda text: conn.execute(text.encode()), conn.commit, conn.rollback, runner)


@contextmanager
def psycopg_raw_cursors(url: str, runner: asyncio.Runner) -> Generator[Caller]:
    """One whose cursors write placeholders in another way."""
    with psycopg.connect(url, cursor_factory=psycopg.RawCursor) as conn:
        yield Caller(conn, _nothing, lambda text: conn.execute(text.encode()), conn.commit, conn.rollback, runner)


@contextmanager
def psycopg_async(url: str, runner: asyncio.Runner) -> Generator[Caller]:
    conn = runner.run(psycopg.AsyncConnection.connect(url, row_factory=cast("Any", dict_row)))
    yield Caller(
        conn,
        _nothing,
        lambda text: runner.run(conn.execute(text.encode())),
        lambda: runner.run(conn.commit()),
        lambda: runner.run(conn.rollback()),
        runner,
    )
    runner.run(conn.close())


def _address(url: str, driver: str) -> sqlalchemy.URL:
    return sqlalchemy.make_url(url).set(drivername=f"postgresql+{driver}")


def _blocking(conn: Any, runner: asyncio.Runner) -> Caller:
    return Caller(conn, _nothing, lambda text: conn.execute(sqlalchemy.text(text)), conn.commit, conn.rollback, runner)


def _waiting(conn: Any, runner: asyncio.Runner) -> Caller:
    return Caller(
        conn,
        _nothing,
        lambda text: runner.run(conn.execute(sqlalchemy.text(text))),
        lambda: runner.run(conn.commit()),
        lambda: runner.run(conn.rollback()),
        runner,
    )


@contextmanager
def sqlalchemy_connection(url: str, runner: asyncio.Runner) -> Generator[Caller]:
    engine = sqlalchemy.create_engine(_address(url, "psycopg"))
    with engine.connect() as conn:
        yield _blocking(conn, runner)
    engine.dispose()


@contextmanager
def sqlalchemy_session(url: str, runner: asyncio.Runner) -> Generator[Caller]:
    engine = sqlalchemy.create_engine(_address(url, "psycopg"))
    with orm.Session(engine) as session:
        yield _blocking(session, runner)
    engine.dispose()


@contextmanager
def sqlalchemy_scoped_session(url: str, runner: asyncio.Runner) -> Generator[Caller]:
    engine = sqlalchemy.create_engine(_address(url, "psycopg"))
    session = orm.scoped_session(orm.sessionmaker(engine))
    yield _blocking(session, runner)
    session.remove()
    engine.dispose()


def _async_connection(driver: str) -> "Opening":
    @contextmanager
    def opened(url: str, runner: asyncio.Runner) -> Generator[Caller]:
        engine = sqlalchemy_asyncio.create_async_engine(_address(url, driver))

        async def connect() -> Any:
            return await engine.connect()

        conn = runner.run(connect())
        yield _waiting(conn, runner)
        runner.run(conn.close())
        runner.run(engine.dispose())

    return opened


def _async_session(driver: str) -> "Opening":
    @contextmanager
    def opened(url: str, runner: asyncio.Runner) -> Generator[Caller]:
        engine = sqlalchemy_asyncio.create_async_engine(_address(url, driver))
        session = sqlalchemy_asyncio.AsyncSession(engine)
        yield _waiting(session, runner)
        runner.run(session.close())
        runner.run(engine.dispose())

    return opened


@contextmanager
def sqlalchemy_async_scoped_session(url: str, runner: asyncio.Runner) -> Generator[Caller]:
    engine = sqlalchemy_asyncio.create_async_engine(_address(url, "asyncpg"))
    made = sqlalchemy_asyncio.async_sessionmaker(engine)
    session = sqlalchemy_asyncio.async_scoped_session(made, scopefunc=lambda: None)
    yield _waiting(session, runner)
    runner.run(session.remove())
    runner.run(engine.dispose())


@contextmanager
def django_opened(url: str) -> Generator[None]:
    """`django.db.connection` leads to this database."""
    address = sqlalchemy.make_url(url)
    database = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": address.database,
        "USER": address.username,
        "HOST": address.query["host"],
        "PORT": address.query["port"],
    }
    if not django_settings.configured:
        django_settings.configure(DATABASES={"default": dict(database)}, USE_TZ=False)
        django.setup()
    django_connections["default"].settings_dict.update(database)
    yield
    django_connection.close()


def _django(conn: Any, runner: asyncio.Runner) -> Generator[Caller]:
    atomic: Any = django_transaction.atomic()

    def execute(statement: str) -> None:
        with conn.cursor() as cursor:
            cursor.execute(statement)

    def roll_back() -> None:
        django_transaction.set_rollback(True)
        atomic.__exit__(None, None, None)

    yield Caller(conn, atomic.__enter__, execute, lambda: atomic.__exit__(None, None, None), roll_back, runner)


@contextmanager
def django_proxy(url: str, runner: asyncio.Runner) -> Generator[Caller]:
    with django_opened(url):
        yield from _django(django_connection, runner)


@contextmanager
def django_wrapper(url: str, runner: asyncio.Runner) -> Generator[Caller]:
    with django_opened(url):
        yield from _django(django_connections["default"], runner)


Opening = Callable[[str, asyncio.Runner], AbstractContextManager[Caller]]

KINDS: dict[str, Opening] = {
    "asyncpg": asyncpg_connection,
    "asyncpg_pool": asyncpg_pooled,
    "psycopg": psycopg_connection,
    "psycopg_raw": psycopg_raw_cursors,
    "psycopg_async": psycopg_async,
    "sqlalchemy_connection": sqlalchemy_connection,
    "sqlalchemy_session": sqlalchemy_session,
    "sqlalchemy_scoped_session": sqlalchemy_scoped_session,
    "sqlalchemy_async_connection_asyncpg": _async_connection("asyncpg"),
    "sqlalchemy_async_connection_psycopg": _async_connection("psycopg"),
    "sqlalchemy_async_session_asyncpg": _async_session("asyncpg"),
    "sqlalchemy_async_session_psycopg": _async_session("psycopg"),
    "sqlalchemy_async_scoped_session": sqlalchemy_async_scoped_session,
    "django_proxy": django_proxy,
    "django_wrapper": django_wrapper,
}
