"""What was put aside, as a source: each message is tried once more, by the same rules as the first time."""

from collections.abc import Sequence
from datetime import timedelta

from horai.db import sources
from horai.db.pool import Pool, acquire
from horai.db.sources import Parked
from horai.sources.source import Message


class ParkedMessages:
    """Parked messages of one source. What takes effect now is let go; what does not stays where it is."""

    def __init__(self, pool: Pool, tenant_id: int, parked: Sequence[Parked]) -> None:
        self._pool = pool
        self._tenant_id = tenant_id
        self._waiting = list(parked)
        self._ids = {one.place: one.id for one in parked}
        self._name = parked[0].source

    @property
    def name(self) -> str:
        """That of the source they came from: an event that has taken effect meanwhile is known."""
        return self._name

    async def receive(self, limit: int) -> Sequence[Message] | None:
        taken, self._waiting = self._waiting[:limit], self._waiting[limit:]
        return [Message(one.place, one.subject, one.body, one.headers) for one in taken] or None

    async def ack(self, message: Message) -> None:
        async with acquire(self._pool) as connection:
            await sources.drop_parked(connection, self._tenant_id, [self._ids[message.place]])

    async def nak(self, message: Message, delay: timedelta) -> None:
        """It stays parked."""

    async def park(self, message: Message) -> None:
        """It stays parked."""

    async def close(self) -> None:
        """Nothing is held."""
