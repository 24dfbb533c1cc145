"""The text of a key: `hk_<id>_<secret>_<checksum>`.

The id finds the row, the hash of the whole text proves the key, and the checksum refuses a mistyped or cut key without
a query. The secret has 256 random bits, so one round of SHA-256 is enough to store it.
"""

import hashlib
import hmac
import re
import secrets
import string
import zlib
from dataclasses import dataclass

PREFIX = "hk"
ID_LENGTH = 12
SECRET_LENGTH = 43
CHECKSUM_LENGTH = 6
_LETTERS = string.digits + string.ascii_letters
_ID_LETTERS = string.digits + string.ascii_lowercase
_FORM = re.compile(
    rf"{PREFIX}_(?P<id>[0-9a-z]{{{ID_LENGTH}}})_[0-9A-Za-z]{{{SECRET_LENGTH}}}_[0-9A-Za-z]{{{CHECKSUM_LENGTH}}}"
)


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key as its creator sees it once. Its text is not in its repr."""

    id: str
    text: str

    def __repr__(self) -> str:
        return f"NewKey(id={self.id!r})"


def new_key() -> NewKey:
    """Create a key from the operating system's random source."""
    key_id = "".join(secrets.choice(_ID_LETTERS) for _ in range(ID_LENGTH))
    secret = "".join(secrets.choice(_LETTERS) for _ in range(SECRET_LENGTH))
    body = f"{PREFIX}_{key_id}_{secret}"
    return NewKey(key_id, f"{body}_{checksum_of(body)}")


def id_of(text: str) -> str | None:
    """Return the id of a key, or None if the text is not a key or its checksum is wrong."""
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    body, _, checksum = text.rpartition("_")
    return found["id"] if hmac.compare_digest(checksum, checksum_of(body)) else None


def hash_of(text: str) -> bytes:
    """Return the hash under which a key, or the id of a session, is stored."""
    return hashlib.sha256(text.encode()).digest()


def checksum_of(body: str) -> str:
    """Return six letters that a mistyped key does not have."""
    number, letters = zlib.crc32(body.encode()), ""
    for _ in range(CHECKSUM_LENGTH):
        number, digit = divmod(number, len(_LETTERS))
        letters = _LETTERS[digit] + letters
    return letters
