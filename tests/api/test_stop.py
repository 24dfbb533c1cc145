"""A node that stops answers the requests under way and keeps no client waiting."""

import asyncio
import time
from urllib.parse import urlsplit

from databases import Superuser
from flows import until_waiting
from harness import Client, node

from horai.node import GRACE

JOB = {"name": "publish", "target": {"type": "http", "url": "http://127.0.0.1:9/hook"}}


async def until_refused(api: Client) -> None:
    """Return when the server accepts no connection any more."""
    parts = urlsplit(api.base)
    while True:
        try:
            _, writer = await asyncio.open_connection(parts.hostname, parts.port)
        except ConnectionRefusedError:
            return
        writer.close()
        await asyncio.sleep(0)


async def test_a_request_under_way_is_answered_before_the_node_ends(url: str, connection: Superuser) -> None:
    async with node(url) as api:
        assert (await api("POST", "/api/v1/jobs", JOB)).status == 201
        lock = connection.transaction()
        await lock.start()
        await connection.execute("select from horai.job for update")
        asked = asyncio.create_task(api("PATCH", "/api/v1/jobs/publish", {"timeout": "7s"}))
        await until_waiting(connection)

        async def let_through() -> None:
            await until_refused(api)
            assert not asked.done()
            await lock.rollback()

        letting = asyncio.create_task(let_through())
    await letting

    assert (await asked).status == 200
    assert (await asked).json["timeout"] == "7s"


async def test_a_client_that_keeps_its_connection_open_does_not_delay_the_stop(url: str) -> None:
    async with node(url) as api:
        parts = urlsplit(api.base)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        writer.write(b"GET /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert await reader.readuntil(b"\r\n") == b"HTTP/1.1 200 OK\r\n"
        begun = time.monotonic()
    assert time.monotonic() - begun < GRACE
    writer.close()
