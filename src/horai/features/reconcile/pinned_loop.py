"""An event loop that connects to checked addresses instead of resolving the name again.

A name that is resolved once for the check and once for the connection may resolve to another address the second time.
asyncpg connects by name and takes no separate address, so the loop that it uses replaces the name. TLS still requests
and verifies the name.
"""

import asyncio
from collections.abc import Callable, Sequence
from ssl import SSLContext
from typing import Any, cast


def dialling(addresses: Sequence[str]) -> asyncio.AbstractEventLoop:
    """Return the running loop with connections that go to the first of the addresses that answers."""
    return cast("asyncio.AbstractEventLoop", _Pinned(asyncio.get_running_loop(), addresses))


class _Pinned:
    def __init__(self, loop: asyncio.AbstractEventLoop, addresses: Sequence[str]) -> None:
        self._loop = loop
        self._addresses = addresses

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    async def create_connection(
        self, factory: Callable[[], Any], host: str, port: int, *, ssl: SSLContext | None = None
    ) -> Any:
        """Connect to one of the addresses.

        asyncpg also opens the connection of a cancel request through this method.
        """
        named: dict[str, Any] = {"ssl": ssl, "server_hostname": host} if ssl else {}
        *others, last = self._addresses
        for address in others:
            try:
                return await self._loop.create_connection(factory, address, port, **named)
            except OSError:  # this address does not answer; try the next
                continue
        return await self._loop.create_connection(factory, last, port, **named)

    async def create_unix_connection(self, *_: Any, **__: Any) -> Any:
        """Raise `OSError`: the path of a socket was not checked."""
        raise OSError("not a network address")
