"""Group mappings and the ways to sign in on the wire."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from horai.wire.encode import From
from horai.wire.fields import Id, Model, Text

GroupRole = Literal["viewer", "operator", "admin", "platform-admin"]
GroupName = Annotated[Text, Field(min_length=1, max_length=256)]


class GroupMappingIn(Model):
    """`POST /api/v1/groups`. `group` is a value of the groups claim, letter by letter.

    `tenant` is required, but for the role platform-admin, which belongs to no tenant.
    """

    group: GroupName
    role: GroupRole
    tenant: Annotated[Text, Field(max_length=63)] | None = None


class GroupMappingOut(Model):
    """A role that the users of a group have in a tenant. `tenant` is null for the platform."""

    id: Id
    group: Annotated[str, From("name")]
    role: GroupRole
    tenant: str | None
    created_at: datetime
    created_by: str


class GroupMappingList(Model):
    """A page of group mappings, newest first."""

    items: list[GroupMappingOut]
    next_cursor: str | None


class SignInOptionsOut(Model):
    """The ways to sign in. `provider` is the host of the identity provider; null: only keys sign in.

    With a provider, a browser signs in at `GET /api/v1/session/oidc?returnTo=PATH`.
    """

    provider: str | None
