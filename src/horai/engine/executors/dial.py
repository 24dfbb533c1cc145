"""Outgoing connections to callback hosts, with every address checked when it is dialled. Horai has no other way out.

A name is resolved once, each answer is checked, and only an answer that passed is dialled: a name that resolves
differently a moment later gains nothing. The socket itself is made only for a permitted address, so that neither an
address written in the URL nor a later version of the library bypasses the check.
"""

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar

from aiohttp import ClientSession, DummyCookieJar, TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult

from horai.core.addresses import AddressPolicy
from horai.engine.executors.lookups import Lookup, Lookups

ADDRESSES_REMEMBERED_FOR = 10.0
"""Seconds. Short, so that a host that moves is followed."""
IDLE_CONNECTION_KEPT_FOR = 4
"""Seconds. Less than the 5 s after which many servers close: sending into a closing connection fails an attempt."""


AddrInfo = tuple[int, int, int, str, tuple[object, ...]]
"""An entry of `socket.getaddrinfo`: family, type, protocol, canonical name, socket address."""


class AddressRefused(Exception):
    """No address of the host is permitted, so nothing was dialled."""


calling_tenant: ContextVar[str] = ContextVar("calling_tenant", default="")
"""The tenant of the call that this task makes: its lookups have bounds of their own."""


class CheckedResolver(AbstractResolver):
    """A resolver that returns only permitted addresses. It checks every answer when it is used, also a cached one."""

    def __init__(self, policy: AddressPolicy) -> None:
        self._policy = policy
        self._lookups = Lookups(_look_up, ADDRESSES_REMEMBERED_FOR)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the permitted addresses of `host`. Raise `AddressRefused` if it has addresses, but none permitted."""
        answers = await self._lookups.find(Lookup(host, port, family), calling_tenant.get())
        permitted = [answer for answer in answers if self._policy.permits(answer["host"])]
        if not permitted:
            raise AddressRefused
        return permitted

    async def close(self) -> None:
        """Stop waiting for lookups under way."""
        self._lookups.close()


@asynccontextmanager
async def callback_session(policy: AddressPolicy) -> AsyncGenerator[ClientSession]:
    """Open a session for callbacks: no proxy, cookies, decompression or repeated sending, and no limit across hosts."""

    def checked_socket(info: AddrInfo) -> socket.socket:
        family, kind, protocol, _, address = info
        if not policy.permits(str(address[0])):
            raise AddressRefused
        return socket.socket(family, kind, protocol)

    resolver = CheckedResolver(policy)
    try:
        connector = TCPConnector(
            limit=0,
            resolver=resolver,
            use_dns_cache=False,  # it would make a tenant wait for a lookup that another tenant's bounds delay
            keepalive_timeout=IDLE_CONNECTION_KEPT_FOR,
            socket_factory=checked_socket,
        )
        async with ClientSession(
            connector=connector, cookie_jar=DummyCookieJar(), trust_env=False, auto_decompress=False
        ) as session:
            # aiohttp would send a PUT, GET or DELETE once more when the connection breaks: an attempt is one request.
            session._retry_connection = False  # pyright: ignore[reportPrivateUsage]
            yield session
    finally:
        await resolver.close()  # the connector does not close a resolver that it was given


def _look_up(host: str, port: int, family: int) -> list[ResolveResult]:
    try:
        found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    except UnicodeError as error:  # a label that cannot be sent to a name server
        raise socket.gaierror(socket.EAI_NONAME, "not a host name") from error
    return [
        ResolveResult(
            hostname=host,
            host=str(address[0]),
            port=port,
            family=kind,
            proto=protocol,
            flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
        )
        for kind, _, protocol, _, address in found
    ]
