"""Keys and sessions on the wire."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from horai.wire.fields import Instant, Model, Text

RoleName = Literal["viewer", "operator", "admin", "worker", "platform-admin"]
KeyName = Annotated[Text, Field(min_length=1, max_length=200)]
TenantName = Annotated[Text, Field(pattern=r"^[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?$")]
MOST_NETWORKS = 32


class KeyIn(Model):
    """`POST /api/v1/keys`. `tenant` is the caller's own unless the caller is of the platform.

    `networks` are the addresses that may use the key, such as 10.0.0.0/8; without them, all may.
    """

    role: RoleName
    name: KeyName | None = None
    tenant: TenantName | None = None
    networks: Annotated[list[Text], Field(max_length=MOST_NETWORKS)] | None = None
    expires_at: Instant | None = None


class KeyOut(Model):
    """A key without its text. `tenant` is null for a key of the platform. `lastUsedAt` is exact to a minute."""

    id: str
    name: str
    role: RoleName
    tenant: str | None
    networks: list[str]
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


class NewKeyOut(KeyOut):
    """A key at its creation, the only time at which its text is shown."""

    key: str


class KeyList(Model):
    """A page of keys, newest first."""

    items: list[KeyOut]
    next_cursor: str | None


class SessionIn(Model):
    """`POST /api/v1/session`: sign in to the console with a key."""

    key: Annotated[Text, Field(max_length=200)]


class SessionChange(Model):
    """`PATCH /api/v1/session`: the tenant in which the user acts from now on; null is the platform."""

    tenant: TenantName | None


class GrantOut(Model):
    """A role of the signed-in user in a tenant; that of the platform has no tenant."""

    tenant: str | None
    role: RoleName


class SessionOut(Model):
    """The caller: its key or user, its tenant and its role. `keyless`: the server serves without keys; the role is null.

    `grants` are the tenants between which a user may switch, with the present one; a key has none.
    """

    keyless: bool
    key_id: str | None
    user_id: str | None
    name: str | None
    role: RoleName | None
    tenant: str | None
    grants: list[GrantOut]
