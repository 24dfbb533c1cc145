"""An identity provider that speaks OpenID Connect over real HTTP, and can be told to misbehave."""

import asyncio
import base64
import hashlib
import hmac
import json
import secrets
import time
import warnings
from collections.abc import Awaitable, Callable
from typing import Any, Self
from urllib.parse import unquote_plus, urlencode

from aiohttp import web
from joserfc import jwt
from joserfc.errors import SecurityWarning
from joserfc.jwk import RSAKey
from rsa_keys import rsa_key

CLIENT_ID = "horai-console"
CLIENT_SECRET = "canary-client-secret"
Forge = Callable[[dict[str, Any], RSAKey], str]
"""Makes the ID token from the honest claims and the key of the provider."""


def signed(claims: dict[str, Any], key: Any, algorithm: str = "RS256", **header: Any) -> str:
    """An ID token with this signature."""
    names = {"alg": algorithm, **({} if key.kid is None else {"kid": key.kid}), **header}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)  # EdDSA has a new name, and providers use the old one
        return jwt.encode(names, claims, key, [algorithm])


def unsigned(claims: dict[str, Any]) -> str:
    """An ID token that says that it needs no signature."""
    return f"{_base64url(json.dumps({'alg': 'none'}).encode())}.{_base64url(json.dumps(claims).encode())}."


def signed_with_public_key(claims: dict[str, Any], key: RSAKey) -> str:
    """An ID token signed by HS256 with the text of the public key as the secret, by hand: libraries refuse to do it."""
    parts = ({"alg": "HS256", "kid": key.kid, "typ": "JWT"}, claims)
    text = ".".join(_base64url(json.dumps(part).encode()) for part in parts)
    return f"{text}.{_base64url(hmac.digest(key.as_pem(private=False), text.encode(), 'sha256'))}"


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


class IdentityProvider:
    """A provider with one client. `user` is the person at the browser."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self._host, self._port = host, port
        self.key = rsa_key("provider", kid="key-1", use="sig", alg="RS256")
        self.published: list[dict[str, Any]] = [self.key.as_dict(private=False)]
        self.user: dict[str, Any] = {"sub": "ada-1", "name": "Ada", "groups": ["ops"]}
        self.forge: Forge = signed
        self.document_changes: dict[str, Any] = {}
        self.answers: dict[str, Callable[[web.Request], Awaitable[web.StreamResponse]]] = {}
        """Answers in place of the honest ones, by path."""
        self.requests: list[str] = []
        self.codes: dict[str, dict[str, str]] = {}
        self.tokens: list[str] = []
        self.base = ""

    @property
    def issuer(self) -> str:
        return f"{self.base}/realm"

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port)
        await site.start()
        self.base = f"http://{self._host}:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request.path)
        if request.path in self.answers:
            return await self.answers[request.path](request)
        match request.path:
            case "/realm/.well-known/openid-configuration":
                return web.json_response(self._document())
            case "/keys":
                return web.json_response({"keys": self.published})
            case "/authorize":
                return self._authorize(request)
            case "/token":
                return await self._token(request)
            case _:
                return web.Response(status=404)

    def _document(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.base}/authorize",
            "token_endpoint": f"{self.base}/token",
            "jwks_uri": f"{self.base}/keys",
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
            **self.document_changes,
        }

    def _authorize(self, request: web.Request) -> web.Response:
        """Sign the user in at once. A browser gets a page with a link back, as after a password."""
        asked = request.query
        if (
            asked["client_id"] != CLIENT_ID
            or asked["response_type"] != "code"
            or asked["code_challenge_method"] != "S256"
        ):
            return web.Response(status=400)
        code = secrets.token_urlsafe(16)
        self.codes[code] = dict(asked)
        back = f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state'], 'iss': self.issuer})}"
        if "text/html" in request.headers.get("Accept", ""):
            page = f'<!doctype html><html lang="en"><title>Provider</title><a href="{back.replace("&", "&amp;")}">Continue</a>'
            return web.Response(text=page, content_type="text/html")
        return web.Response(status=302, headers={"Location": back})

    async def _token(self, request: web.Request) -> web.Response:
        form = await request.post()
        asked = self.codes.pop(str(form.get("code")), None)
        challenge = hashlib.sha256(str(form.get("code_verifier")).encode()).digest()
        is_honest = (
            asked is not None
            and self._client(request, form) == (CLIENT_ID, CLIENT_SECRET)
            and form.get("redirect_uri") == asked["redirect_uri"]
            and _base64url(challenge) == asked["code_challenge"]
        )
        if asked is None or not is_honest:
            return web.json_response({"error": "invalid_grant"}, status=400)
        now = int(time.time())
        times = {"iat": now, "exp": now + 300}
        claims = {"iss": self.issuer, "aud": CLIENT_ID, "nonce": asked["nonce"], **times, **self.user}
        self.tokens.append(self.forge(claims, self.key))
        return web.json_response({"access_token": "unused", "token_type": "Bearer", "id_token": self.tokens[-1]})

    @staticmethod
    def _client(request: web.Request, form: Any) -> tuple[str, str]:
        scheme, _, pair = request.headers.get("Authorization", "").partition(" ")
        if scheme == "Basic":
            name, _, secret = base64.b64decode(pair).decode().partition(":")
            return unquote_plus(name), unquote_plus(secret)
        return str(form.get("client_id")), str(form.get("client_secret"))


async def forever(_: web.Request) -> web.StreamResponse:
    """An answer that never comes."""
    await asyncio.Event().wait()
    raise AssertionError


async def huge(request: web.Request) -> web.StreamResponse:
    """An answer without an end."""
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" " * 65536)
