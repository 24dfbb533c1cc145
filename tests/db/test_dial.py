"""Connections through `dial`: silent and closed hosts are passed over, and a silent peer is given up by TCP."""

import asyncio
import socket
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import asyncpg
import pytest

from faults.outside import BUSY
from faults.proxy import Proxy
from faults.sharing import Sharing
from horai.db.dial import HOST_LIMIT, KEEPALIVE_IDLE, USER_TIMEOUT_MS
from horai.db.pool import DatabaseUnreachable, Platform, acquire, close_pool, connect, open_pool, opened

MOMENT = 1.0


@pytest.fixture
def silent() -> Iterator[str]:
    """A host that accepts connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture
def closed() -> str:
    """A host that refuses connections."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return f"127.0.0.1:{listening.getsockname()[1]}"


def before(url: str, *hosts: str) -> str:
    """The URL with further hosts before its own."""
    parts = urlsplit(url)
    user, _, own = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{user}@{','.join([*hosts, own])}").geturl()


async def test_a_silent_and_a_closed_host_before_the_primary_cost_two_seconds_once(
    url: str, silent: str, closed: str
) -> None:
    async with Proxy(url).listening() as proxy:
        both = before(proxy.url, silent, closed)
        began = time.monotonic()
        first = await connect(both, "horai test")
        took = time.monotonic() - began
        second = await connect(both, "horai test")
        again = time.monotonic() - began - took

        assert await first.fetchval("select 1") == await second.fetchval("select 1") == 1
        assert took < HOST_LIMIT + MOMENT + BUSY
        assert again < MOMENT + BUSY / 10
        await asyncio.gather(first.close(), second.close())


async def test_a_pool_reaches_the_primary_behind_a_silent_host(url: str, silent: str) -> None:
    async with Proxy(url).listening() as proxy:
        pool = await open_pool(before(proxy.url, silent), "horai test", 2)
        try:
            async with acquire(pool) as connection:
                assert await connection.fetchval("select 1") == 1
        finally:
            await close_pool(pool)


async def test_each_host_is_named_with_its_reason_when_none_can_be_used(closed: str) -> None:
    with pytest.raises(DatabaseUnreachable) as refused:
        async with opened(f"postgresql://horai@{closed},127.0.0.1:1/horai", "horai test"):
            pass

    assert f"{closed}: " in refused.value.detail
    assert "127.0.0.1:1: " in refused.value.detail


async def test_tcp_gives_up_a_silent_peer_after_seconds(url: str) -> None:
    async with Proxy(url).listening() as proxy:
        connection = await connect(proxy.url, "horai test")
        transport = connection._transport
        with socket.socket(fileno=socket.dup(transport.get_extra_info("socket").fileno())) as opened_socket:
            assert opened_socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            if hasattr(socket, "TCP_USER_TIMEOUT"):  # not on macOS
                limit = opened_socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
                idle = opened_socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
                assert (limit, idle) == (USER_TIMEOUT_MS, KEEPALIVE_IDLE)
        await connection.close()


async def test_pooled_connections_are_replaced_after_a_write_to_a_read_only_server(url: str) -> None:
    pool = await open_pool(url, "horai test", 2)
    try:
        async with acquire(pool) as one, acquire(pool) as other:
            demoted = {one.get_server_pid(), other.get_server_pid()}
            for connection in (one, other):
                await connection.execute("set default_transaction_read_only = on")
        with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
            async with acquire(pool) as connection:
                await connection.execute("create table made ()")

        async with acquire(pool) as one, acquire(pool) as other:
            assert not demoted & {one.get_server_pid(), other.get_server_pid()}
            await one.execute("create table made ()")
    finally:
        await close_pool(pool)


async def test_a_pooler_that_shares_sessions_by_transaction_is_refused_with_the_reason(url: str) -> None:
    async with Sharing(url).listening() as shared:
        with pytest.raises(DatabaseUnreachable, match="transaction or statement pooling") as refused:
            async with opened(shared, "horai test"):
                pass

    assert refused.value.hint is not None
    assert "pool_mode = session" in refused.value.hint


async def test_a_role_without_privileges_can_read_the_identity_of_a_server(connection: Platform) -> None:
    async with connection.transaction():
        await connection.execute("create role horai_plain")
        for function in (
            "pg_control_system()",
            "pg_current_wal_lsn()",
            "pg_walfile_name(pg_lsn)",
            "pg_is_in_recovery()",
        ):
            may = "select has_function_privilege('horai_plain', $1::text, 'execute')"
            assert await connection.fetchval(may, function), function
        await connection.execute("drop role horai_plain")
