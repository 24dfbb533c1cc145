"""The names by which clients may call the server, and the addresses of clients behind a proxy.

A web page in a user's browser can reach every server that the browser reaches, under a name of its own that resolves to
the server's address (DNS rebinding). So the server answers only to names that no other site can own: loopback names,
the host of its public URL and, if it listens beyond loopback, addresses.
"""

import ipaddress
import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from horai.core.settings import ServerAccess

LOOPBACK = re.compile(r"localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\]")
_PORT = re.compile(r":\d+$")


@dataclass(frozen=True, slots=True)
class HostRules:
    """The hosts that the server answers to, and the proxies that it trusts."""

    access: ServerAccess = field(default_factory=ServerAccess)
    is_beyond_loopback: bool = False

    def is_ours(self, host: str) -> bool:
        """Return whether the value of a `Host` header names this server."""
        name = _PORT.sub("", host.lower())
        if LOOPBACK.fullmatch(name) or (self.is_beyond_loopback and _is_address(name)):
            return True
        return self.access.public_url is not None and name == urlsplit(self.access.public_url).hostname

    def resolve_client(self, scope: Scope, headers: Headers) -> None:
        """Replace the client and the scheme of a request by what a trusted proxy says about them."""
        peer = scope.get("client")
        if not self.access.trusted_proxies or peer is None or not self._is_trusted(peer[0]):
            return
        hops = [hop.strip() for value in headers.getlist("x-forwarded-for") for hop in value.split(",")]
        for hop in reversed(hops):
            if not _is_address(hop):
                break
            scope["client"] = (hop, 0)
            if not self._is_trusted(hop):
                break
        if headers.get("x-forwarded-proto") in {"http", "https"}:
            scope["scheme"] = headers["x-forwarded-proto"]

    def _is_trusted(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self.access.trusted_proxies)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
