"""The protocol that an adapter of an event source implements.

A source delivers each message at least once, and again until the message is acknowledged or parked. A source does not
guarantee an order: the version decides between two changes of a key.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from horai.core.errors import HoraiError


class SourceUnavailable(HoraiError):
    """A source that cannot be reached at the moment; retry later."""

    code = "SCH_503_SOURCE_UNAVAILABLE"
    status = 503
    title = "Source unavailable"


class SourceRefused(HoraiError):
    """A source that was reached but is not configured correctly; the operator has to change it."""

    code = "SCH_422_SOURCE"
    status = 422
    title = "Source not usable"


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a source.

    `place` identifies it within the source, the same at every delivery; `deliveries` counts from 1.
    """

    place: str
    subject: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    deliveries: int = 1


class Source(Protocol):
    """A source of messages.

    `receive` waits briefly if there is no message; `ack`, `nak` and `park` do not wait for an answer.
    """

    @property
    def name(self) -> str:
        """The namespace of the event ids, such as `nats:articles`; the same after a restart."""
        ...

    async def receive(self, limit: int) -> Sequence[Message] | None:
        """Return up to `limit` messages, an empty list after a short wait without any, None if the source has ended."""
        ...

    async def ack(self, message: Message) -> None:
        """Mark the message as processed: never deliver it again. Called only after its effect is committed."""
        ...

    async def nak(self, message: Message, delay: timedelta) -> None:
        """Request redelivery of the message, no sooner than after `delay`; it had no effect."""
        ...

    async def park(self, message: Message) -> None:
        """Mark the message as one that can never take effect and is stored elsewhere: never deliver it again."""
        ...

    async def close(self) -> None:
        """Release all resources; messages that were neither acknowledged nor parked go to the next consumer."""
        ...
