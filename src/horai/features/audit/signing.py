"""The Ed25519 key of the audit log: a file that the database cannot reach.

A key in the database would protect against nothing that edits the database. So the key is a file: one that the operator
gives to every node, or one that `horai up` makes beside its embedded database. A node with a public key only verifies.
"""

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from horai.core.errors import HoraiError

_CONTEXT = b"horai audit head\n"
"""Begins each signed message, so that a signature cannot serve another purpose."""


class AuditKeyUnusable(HoraiError):
    """The file of the audit key is missing or holds no Ed25519 key."""

    code = "SCH_500_AUDIT_KEY"
    title = "Audit key unusable"


@dataclass(frozen=True, slots=True)
class AuditKey:
    """A key that verifies signatures, and makes them if it has its private half."""

    public: Ed25519PublicKey
    private: Ed25519PrivateKey | None = field(default=None, repr=False)

    @property
    def id(self) -> str:
        """Return the first 16 hexadecimal digits of SHA-256 of the public key."""
        raw = self.public.public_bytes(Encoding.Raw, PublicFormat.Raw)
        return hashlib.sha256(raw).hexdigest()[:16]

    def sign(self, head: str) -> bytes | None:
        """Return the signature of a head; None without a private key."""
        return None if self.private is None else self.private.sign(_CONTEXT + head.encode())

    def verifies(self, head: str, signature: bytes) -> bool:
        """Return whether this key has signed the head."""
        try:
            self.public.verify(signature, _CONTEXT + head.encode())
        except InvalidSignature:
            return False
        return True


def load_key(file: str | None) -> AuditKey | None:
    """Read a private or public key in PEM form; None without a file. Raises `AuditKeyUnusable`."""
    if file is None:
        return None
    try:
        text = Path(file).read_bytes()
        if b"PRIVATE KEY" in text:
            private = load_pem_private_key(text, None)
            if isinstance(private, Ed25519PrivateKey):
                return AuditKey(private.public_key(), private)
        elif isinstance(public := load_pem_public_key(text), Ed25519PublicKey):
            return AuditKey(public)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a PEM key without a password"
        raise _unusable(file, reason or type(error).__name__) from error
    raise _unusable(file, "it is not an Ed25519 key")


def _unusable(file: str, reason: str) -> AuditKeyUnusable:
    return AuditKeyUnusable(
        f"The audit key {file} cannot be used: {reason}.",
        "Make one with `openssl genpkey -algorithm ed25519 -out audit.key`, and give the same file to every node.",
    )


def key_file_in(data_dir: Path) -> str:
    """Return the file of the key that belongs to an embedded database."""
    return str(data_dir / "audit.key")


def make_key(file: str) -> None:
    """Write a new private key that only this user can read, unless the file exists."""
    private = Ed25519PrivateKey.generate()
    text = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    draft = f"{file}.{os.urandom(6).hex()}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        try:
            os.link(draft, file)  # unlike a rename, it never replaces a key
        except FileExistsError:
            return
    finally:
        Path(draft).unlink()
