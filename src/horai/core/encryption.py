"""Encryption at rest: key-encryption keys wrap data keys, and data keys seal values in envelopes.

An envelope is `{"$enc": 1, "k": <data key>, "n": <nonce>, "c": <ciphertext>}`. Both layers use AES-256-GCM-SIV with random
nonces: a repeated nonce reveals only that two equal values are equal. The associated data of an envelope name its
tenant, its place and its data key, so an envelope that was moved to another tenant, object or column does not open.

A keyed digest recognises a value without storing it: an HMAC-SHA-256 under a key that is derived from a data key. Without
the data key, a guess of the value cannot be confirmed.
"""

import base64
import binascii
import hashlib
import hmac
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV

from horai.core.errors import HoraiError

KEY_BYTES = 32
NONCE_BYTES = 12
ID_BYTES = 8
MARK = "$enc"
VERSION = 1
_MEMBERS = {MARK, "k", "n", "c"}

Place = tuple[str, ...]
"""The object and the column of a value, such as `("secret", "crm")`."""
Envelope = Mapping[str, Any]


class EncryptionKeyUnusable(HoraiError):
    """A key-encryption key is missing or is not 32 bytes in base64."""

    code = "SCH_500_ENCRYPTION_KEY"
    title = "Encryption key unusable"


class EnvelopeBroken(HoraiError):
    """The envelope was changed or moved, or is not an envelope. Its text names no value."""

    code = "SCH_500_ENVELOPE"
    title = "Sealed value unreadable"

    def __init__(self, reason: str) -> None:
        super().__init__(f"A sealed value cannot be read: {reason}.", "Give the value again.")


@dataclass(frozen=True, slots=True)
class KeyEncryptionKey:
    """A key that the operator keeps outside the database. It wraps data keys and nothing else."""

    key: bytes = field(repr=False)

    @property
    def id(self) -> str:
        """Return the first 16 hexadecimal digits of SHA-256 of the key."""
        return hashlib.sha256(self.key).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class DataKey:
    """A key of one tenant and month."""

    tenant_id: int
    id: str
    key: bytes = field(repr=False)


def new_encryption_key() -> str:
    """Return a random key-encryption key as the operator stores it."""
    return base64.b64encode(os.urandom(KEY_BYTES)).decode()


def read_encryption_keys(text: str, origin: str) -> tuple[KeyEncryptionKey, ...]:
    """Return the keys of a text, separated by white space or commas. The first one wraps, all of them unwrap.

    Raises `EncryptionKeyUnusable`, whose text names the `origin` and no part of a key.
    """
    keys = tuple(_read_key(word, origin) for word in text.replace(",", " ").split())
    if not keys:
        raise _unusable(origin, "it is empty")
    return keys


def _read_key(word: str, origin: str) -> KeyEncryptionKey:
    try:
        key = base64.b64decode(word, validate=True)
    except (binascii.Error, ValueError):
        raise _unusable(origin, "it is not base64") from None
    if len(key) != KEY_BYTES:
        raise _unusable(origin, f"a key has {len(key)} bytes instead of {KEY_BYTES}")
    return KeyEncryptionKey(key)


def _unusable(origin: str, reason: str) -> EncryptionKeyUnusable:
    return EncryptionKeyUnusable(
        f"The encryption key of {origin} cannot be used: {reason}.",
        "Make one with `openssl rand -base64 32`, and give the same key to every node.",
    )


def new_data_key(tenant_id: int) -> DataKey:
    """Return a random data key with a random id."""
    return DataKey(tenant_id, os.urandom(ID_BYTES).hex(), os.urandom(KEY_BYTES))


def wrap(wrapping: KeyEncryptionKey, data_key: DataKey) -> bytes:
    """Return the data key as the database stores it: the nonce, then the ciphertext."""
    nonce = os.urandom(NONCE_BYTES)
    return nonce + AESGCMSIV(wrapping.key).encrypt(nonce, data_key.key, _wrapped_for(data_key.tenant_id, data_key.id))


def unwrap(wrapping: KeyEncryptionKey, tenant_id: int, key_id: str, wrapped: bytes) -> DataKey:
    """Return the data key. Raises `EnvelopeBroken` if it was wrapped by another key or for another tenant or id."""
    nonce, sealed = wrapped[:NONCE_BYTES], wrapped[NONCE_BYTES:]
    return DataKey(tenant_id, key_id, _decrypted(wrapping.key, nonce, sealed, _wrapped_for(tenant_id, key_id)))


def seal(data_key: DataKey, place: Place, text: str) -> dict[str, Any]:
    """Return the envelope of a text."""
    nonce = os.urandom(NONCE_BYTES)
    sealed = AESGCMSIV(data_key.key).encrypt(nonce, text.encode(), _bound_to(data_key, place))
    return {MARK: VERSION, "k": data_key.id, "n": _base64(nonce), "c": _base64(sealed)}


def unseal(data_key: DataKey, place: Place, envelope: Envelope) -> str:
    """Return the text of an envelope. Raises `EnvelopeBroken` if it was changed or belongs to another place or tenant."""
    key_of(envelope)
    try:
        nonce, sealed = (base64.b64decode(envelope[member], validate=True) for member in ("n", "c"))
    except (binascii.Error, ValueError, TypeError):
        raise EnvelopeBroken("its envelope is not base64") from None
    return _decrypted(data_key.key, nonce, sealed, _bound_to(data_key, place)).decode()


def key_of(envelope: Envelope) -> str:
    """Return the id of the data key. Raises `EnvelopeBroken` if this is not an envelope."""
    if not is_envelope(envelope) or envelope[MARK] != VERSION or not isinstance(envelope["k"], str):
        raise EnvelopeBroken("it is not an envelope of this version")
    return envelope["k"]


def is_envelope(value: object) -> bool:
    """Return whether a JSON value has the members of an envelope."""
    return isinstance(value, dict) and cast("dict[str, Any]", value).keys() == _MEMBERS


def keyed_digest(data_key: DataKey, place: Place, content: bytes) -> bytes:
    """Return the digest of a content for one place: the version, the id of the data key, and the HMAC."""
    purpose = json.dumps(["horai digest", data_key.tenant_id, *place, data_key.id]).encode()
    key = hmac.digest(data_key.key, purpose, hashlib.sha256)
    return bytes([VERSION]) + bytes.fromhex(data_key.id) + hmac.digest(key, content, hashlib.sha256)


def key_of_digest(digest: bytes) -> str | None:
    """Return the id of the data key of a digest; None for bytes that are not a keyed digest."""
    is_keyed = len(digest) == 1 + ID_BYTES + hashlib.sha256().digest_size and digest[0] == VERSION
    return digest[1 : 1 + ID_BYTES].hex() if is_keyed else None


def _decrypted(key: bytes, nonce: bytes, sealed: bytes, bound_to: bytes) -> bytes:
    try:
        return AESGCMSIV(key).decrypt(nonce, sealed, bound_to)
    except (InvalidTag, ValueError):
        raise EnvelopeBroken("it was changed or moved, or another key sealed it") from None


def _wrapped_for(tenant_id: int, key_id: str) -> bytes:
    return json.dumps(["horai data key", tenant_id, key_id]).encode()


def _bound_to(data_key: DataKey, place: Place) -> bytes:
    return json.dumps(["horai value", data_key.tenant_id, *place, data_key.id]).encode()


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
