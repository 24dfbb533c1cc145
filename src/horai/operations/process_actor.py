"""The actor of work that no request brings: this process, by its host and process id."""

import os
import socket

from horai.core.actor import Actor, ActorKind
from horai.core.roles import AccessRole


def process_actor(kind: ActorKind, name: str = "") -> Actor:
    """Return this process as an actor. A process that reaches the database may do everything that its tenant may."""
    via = "code" if kind is ActorKind.SDK else ""
    return Actor(kind, f"{socket.gethostname()}:{os.getpid()}", name, AccessRole.ADMIN, "", "", via)
