"""What an adapter has to be able to do.

A source delivers each message at least once, and again until it is told that it is done with. It promises nothing on order:
what decides between two changes of a key is their version.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from horai.core.errors import HoraiError


class SourceUnavailable(HoraiError):
    """The source is out of reach for now: worth trying again."""

    code = "SCH_503_SOURCE_UNAVAILABLE"
    status = 503
    title = "Source unavailable"


class SourceRefused(HoraiError):
    """The source is there and not as it should be: somebody has to change something."""

    code = "SCH_422_SOURCE"
    status = 422
    title = "Source not usable"


@dataclass(frozen=True, slots=True)
class Message:
    """What a source delivers. `place` names it within the source, the same at every delivery; `deliveries` counts from 1."""

    place: str
    subject: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    deliveries: int = 1


class Source(Protocol):
    """Where messages come from. One that has none yet waits a moment; the others of its methods do not wait for an answer."""

    @property
    def name(self) -> str:
        """Within which the ids of events are their own, such as `nats:articles`; the same after a restart."""
        ...

    async def receive(self, limit: int) -> Sequence[Message] | None:
        """Up to `limit` messages, none after a moment without any; None when there will never be more."""
        ...

    async def ack(self, message: Message) -> None:
        """It is done with: never deliver it again. Called when its effect is committed, not before."""
        ...

    async def nak(self, message: Message, delay: timedelta) -> None:
        """Nothing was done: deliver it again, no sooner than after `delay`."""
        ...

    async def park(self, message: Message) -> None:
        """It can never take effect, and is kept elsewhere: never deliver it again."""
        ...

    async def close(self) -> None:
        """Lets go of everything; what was not told to be done with is delivered to whoever comes next."""
        ...
