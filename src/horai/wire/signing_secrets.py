"""Signing secrets on the wire."""

from datetime import datetime
from typing import Annotated

from horai.wire.encode import From
from horai.wire.fields import Id, Model, Text


class RotateIn(Model):
    """`POST /api/v1/signing-secrets`: the time for which old secrets also sign (24h by default, at most 720h)."""

    expire_old: Text | None = None


class SigningSecretOut(Model):
    """A secret that signs the tenant's calls. `expiresAt` is null for the newest."""

    id: Id
    secret: str
    created_at: datetime
    expires_at: Annotated[datetime | None, From("retired_at")]


class SigningSecretList(Model):
    """The valid secrets, newest first. Each call has a signature by each of them. There is one page."""

    items: list[SigningSecretOut]
    next_cursor: None
