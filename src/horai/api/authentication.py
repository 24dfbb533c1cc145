"""Authentication: which key or session a request comes with, and whether it is in force.

A session stands for a key, or for a user who signed in with an identity provider. A key is remembered for five seconds; a
change of any key makes every node forget at once. A node that hears nothing
serves a revoked key for five seconds at most. Until the first key is created, requests need none.
"""

import hmac
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass

import asyncpg
from starlette.requests import HTTPConnection

from horai.api.failed_attempts import FailedAttempts
from horai.core.access_keys import hash_of, id_of
from horai.core.actor import Actor, ActorKind
from horai.core.errors import Forbidden, HoraiError, RetryLimited, Unauthenticated
from horai.core.roles import AccessRole, RoleGrant, may_call
from horai.core.wakes import EverywhereWake, KeysWake
from horai.db import access, user_sessions
from horai.db.access import KeyInForce
from horai.db.pool import GONE, Pool, acquire
from horai.db.user_sessions import UserInForce
from horai.db.wakeups import Wakeups
from horai.text import Hint, Refused

COOKIE = "__Host-horai"
REMEMBERED_SECONDS = 5.0
MOST_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Caller:
    """The actor of a request, with its tenant and its role.

    A key of the platform has no tenant. A caller without a key has every role, and the tenant `default`.
    """

    actor: Actor
    role: AccessRole | None
    tenant_id: int | None
    tenant: str | None
    grants: tuple[RoleGrant, ...] = ()
    """The tenants and roles between which a user may switch, with the present one; a key has none."""

    @property
    def is_keyless(self) -> bool:
        """Return whether the server serves this request without a key."""
        return self.role is None

    @property
    def is_platform(self) -> bool:
        """Return whether the caller may see what belongs to no tenant."""
        return self.role in {None, AccessRole.PLATFORM_ADMIN}

    def require(self, needed: Collection[AccessRole]) -> None:
        """Raise `Forbidden` unless the caller has one of these roles, or one that includes it."""
        if self.role is not None and not may_call(self.role, needed):
            names = " or ".join(sorted(needed))
            raise Forbidden(Refused.ROLE_TOO_LOW(role=self.role, needed=names), Hint.ASK_FOR_ROLE(needed=names))


@dataclass(frozen=True, slots=True)
class Credentials:
    """The key or session that a request sends, and its address. Neither key nor session is in its repr."""

    key: str | None
    session: str | None
    address: str
    request_id: str

    def __repr__(self) -> str:
        return f"Credentials(address={self.address!r})"


def credentials_of(request: HTTPConnection) -> Credentials:
    """Read the key or the session of a request. A key wins over a session."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme and scheme.lower() != "bearer":
        raise unauthenticated()
    client = request.scope.get("client")
    session = None if scheme else request.cookies.get(COOKIE)
    return Credentials(key.strip() if scheme else None, session, client[0] if client else "", request.state.request_id)


def unauthenticated() -> Unauthenticated:
    """Return the same error for a key that is absent, unknown, wrong, expired or revoked."""
    return Unauthenticated(Refused.NO_KEY(), Hint.SEND_A_BEARER())


@dataclass(frozen=True, slots=True)
class _Remembered:
    """A key or user that was in force at the last check. It is checked again after `until`, or when keys have changed.

    An address that sent wrong keys may go on to use the keys that are remembered.
    """

    holder: KeyInForce | UserInForce
    until: float
    changes: int


class Authenticator:
    """The keys that this node has seen lately, and the addresses that sent wrong ones."""

    def __init__(
        self, pool: Pool, wakeups: Wakeups, keyless: tuple[int, str], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._pool = pool
        self._keyless = keyless
        self._monotonic = monotonic
        self._known: OrderedDict[bytes, _Remembered] = OrderedDict()
        self._keyed_until = 0.0
        self._is_keyed = False
        self._changes = 0
        self._failed = FailedAttempts()
        wakeups.subscribe(KeysWake, self._forget)
        wakeups.subscribe(EverywhereWake, self._forget)

    async def caller_of(self, credentials: Credentials) -> Caller:
        """Return the caller. Raise `Unauthenticated` if the request has no key in force, and the server asks for one."""
        if credentials.key is None and credentials.session is None:
            if await self.is_keyed():
                raise unauthenticated()
            return self._keyless_caller(credentials)
        holder = await self._holder_of(credentials)
        if holder is None and credentials.key is None and not await self.is_keyed():
            return self._keyless_caller(credentials)  # the cookie of another server at this address
        if isinstance(holder, UserInForce):
            return _user_caller(holder, credentials)
        if holder is None or not _is_within(holder.networks, credentials.address):
            self._failed.note(credentials.address, self._monotonic())
            raise unauthenticated()
        return _key_caller(holder, credentials)

    async def is_still_allowed(self, credentials: Credentials) -> bool:
        """Return whether a long answer may go on. While the database is away, it may: no key can be revoked then."""
        try:
            await self.caller_of(credentials)
        except Unauthenticated:
            return False
        except (HoraiError, asyncpg.PostgresError, *GONE):
            return True
        return True

    def _keyless_caller(self, credentials: Credentials) -> Caller:
        actor = Actor(ActorKind.KEYLESS, "", "", AccessRole.ADMIN, credentials.address, credentials.request_id)
        return Caller(actor, None, *self._keyless)

    async def is_keyed(self) -> bool:
        """Return whether the server asks for a key. Once it does, it always will."""
        if not self._is_keyed and self._monotonic() >= self._keyed_until:
            changes, now = self._changes, self._monotonic()
            async with acquire(self._pool) as connection:
                self._is_keyed = await access.is_keyed(connection)
            if changes == self._changes:
                self._keyed_until = now + REMEMBERED_SECONDS
        return self._is_keyed

    async def _holder_of(self, credentials: Credentials) -> KeyInForce | UserInForce | None:
        text = credentials.key if credentials.key is not None else credentials.session or ""
        proof = hash_of(text)
        now = self._monotonic()
        known = self._known.get(proof)
        if known is not None and now < known.until and known.changes == self._changes:
            return known.holder
        if known is None and (wait := self._failed.wait(credentials.address, now)) is not None:
            raise RetryLimited(Refused.TOO_MANY_WRONG_KEYS(), Hint.CHECK_KEY(), extra={"retryAfter": str(wait)})
        changes = self._changes
        holder = await self._read(credentials, proof)
        if holder is None:
            self._known.pop(proof, None)
        else:
            self._remember(proof, holder, now, changes)
        return holder

    async def _read(self, credentials: Credentials, proof: bytes) -> KeyInForce | UserInForce | None:
        """Read the key or the user from the database. A text that is not a key costs no query."""
        key_id = id_of(credentials.key) if credentials.key is not None else None
        if credentials.key is not None and key_id is None:
            return None
        async with acquire(self._pool) as connection:
            if key_id is None:
                key = await access.key_of_session(connection, proof)
                if key is None:
                    return await user_sessions.user_of_session(connection, proof)
            else:
                key = await access.key_in_force(connection, key_id)
                if key is not None and not hmac.compare_digest(key.hash, proof):
                    return None
            if key is not None:
                await access.note_key_use(connection, key.id)
            return key

    def _remember(self, proof: bytes, holder: KeyInForce | UserInForce, now: float, changes: int) -> None:
        left = REMEMBERED_SECONDS if holder.seconds_left is None else min(REMEMBERED_SECONDS, holder.seconds_left)
        self._known[proof] = _Remembered(holder, now + left, changes)
        self._known.move_to_end(proof)
        if len(self._known) > MOST_REMEMBERED:
            self._known.popitem(last=False)

    def _forget(self, _: KeysWake | EverywhereWake) -> None:
        """Read every key again before its next use. A query in progress may have read an old row: it counts as old."""
        self._changes += 1
        self._keyed_until = 0.0


def _key_caller(key: KeyInForce, credentials: Credentials) -> Caller:
    actor = Actor(ActorKind.KEY, key.id, key.name, key.role, credentials.address, credentials.request_id)
    return Caller(actor, key.role, key.tenant_id, key.tenant)


def _user_caller(user: UserInForce, credentials: Credentials) -> Caller:
    role = user.chosen.role
    actor = Actor(ActorKind.USER, user.subject, user.name, role, credentials.address, credentials.request_id)
    return Caller(actor, role, user.chosen.tenant_id, user.chosen.tenant, user.grants)


def _is_within(networks: Collection[str], address: str) -> bool:
    """Return whether the key may be used from this address. Without networks it may be used from every address."""
    if not networks:
        return True
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None) or found
    return any(mapped in ipaddress.ip_network(network) for network in networks)
