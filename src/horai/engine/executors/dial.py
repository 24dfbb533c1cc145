"""Outgoing connections to callback hosts, with every address checked when it is dialled. Horai has no other way out.

A name is resolved once, each answer is checked, and only an answer that passed is dialled: a name that resolves
differently a moment later gains nothing. The socket itself is made only for a permitted address, so that neither an
address written in the URL nor a later version of the library bypasses the check.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache

from aiohttp import ClientRequest, ClientSession, ClientTimeout, ConnectionTimeoutError, DummyCookieJar, TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from horai.core.addresses import AddressPolicy, TenantReach, is_loopback
from horai.engine.executors.lookups import Lookup, Lookups

ADDRESSES_REMEMBERED_FOR = 10.0
"""Seconds. Short, so that a host that moves is followed."""
IDLE_CONNECTION_KEPT_FOR = 4
"""Seconds. Less than the 5 s after which many servers close: sending into a closing connection fails an attempt."""


SESSIONS_KEPT = 64
AddrInfo = tuple[int, int, int, str, tuple[object, ...]]
"""An entry of `socket.getaddrinfo`: family, type, protocol, canonical name, socket address."""


class AddressRefused(Exception):
    """No address of the host is permitted, so nothing was dialled. `is_loopback`: all of them are of this machine."""

    def __init__(self, addresses: Iterable[str] = ()) -> None:
        super().__init__()
        self.is_loopback = all(is_loopback(address) for address in addresses)


calling_tenant: ContextVar[str] = ContextVar("calling_tenant", default="")
"""The tenant of the call that this task makes: its lookups have bounds of their own."""


class CheckedResolver(AbstractResolver):
    """A resolver that returns only permitted addresses. It checks every answer when it is used, also a cached one."""

    def __init__(self, policy: AddressPolicy, lookups: Lookups[list[ResolveResult]] | None = None) -> None:
        self._policy = policy
        self._lookups = lookups or new_lookups()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the permitted addresses of `host`. Raise `AddressRefused` if it has addresses, but none permitted."""
        answers = await self._lookups.find(Lookup(host, port, family), calling_tenant.get())
        permitted = [answer for answer in answers if self._policy.permits(answer["host"])]
        if not permitted:
            raise AddressRefused(answer["host"] for answer in answers)
        return permitted

    async def close(self) -> None:
        """Stop waiting for lookups under way."""
        self._lookups.close()


def callback_session(policy: AddressPolicy, resolver: CheckedResolver) -> ClientSession:
    """Open a session for callbacks: no proxy, cookies, decompression or repeated sending, and no limit across hosts."""

    def checked_socket(info: AddrInfo) -> socket.socket:
        family, kind, protocol, _, address = info
        if not policy.permits(str(address[0])):
            raise AddressRefused([str(address[0])])
        return socket.socket(family, kind, protocol)

    connector = TCPConnector(
        limit=0,
        resolver=resolver,
        use_dns_cache=False,  # it would make a tenant wait for a lookup that another tenant's bounds delay
        keepalive_timeout=IDLE_CONNECTION_KEPT_FOR,
        socket_factory=checked_socket,
    )
    session = ClientSession(connector=connector, cookie_jar=DummyCookieJar(), trust_env=False, auto_decompress=False)
    # aiohttp would send a PUT, GET or DELETE once more when the connection breaks: an attempt is one request.
    session._retry_connection = False  # pyright: ignore[reportPrivateUsage]
    return session


def _tls_with_http2() -> ssl.SSLContext:
    """Return the settings of TLS for connections of our own: the target chooses between HTTP/2 and HTTP/1.1."""
    return _tls_that_trusts(ssl.get_default_verify_paths())


@cache
def _tls_that_trusts(_: ssl.DefaultVerifyPaths) -> ssl.SSLContext:
    """Return the settings that trust the system's authorities, once per process and place of their certificates.

    OpenSSL parses all of them again for each context: 15 ms of CPU time or more, and a node opens three kinds of sessions.
    """
    context = ssl.create_default_context()
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


def is_http2(transport: asyncio.Transport) -> bool:
    """Return whether the target has chosen HTTP/2."""
    tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
    return tls is not None and tls.selected_alpn_protocol() == "h2"


@dataclass(slots=True)
class _LentSession:
    """The session of one reach, its resolver, and the calls that use it now."""

    session: ClientSession
    resolver: CheckedResolver
    calls: int = 0


class CallbackSessions:
    """The sessions for callbacks, one for each reach: an open connection is never used by a tenant that may not dial it.

    Tenants with the same reach share a session; beyond `SESSIONS_KEPT`, those that are not used are closed.
    """

    def __init__(self, policy: AddressPolicy) -> None:
        self._policy = policy
        self._lookups = new_lookups()
        self._tls = _tls_with_http2()
        self._lines: dict[TenantReach, _LentSession] = {}

    async def connect(
        self, reach: TenantReach, url: URL, timeout: ClientTimeout
    ) -> tuple[asyncio.Transport, Callable[[], None]]:
        """Open a connection that belongs to its caller. Return it, and the function that closes it.

        Its session stays open as long as the connection.
        """
        line = self._line(reach)
        line.calls += 1
        request = ClientRequest("GET", url, loop=asyncio.get_running_loop(), session=line.session, ssl=self._tls)
        try:
            assert line.session.connector is not None  # noqa: S101 — an open session has one
            connection = await line.session.connector.connect(request, [], timeout)
        except TimeoutError as error:
            line.calls -= 1
            raise ConnectionTimeoutError from error
        except BaseException:
            line.calls -= 1
            raise

        is_lent = True

        def close() -> None:
            nonlocal is_lent
            line.calls -= is_lent
            is_lent = False
            connection.close()

        if len(self._lines) > SESSIONS_KEPT:
            await self._close_unused()
        transport = connection.transport
        if transport is None:
            close()
            raise ConnectionResetError
        return transport, close

    @asynccontextmanager
    async def session(self, reach: TenantReach) -> AsyncGenerator[ClientSession]:
        """Lend the session of a reach to one call."""
        line = self._line(reach)
        line.calls += 1
        try:
            yield line.session
        finally:
            line.calls -= 1
            if len(self._lines) > SESSIONS_KEPT:
                await self._close_unused()

    def resolver(self, reach: TenantReach) -> CheckedResolver:
        """Return the resolver of a reach, for connections that are not HTTP."""
        return self._line(reach).resolver

    def _line(self, reach: TenantReach) -> _LentSession:
        line = self._lines.pop(reach, None)
        if line is None:
            policy = self._policy.within(reach)
            resolver = CheckedResolver(policy, self._lookups)
            line = _LentSession(callback_session(policy, resolver), resolver)
        self._lines[reach] = line  # the newest entry is the last used one
        return line

    async def _close_unused(self) -> None:
        unused = [reach for reach, line in self._lines.items() if not line.calls]
        for reach in unused[: len(self._lines) - SESSIONS_KEPT]:
            await self._lines.pop(reach).session.close()

    async def close(self) -> None:
        """Close every session; calls under way fail."""
        self._lookups.close()  # the connectors do not close a resolver that they were given
        while self._lines:
            _, line = self._lines.popitem()
            await line.session.close()


@asynccontextmanager
async def single_session(policy: AddressPolicy) -> AsyncGenerator[ClientSession]:
    """Open a session for a call of the operator, which no tenant shares."""
    sessions = CallbackSessions(policy)
    try:
        async with sessions.session(TenantReach()) as session:
            yield session
    finally:
        await sessions.close()


def new_lookups() -> Lookups[list[ResolveResult]]:
    """Return the lookups of one process."""
    return Lookups(_look_up, ADDRESSES_REMEMBERED_FOR)


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
