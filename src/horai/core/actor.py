"""The actor of a request: the key, user or process that acts."""

from dataclasses import dataclass
from enum import StrEnum


class ActorKind(StrEnum):
    """The kind of an actor: a key, a signed-in user, a process, or a request that needs no key."""

    KEY = "key"
    USER = "user"
    SDK = "sdk"
    SQL = "sql"
    SOURCE = "source"
    SYSTEM = "system"
    KEYLESS = "keyless"


@dataclass(frozen=True, slots=True)
class Actor:
    """The actor of a change, with its address and the id of its request."""

    kind: ActorKind
    id: str
    name: str
    role: str
    address: str
    request_id: str
    via: str = ""
    """The way of a write: `console`, `cli`, `api` or `code`; empty for all else."""


SYSTEM = Actor(ActorKind.SYSTEM, "", "horai", "platform", "", "")
"""Horai itself, such as the janitor."""
