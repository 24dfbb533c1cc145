"""The identity provider: its discovery document, its keys, and the exchange of a code for an ID token.

Every answer of the provider is bounded in size and time, no redirect is followed, and messages name the problem, never
a part of the answer: it may contain a secret.
"""

import asyncio
import base64
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote_plus, urlencode, urlsplit

import aiohttp
import structlog
from joserfc.jwk import Key

from horai.core.addresses import AddressPolicy, parse_networks
from horai.core.errors import ProviderUnavailable
from horai.core.jsontext import JsonError, parse_json
from horai.core.settings import OidcSettings
from horai.engine.executors.dial import single_session
from horai.features.oidc.rules import Unproven, public_keys
from horai.text import Hint, Refused

log = structlog.get_logger(__name__)

ANSWER_LIMIT = 512 * 1024
"""Bytes of an answer of the provider."""
REMEMBERED_SECONDS = 3600.0
"""Time for which the discovery document and the keys are used without asking again."""
REFETCH_SECONDS = 30.0
"""Least time between two requests for the keys: a token with an unknown key id makes the server ask again."""
FAILURE_SECONDS = 5.0
"""Time for which a failure counts: requests that waited for the same answer do not each ask again."""
ANYWHERE = AddressPolicy(parse_networks(["0.0.0.0/0", "::/0"]))
"""The operator names the provider, so it may be in a private network."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class CodeRefused(Exception):
    """The provider did not accept the code. The text is for the log."""


class AnswerUnfit(Exception):
    """The provider does not answer, or with something else than expected. The text is for the log."""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The addresses of the provider, from its discovery document."""

    authorization: str
    token: str
    keys: str
    takes_basic: bool


def is_safe_address(url: str, *, may_be_loopback: bool) -> bool:
    """Return whether the answers of this address can be trusted: https, or http to this machine if that is allowed."""
    try:
        parts = urlsplit(url)
        if not parts.hostname or parts.username is not None or parts.fragment:
            return False
    except ValueError:
        return False
    return parts.scheme == "https" or (may_be_loopback and parts.scheme == "http" and parts.hostname in LOOPBACK)


class Provider:
    """The provider of this server, with what is remembered of it."""

    def __init__(self, settings: OidcSettings, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        self._monotonic = monotonic
        self._lock = asyncio.Lock()
        self._endpoints: Endpoints | None = None
        self._keys: tuple[Key, ...] = ()
        self._endpoints_until = self._failed_until = 0.0
        self._keys_at = self._asked_at = float("-inf")

    async def endpoints(self) -> Endpoints:
        """Return the addresses of the provider. Raise `ProviderUnavailable` if it does not give them."""
        async with self._lock:
            return await self._known_endpoints()

    async def keys(self, *, has_unknown: bool = False) -> tuple[Key, ...]:
        """Return the keys of the provider. With `has_unknown`, ask again unless they were asked for lately."""
        async with self._lock:
            now = self._monotonic()
            is_old, may_ask = now - self._keys_at >= REMEMBERED_SECONDS, now - self._asked_at >= REFETCH_SECONDS
            if is_old or (has_unknown and may_ask):
                endpoints = await self._known_endpoints()
                self._asked_at = now
                with _CheckedAnswer(self):
                    self._keys = await self._fetch_keys(endpoints.keys)
                self._keys_at = self._monotonic()
            return self._keys

    async def exchange(self, code: str, verifier: str, redirect_uri: str) -> str:
        """Exchange a code for an ID token. Raise `CodeRefused` if the provider does not accept the code."""
        endpoints = await self.endpoints()
        form = {
            "grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri, "code_verifier": verifier,
        }  # fmt: skip
        given = self.settings
        headers = {"Accept": "application/json"}
        if endpoints.takes_basic:
            pair = f"{quote_plus(given.client_id)}:{quote_plus(given.client_secret)}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            form |= {"client_id": given.client_id, "client_secret": given.client_secret}
        with _CheckedAnswer(self, is_lasting=False):
            status, body = await self._ask("POST", endpoints.token, headers, form)
            if status in {400, 401, 403}:
                raise CodeRefused(f"the token endpoint answered {status}")
            token = _object(status, body).get("id_token")
            if not isinstance(token, str):
                raise AnswerUnfit("the token endpoint answered without an ID token")
            return token

    async def _known_endpoints(self) -> Endpoints:
        if self._endpoints is None or self._monotonic() >= self._endpoints_until:
            if self._monotonic() < self._failed_until:
                raise unavailable()
            with _CheckedAnswer(self):
                self._endpoints = await self._discover()
            self._endpoints_until = self._monotonic() + REMEMBERED_SECONDS
        return self._endpoints

    async def _discover(self) -> Endpoints:
        issuer = self.settings.issuer
        url = f"{issuer.removesuffix('/')}/.well-known/openid-configuration"
        document = _object(*await self._ask("GET", url, {"Accept": "application/json"}))
        if document.get("issuer") != issuer:
            raise AnswerUnfit("the discovery document names another issuer")
        names = ("authorization_endpoint", "token_endpoint", "jwks_uri")
        authorization, token, keys = (document.get(name) for name in names)
        may_be_loopback = urlsplit(issuer).hostname in LOOPBACK
        for name, found in zip(names, (authorization, token, keys), strict=True):
            if not isinstance(found, str) or not is_safe_address(found, may_be_loopback=may_be_loopback):
                raise AnswerUnfit(f"the discovery document has no https address for {name}")
        methods = document.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        return Endpoints(str(authorization), str(token), str(keys), "client_secret_basic" in methods)

    async def _fetch_keys(self, url: str) -> tuple[Key, ...]:
        try:
            keys = public_keys(_object(*await self._ask("GET", url, {"Accept": "application/json"})))
        except Unproven as error:
            raise AnswerUnfit(str(error)) from error
        return keys

    async def _ask(
        self, method: str, url: str, headers: Mapping[str, str], form: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Send one request and return the status and the body, which is bounded. Follow no redirect."""
        sent = dict(headers) | {"Accept-Encoding": "identity"}
        limit = self.settings.timeout.total_seconds()
        body = None
        if form is not None:
            sent["Content-Type"] = "application/x-www-form-urlencoded"
            body = urlencode(form)
        try:
            async with asyncio.timeout(limit), single_session(ANYWHERE) as session:
                async with session.request(method, url, headers=sent, data=body, allow_redirects=False) as response:
                    return response.status, await _bounded(response)
        except TimeoutError:
            raise AnswerUnfit(f"no answer within {limit:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise AnswerUnfit(type(error).__name__) from None

    def note_failure(self) -> None:
        """Answer further requests with the same failure for a moment."""
        self._failed_until = self._monotonic() + FAILURE_SECONDS


class _CheckedAnswer:
    """Log an answer that is unfit, and raise `ProviderUnavailable` instead."""

    def __init__(self, provider: Provider, *, is_lasting: bool = True) -> None:
        self._provider = provider
        self._is_lasting = is_lasting

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, AnswerUnfit):
            log.warning("identity provider unavailable", reason=str(error), issuer=self._provider.settings.issuer)
            if self._is_lasting:
                self._provider.note_failure()
            raise unavailable() from None


def unavailable() -> ProviderUnavailable:
    """Return the error of a provider that does not answer as it should."""
    return ProviderUnavailable(Refused.PROVIDER_AWAY(), Hint.SIGN_IN_LATER())


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > ANSWER_LIMIT:
            raise AnswerUnfit(f"an answer is larger than {ANSWER_LIMIT} bytes")
    return bytes(body)


def _object(status: int, body: bytes) -> Mapping[str, Any]:
    if status != 200:
        raise AnswerUnfit(f"the answer has the status {status}")
    try:
        value = parse_json(body)
    except JsonError:
        raise AnswerUnfit("the answer is not JSON") from None
    if not isinstance(value, dict):
        raise AnswerUnfit("the answer is not an object")
    return cast("dict[str, Any]", value)
