"""An event loop that dials addresses which were checked, whatever a name means by then.

A name that is looked up once to be checked and once to be dialled may lead elsewhere the second time. asyncpg dials by name
and takes no address beside it; so the loop that it dials with does. The name stays what TLS asks for and checks.
"""

import asyncio
from collections.abc import Callable, Sequence
from ssl import SSLContext
from typing import Any, cast


def dialling(addresses: Sequence[str]) -> asyncio.AbstractEventLoop:
    """The running loop, but that its connections go to the first of the addresses that answers."""
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
        """As the loop's own; a cancel request of asyncpg's, which is a connection too, comes through here as well."""
        named: dict[str, Any] = {"ssl": ssl, "server_hostname": host} if ssl else {}
        *others, last = self._addresses
        for address in others:
            try:
                return await self._loop.create_connection(factory, address, port, **named)
            except OSError:  # it does not answer; another may
                continue
        return await self._loop.create_connection(factory, last, port, **named)

    async def create_unix_connection(self, *_: Any, **__: Any) -> Any:
        """Nobody checked a socket's path."""
        raise OSError("not a network address")
