"""The sender: what every kind of receiver has in common, and the receiver that is a log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import structlog

from horai.core.addresses import TenantReach
from horai.db.outbox import OutboxEvent
from horai.features.outbox.rules import structured

log = structlog.get_logger("horai.events")


@dataclass(frozen=True, slots=True)
class Parcel:
    """Events for one receiver, in order, with what it takes to send them."""

    sink: str
    tenant: str
    place: Mapping[str, Any]
    """The address, with its secrets."""
    events: Sequence[OutboxEvent]
    batch: int
    """The most events that the receiver takes in one request."""
    at: datetime
    """The time of the delivery, by the database, which the signature names."""
    reach: TenantReach
    secrets: tuple[str, ...]
    """The tenant's signing secrets in force, newest first."""

    def __repr__(self) -> str:
        return f"Parcel(sink={self.sink!r}, events={len(self.events)})"


@dataclass(frozen=True, slots=True)
class SendFailure:
    """The reason why events were not accepted. `is_final`: the receiver wants no more events."""

    reason: str
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class ParcelResult:
    """The number of events, from the first on, that the receiver has accepted, and the reason why there are not more."""

    accepted: int
    failure: SendFailure | None = None


class Sender(Protocol):
    """A kind of receiver."""

    async def send(self, parcel: Parcel) -> ParcelResult:
        """Send the events in order, and no event after one that was not accepted."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class LogSender:
    """A receiver that is the log of the node."""

    async def send(self, parcel: Parcel) -> ParcelResult:
        """Write one line per event."""
        for event in parcel.events:
            log.info("event", sink=parcel.sink, event=structured(event, parcel.tenant).decode())
        return ParcelResult(len(parcel.events))

    async def close(self) -> None:
        """Do nothing: there is no connection."""
