"""Sign in with the identity provider: begin at the provider, finish with its answer, open a session of the user."""

import re
import secrets
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlencode

import structlog

from horai.api.session_cookie import SESSION
from horai.core.access_keys import hash_of
from horai.core.actor import Actor, ActorKind
from horai.core.audit import AuditEntry, AuditVerb
from horai.core.errors import Forbidden, Unauthenticated
from horai.core.roles import RoleGrant
from horai.core.settings import OidcSettings
from horai.db import access, nodes, user_sessions
from horai.db.pool import Platform, Pool, acquire, transaction
from horai.db.user_sessions import UserWrite
from horai.features.oidc import store
from horai.features.oidc.provider import CodeRefused, Provider
from horai.features.oidc.rules import Expected, SignedInUser, SignInSecrets, UnknownKey, Unproven, prove, secrets_of
from horai.operations import audit
from horai.text import Hint, Refused
from horai.text.phrase import Phrase

log = structlog.get_logger(__name__)

CALLBACK = "/api/v1/session/oidc/callback"
CODE_LIMIT = 4_096
PENDING = timedelta(minutes=10)
"""Time in which a user has to sign in at the provider."""
_ERROR = re.compile(r"[a-z_]{1,64}")


@dataclass(frozen=True, slots=True)
class BegunSignIn:
    """The address to send the browser to, and its cookie. Neither is in its repr."""

    address: str
    browser: str

    def __repr__(self) -> str:
        return "BegunSignIn()"


@dataclass(frozen=True, slots=True)
class ProviderAnswer:
    """The answer of the provider that a browser brings, and the browser's own cookie. None of it is in its repr."""

    browser: str | None
    state: str | None
    code: str | None
    error: str | None
    issuer: str | None

    def __repr__(self) -> str:
        return "ProviderAnswer()"


@dataclass(frozen=True, slots=True)
class FinishedSignIn:
    """The id of the new session, which is not in its repr, and the page to return to."""

    session: str
    return_to: str

    def __repr__(self) -> str:
        return f"FinishedSignIn(return_to={self.return_to!r})"


class SignIn:
    """The sign-ins of one server with its provider."""

    def __init__(self, pool: Pool, settings: OidcSettings, public_url: str) -> None:
        self._pool = pool
        self._settings = settings
        self._redirect_uri = public_url.rstrip("/") + CALLBACK
        self.provider = Provider(settings)

    async def begin(self, return_to: str) -> BegunSignIn:
        """Begin a sign-in that ends on the page `return_to`."""
        endpoints = await self.provider.endpoints()
        browser, state = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        own = secrets_of(browser, state)
        async with transaction(self._pool) as connection:
            await store.insert_sign_in(connection, hash_of(state), hash_of(browser), return_to, PENDING)
        asked = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": self._redirect_uri,
            "scope": " ".join(self._settings.scopes),
            "state": state,
            "nonce": own.nonce,
            "code_challenge": own.challenge,
            "code_challenge_method": "S256",
        }
        joint = "&" if "?" in endpoints.authorization else "?"
        return BegunSignIn(f"{endpoints.authorization}{joint}{urlencode(asked)}", browser)

    async def finish(self, answer: ProviderAnswer, address: str, request_id: str) -> FinishedSignIn:
        """Open a session for the user whom the provider's answer proves. Each sign-in can be finished once."""
        browser, state = answer.browser, answer.state
        return_to = None if browser is None or state is None else await self._take(state, browser)
        if browser is None or state is None or return_to is None:
            raise _refused(Refused.SIGN_IN_UNKNOWN(), "unknown, used or begun elsewhere", address)
        if answer.issuer is not None and answer.issuer != self._settings.issuer:
            raise _refused(Refused.SIGN_IN_UNPROVEN(), "answer of another issuer", address)
        if answer.code is None or not 0 < len(answer.code) <= CODE_LIMIT:
            reason = answer.error if answer.error and _ERROR.fullmatch(answer.error) else "no code"
            raise _refused(Refused.SIGN_IN_DENIED(), reason, address)
        user = await self._user(answer.code, secrets_of(browser, state), address)
        return FinishedSignIn(await self._open(user, address, request_id), return_to)

    async def _take(self, state: str, browser: str) -> str | None:
        async with transaction(self._pool) as connection:
            return await store.take_sign_in(connection, hash_of(state), hash_of(browser))

    async def _user(self, code: str, own: SignInSecrets, address: str) -> SignedInUser:
        """Return the user whom the ID token of this code proves."""
        given = self._settings
        try:
            token = await self.provider.exchange(code, own.verifier, self._redirect_uri)
            expected = Expected(given.issuer, given.client_id, own.nonce, given.groups_claim)
            async with acquire(self._pool) as connection:
                now = await nodes.database_time(connection)
            try:
                return prove(token, await self.provider.keys(), expected, now)
            except UnknownKey:
                return prove(token, await self.provider.keys(has_unknown=True), expected, now)
        except CodeRefused as error:
            raise _refused(Refused.SIGN_IN_DENIED(), str(error), address) from None
        except Unproven as error:
            raise _refused(Refused.SIGN_IN_UNPROVEN(), str(error), address) from None

    async def _open(self, user: SignedInUser, address: str, request_id: str) -> str:
        """Open a session in the first tenant of the user. Raise `Forbidden` if no group of the user has a role."""
        session = secrets.token_urlsafe(32)
        async with transaction(self._pool) as connection:
            grants = await user_sessions.grants_of_groups(connection, user.groups)
            if not grants:
                log.warning("sign-in refused", reason="no group with a role", subject=user.subject, address=address)
                raise Forbidden(Refused.NO_MAPPED_GROUP(), Hint.ASK_FOR_GROUP())
            await _insert(connection, session, user, grants[0])
            actor = Actor(ActorKind.USER, user.subject, user.name, grants[0].role, address, request_id)
            entry = AuditEntry(AuditVerb.USER_SIGN_IN, "user", user.subject, user.name)
            await audit.record(connection, grants[0].tenant_id, actor, entry)
        return session


async def _insert(connection: Platform, session: str, user: SignedInUser, grant: RoleGrant) -> None:
    await access.delete_ended_sessions(connection)
    written = UserWrite(user.subject, user.name, user.groups)
    await user_sessions.insert_user_session(connection, hash_of(session), written, grant.tenant_id, SESSION)


def _refused(detail: Phrase, reason: str, address: str) -> Unauthenticated:
    """Log the reason, and return the error for the user, who learns no details."""
    log.warning("sign-in refused", reason=reason, address=address)
    return Unauthenticated(detail, Hint.SIGN_IN_AGAIN())
