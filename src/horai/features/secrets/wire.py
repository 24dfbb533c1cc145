"""Named secrets on the wire. A value goes in and never comes out."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from horai.wire.fields import Model, Text


class SecretIn(Model):
    """`POST /api/v1/secrets`: a new secret. Headers of targets send it as `{"secret": "name"}`."""

    name: Annotated[Text, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}$")]
    value: Annotated[Text, Field(min_length=1, max_length=4_096)]


class SecretValueIn(Model):
    """`PUT /api/v1/secrets/{name}`: the value of a secret."""

    value: Annotated[Text, Field(min_length=1, max_length=4_096)]


class SecretOut(Model):
    """A named secret. Its value is never shown; `version` counts the values that it has had."""

    name: str
    version: int
    created_at: datetime
    updated_at: datetime


class SecretList(Model):
    """A page of secrets, by name."""

    items: list[SecretOut]
    next_cursor: str | None
