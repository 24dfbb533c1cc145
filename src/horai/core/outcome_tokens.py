"""Outcome tokens: with them a target that answered 202 reports the outcome of its attempt, and does nothing else.

A token is `hot_<tenant>_<instance>_<attempt>_<fence>_<deadline>_<signature>`. The key of the signature is derived from
the tenant's signing secret, so a token of an old secret is valid as long as the secret is in force.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

PREFIX = "hot_"
_FORM = re.compile(r"hot_([0-9]{1,9})_([0-9]{1,18})_([0-9]{1,9})_([0-9]{1,9})_([0-9]{1,15})_([0-9a-f]{64})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class OutcomeToken(NamedTuple):
    """The attempt that a token is for, and the end of its validity in milliseconds since 1970."""

    tenant_id: int
    instance_id: int
    attempt: int
    fence: int
    deadline: int

    @property
    def expires_at(self) -> datetime:
        """Return the deadline of the attempt."""
        return _EPOCH + self.deadline * _MILLISECOND


@dataclass(frozen=True, slots=True)
class SignedToken:
    """A token as it was sent. Its signature is not checked yet."""

    token: OutcomeToken
    signature: str

    def is_signed_by(self, secrets: Iterable[str]) -> bool:
        """Return whether one of the tenant's signing secrets has signed the token."""
        expected = [_signature(secret, self.token) for secret in secrets]
        return any(hmac.compare_digest(each, self.signature) for each in expected)


def outcome_token(secret: str, token: OutcomeToken) -> str:
    """Return the text of a token, signed with the key that belongs to a signing secret."""
    return f"{_signed_text(token)}_{_signature(secret, token)}"


def token_for(tenant_id: int, instance_id: int, attempt: int, fence: int, expires_at: datetime) -> OutcomeToken:
    """Return the token of an attempt, valid until the next full millisecond."""
    return OutcomeToken(tenant_id, instance_id, attempt, fence, -((_EPOCH - expires_at) // _MILLISECOND))


def read_outcome_token(text: str) -> SignedToken | None:
    """Return the parts of a token; None for any other text."""
    if (match := _FORM.fullmatch(text)) is None:
        return None
    *numbers, signature = match.groups()
    return SignedToken(OutcomeToken(*map(int, numbers)), signature)


def _signed_text(token: OutcomeToken) -> str:
    return f"{PREFIX}{token.tenant_id}_{token.instance_id}_{token.attempt}_{token.fence}_{token.deadline}"


def _signature(secret: str, token: OutcomeToken) -> str:
    return hmac.digest(_key_of(secret), _signed_text(token).encode(), hashlib.sha256).hex()


@lru_cache(maxsize=256)
def _key_of(secret: str) -> bytes:
    """Return a key that only this purpose uses: a receiver that signs with its secret makes no token by accident."""
    return hmac.digest(secret.encode(), b"horai outcome token", hashlib.sha256)
