"""The actor of a request: who asked, with which role, from where."""

from dataclasses import dataclass
from enum import StrEnum


class ActorKind(StrEnum):
    """The kind of an actor: how it authenticates, or why it need not."""

    KEY = "key"
    USER = "user"
    SDK = "sdk"
    SQL = "sql"
    SOURCE = "source"
    SYSTEM = "system"
    """Horai itself, such as the janitor."""
    KEYLESS = "keyless"
    """A client of a server that has no keys."""


@dataclass(frozen=True, slots=True)
class Actor:
    """A caller. `id` identifies it among those of its kind; `address` and `request_id` are empty if there are none."""

    kind: ActorKind
    id: str
    name: str
    role: str
    address: str
    request_id: str


KEYLESS = Actor(ActorKind.KEYLESS, "", "keyless", "admin", "", "")
"""The actor of a server without keys."""
SYSTEM = Actor(ActorKind.SYSTEM, "", "horai", "platform", "", "")
"""Horai itself."""
