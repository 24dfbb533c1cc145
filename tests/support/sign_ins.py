"""A browser that signs in: it follows no redirect by itself, and keeps its cookies as it is told."""

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlsplit

import harness
from harness import Client, Reply
from identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider
from keys import KeyHolder, holding

from horai.api.authentication import COOKIE
from horai.core.roles import AccessRole
from horai.core.settings import OidcSettings, ServerAccess
from horai.db.pool import opened
from horai.features.access.service import KeyWish, create_key_by_operator
from horai.features.oidc.routes_sign_in import BROWSER

BEGIN = "/api/v1/session/oidc"
CALLBACK = "/api/v1/session/oidc/callback"
SESSION = "/api/v1/session"


@dataclass(frozen=True, slots=True)
class Visit:
    """An answer with its cookies."""

    reply: Reply
    cookies: dict[str, str]

    @property
    def location(self) -> str:
        return self.reply.headers["Location"]


async def visit(api: Client, url: str, cookies: dict[str, str] | None = None, **headers: str) -> Visit:
    """Go to a page of the server or of the provider."""
    sent = {"Cookie": "; ".join(f"{name}={value}" for name, value in (cookies or {}).items()), **headers}
    address = url if url.startswith("http") else api.base + url
    async with api.session.get(address, headers=sent, allow_redirects=False) as response:
        found = SimpleCookie()
        for line in response.headers.getall("Set-Cookie", []):
            found.load(line)
        is_json = "json" in response.headers.get("content-type", "")
        reply = Reply(response.status, await response.json(content_type=None) if is_json else None, response.headers)
        return Visit(reply, {name: morsel.value for name, morsel in found.items()})


@dataclass(frozen=True, slots=True)
class Begun:
    """A sign-in that the provider has confirmed: the way back, and the cookie of the browser."""

    back: str
    cookies: dict[str, str]


async def begun(api: Client, return_to: str = "/jobs") -> Begun:
    """Begin a sign-in and confirm it at the provider."""
    started = await visit(api, f"{BEGIN}?returnTo={return_to}")
    assert started.reply.status == 303, started.reply.json
    confirmed = await visit(api, started.location)
    assert confirmed.reply.status == 302
    parts = urlsplit(confirmed.location)
    assert f"{parts.scheme}://{parts.netloc}" == api.base
    return Begun(f"{parts.path}?{parts.query}", {BROWSER: started.cookies[BROWSER]})


async def attempt(api: Client) -> Visit:
    """Sign in as far as the server lets it."""
    started = await begun(api)
    return await visit(api, started.back, started.cookies)


async def signed_in(api: Client) -> dict[str, str]:
    """The header of a new session of the provider's user."""
    done = await attempt(api)
    assert done.reply.status == 303, done.reply.json
    return {"Cookie": f"{COOKIE}={done.cookies[COOKIE]}"}


@dataclass(frozen=True, slots=True)
class Site:
    """A server with a provider, and its first admin of the platform."""

    api: Client
    provider: IdentityProvider
    root: KeyHolder

    async def map(self, group: str, role: str, tenant: str | None = None) -> dict[str, Any]:
        """Give a group a role."""
        body = {"group": group, "role": role, **({} if tenant is None else {"tenant": tenant})}
        reply = await self.root("POST", "/api/v1/groups", body)
        assert reply.status == 201, reply.json
        return reply.json


def free_port() -> int:
    """Return a port that is free now: the provider has to know the address of the server before it starts."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@asynccontextmanager
async def site(url: str, **settings: Any) -> AsyncGenerator[Site]:
    """Run a provider and a node that signs users in with it; the group ops is admin of the tenant `default`."""
    async with IdentityProvider() as provider:
        port = free_port()
        oidc = OidcSettings(provider.issuer, CLIENT_ID, CLIENT_SECRET, **settings)
        async with opened(url, "horai tests") as connection:
            root = await create_key_by_operator(connection, KeyWish(AccessRole.PLATFORM_ADMIN))
        access = ServerAccess(public_url=f"http://127.0.0.1:{port}", oidc=oidc)
        async with harness.node(url, access=access, port=port) as api:
            made = Site(api, provider, holding(api, root.text))
            await made.map("ops", "admin", "default")
            yield made
