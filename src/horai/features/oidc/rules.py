"""Decisions of a sign-in: the proof in an ID token, the secrets of one sign-in, and the page to return to.

Nothing here does I/O. The caller gives the keys of the provider and the time.
"""

import base64
import hashlib
import hmac
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

from joserfc import jwt
from joserfc.errors import JoseError, SecurityWarning
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey
from joserfc.jws import JWSRegistry, extract_compact

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
"""Signatures with a public key. A token names its algorithm itself, so `none` and those with a shared secret are out."""
LEEWAY = timedelta(seconds=60)
"""Difference between the clocks of the provider and of the database that is accepted."""
SUBJECT_LIMIT = 255
NAME_LIMIT = 200
GROUPS_LIMIT = 1_000
GROUP_LIMIT = 256
RETURN_LIMIT = 2_000
_KINDS: Mapping[str, type[RSAKey | ECKey | OKPKey]] = {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey}
"""Kinds of public keys. Shared secrets (`oct`) are left out."""
_PATH = re.compile(r"/(?![/\\])[!-\[\]-~]*")
"""A path of this server in visible ASCII, without `\\`: browsers read `//host` and `/\\host` as another site."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


class Unproven(Exception):
    """The ID token does not prove who the user is. The text names the check for the log, and no part of the token."""


class UnknownKey(Unproven):
    """No known key of the provider has the id that the token names: the provider may have changed its keys."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The values that an ID token of one sign-in must have."""

    issuer: str
    client_id: str
    nonce: str
    groups_claim: str


@dataclass(frozen=True, slots=True)
class SignedInUser:
    """The user that an ID token proves."""

    subject: str
    name: str
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SignInSecrets:
    """Nonce and code verifier of a sign-in. Neither is in its repr."""

    nonce: str
    verifier: str

    @property
    def challenge(self) -> str:
        """Return the S256 challenge of the verifier."""
        return _base64url(hashlib.sha256(self.verifier.encode()).digest())

    def __repr__(self) -> str:
        return "SignInSecrets()"


def secrets_of(browser: str, state: str) -> SignInSecrets:
    """Derive nonce and verifier from the cookie of the browser and the state: only that browser can finish."""
    nonce, verifier = (
        _base64url(hmac.digest(browser.encode(), f"{use} {state}".encode(), "sha256")) for use in ("nonce", "verifier")
    )
    return SignInSecrets(nonce, verifier)


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def is_own_page(path: str) -> bool:
    """Return whether a sign-in may return to this path: one of this server, never another site."""
    return len(path) <= RETURN_LIMIT and _PATH.fullmatch(path) is not None


def public_keys(document: object) -> tuple[Key, ...]:
    """Return the keys of a JWK set that can verify a signature. Keys of other kinds are left out."""
    listed = cast("Mapping[str, Any]", document).get("keys") if isinstance(document, Mapping) else None
    if not isinstance(listed, list):
        raise Unproven("the key set has no list `keys`")
    return tuple(key for given in cast("list[Any]", listed) if (key := _public_key(given)) is not None)


def _public_key(given: object) -> Key | None:
    fields = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    kind = _KINDS.get(str(fields.get("kty")))
    if kind is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", SecurityWarning)  # the library warns of keys that are too short
            key = kind.import_key(fields)
    except (JoseError, SecurityWarning, ValueError, TypeError, KeyError):
        return None
    return key if fields.get("use", "sig") == "sig" else None


def prove(token: str, keys: Sequence[Key], expected: Expected, now: datetime) -> SignedInUser:
    """Return the user of an ID token. Raise `Unproven` unless its signature and every claim are as expected."""
    claims = _verified_claims(token, keys)
    if claims.get("iss") != expected.issuer:
        raise Unproven("wrong issuer")
    _check_audience(claims, expected.client_id)
    _check_times(claims, now.timestamp())
    nonce = claims.get("nonce")
    if not isinstance(nonce, str) or not hmac.compare_digest(nonce.encode(), expected.nonce.encode()):
        raise Unproven("wrong nonce")
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= SUBJECT_LIMIT or _CONTROL.search(subject):
        raise Unproven("no subject")
    return SignedInUser(subject, _name_of(claims, subject), _groups_of(claims.get(expected.groups_claim)))


def _verified_claims(token: str, keys: Sequence[Key]) -> dict[str, Any]:
    registry = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
    try:
        header = extract_compact(token.encode(), registry=registry).headers()
        key = _key_for(header, keys)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SecurityWarning)  # EdDSA has a new name, and providers use the old one
            return jwt.decode(token, key, registry=registry).claims
    except (JoseError, ValueError, TypeError, KeyError) as error:
        raise Unproven(f"bad token: {type(error).__name__}") from None


def _key_for(header: Mapping[str, Any], keys: Iterable[Key]) -> Key:
    """Return the key that the token names. A token without a key id needs a provider with a single key."""
    algorithm, key_id = header.get("alg"), header.get("kid")
    if algorithm not in ALGORITHMS:
        raise Unproven("algorithm not allowed")
    fit = [key for key in keys if key_id is None or key.kid == key_id]
    if not fit:
        raise UnknownKey("unknown key")
    if len(fit) > 1:
        raise Unproven("several keys could be meant")
    if fit[0].get("alg", algorithm) != algorithm:
        raise Unproven("the key is for another algorithm")
    return fit[0]


def _check_audience(claims: Mapping[str, Any], client_id: str) -> None:
    audience = claims.get("aud")
    audiences = cast("list[Any]", audience) if isinstance(audience, list) else [audience]
    party = claims.get("azp")
    if client_id not in audiences:
        raise Unproven("wrong audience")
    if (party is None and len(audiences) > 1) or party not in {None, client_id}:
        raise Unproven("issued for another party")


def _check_times(claims: Mapping[str, Any], now: float) -> None:
    leeway = LEEWAY.total_seconds()
    expires, issued, begins = (_seconds(claims.get(name)) for name in ("exp", "iat", "nbf"))
    if expires is None or expires <= now - leeway:
        raise Unproven("expired")
    if issued is None or issued > now + leeway:
        raise Unproven("issued in the future")
    if (begins is None and "nbf" in claims) or (begins is not None and begins > now + leeway):
        raise Unproven("not valid yet")


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e12 else None


def _name_of(claims: Mapping[str, Any], subject: str) -> str:
    given = (claims.get(name) for name in ("name", "preferred_username", "email"))
    shown = (_CONTROL.sub(" ", name).strip()[:NAME_LIMIT] for name in given if isinstance(name, str))
    return next((name for name in shown if name), subject[:NAME_LIMIT])


def _groups_of(claim: object) -> tuple[str, ...]:
    """Return the groups of the user: a list of texts, or one text. Raise `Unproven` if there are too many."""
    listed = [claim] if isinstance(claim, str) else cast("list[Any]", claim) if isinstance(claim, list) else []
    groups = dict.fromkeys(name for name in listed if isinstance(name, str) and 0 < len(name) <= GROUP_LIMIT)
    if len(groups) > GROUPS_LIMIT:
        raise Unproven(f"more than {GROUPS_LIMIT} groups")
    return tuple(name for name in groups if not _CONTROL.search(name))
