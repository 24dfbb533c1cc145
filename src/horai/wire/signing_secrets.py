"""Signing secrets on the wire."""

from datetime import datetime

from horai.wire.fields import Id, Model, Text


class RotateIn(Model):
    """`POST /api/v1/signing-secrets`: how long the old secrets keep signing beside the new one (24h, at most 720h)."""

    expire_old: Text | None = None


class SigningSecretOut(Model):
    """A secret that signs the tenant's calls; `expiresAt` is null for the newest."""

    id: Id
    secret: str
    created_at: datetime
    expires_at: datetime | None


class SigningSecretList(Model):
    """The secrets in force, the newest first: each call has a signature by each of them. There is one page."""

    items: list[SigningSecretOut]
    next_cursor: None
