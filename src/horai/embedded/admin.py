"""The administration of an embedded server: its superuser migrates, and every other session of Horai is a plain login."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from horai.db.isolation import make_login
from horai.db.pool import Platform, opened
from horai.db.urls import hosts_of
from horai.embedded.sockets import NODE_LOGIN, SUPERUSER

SEARCH_PATH = "pg_catalog, pg_temp"
"""The login of nodes may create functions and operators in `public`: no statement of the superuser must find them."""


def is_embedded(url: str) -> bool:
    """Return whether the URL is that of nodes of an embedded server: its login, over a socket."""
    hosts = hosts_of(url, {})
    return urlsplit(url).username == NODE_LOGIN and bool(hosts) and all(host.is_socket for host in hosts)


def admin_url(url: str) -> str:
    """Return the URL of the superuser of an embedded server.

    The directory of the socket decides on access: each process that can enter it may use either URL.
    """
    return urlsplit(url)._replace(netloc=f"{SUPERUSER}@").geturl()


@asynccontextmanager
async def opened_for_migrations(url: str) -> AsyncGenerator[Platform]:
    """Open a connection that may migrate: of the superuser if the server is embedded, else of the login of the URL.

    An embedded server that an earlier version of Horai started gets its login for nodes here.
    """
    if not is_embedded(url):
        async with opened(url, "horai migrate") as connection:
            yield connection
        return
    async with opened(admin_url(url), "horai migrate") as connection:
        await connection.execute(f"set search_path = {SEARCH_PATH}")
        await make_login(connection, NODE_LOGIN)
        yield connection
