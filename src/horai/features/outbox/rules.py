"""Pure rules of sinks: pauses after failures, parking, and the CloudEvents that they get."""

from collections.abc import Mapping, Sequence
from datetime import UTC, timedelta
from typing import Any, Final

import msgspec

from horai.core.callbacks import header_text
from horai.db.outbox import OutboxEvent

SHORTEST_PAUSE, LONGEST_PAUSE = timedelta(seconds=1), timedelta(minutes=1)
PARKED_AFTER: Final = timedelta(minutes=5)
"""A sink that has failed for this long is parked."""
STRUCTURED: Final = "application/cloudevents+json"
BATCHED: Final = "application/cloudevents-batch+json"


def pause_after(failures: int) -> timedelta:
    """Return the pause after this many failures in a row: exponential, 1 s to 60 s."""
    return min(SHORTEST_PAUSE * 2 ** min(max(failures - 1, 0), 10), LONGEST_PAUSE)


def attributes_of(event: OutboxEvent, tenant: str) -> dict[str, str]:
    """Return the attributes of a CloudEvent, without its data.

    `id` is the same on every delivery. `sequence` grows with the order of delivery. `partitionkey` is the instance, or
    the job: events with the same key are in order.
    """
    subject = "" if event.instance_id is None else f"instances/{event.instance_id}"
    return {
        "specversion": "1.0",
        "id": event.event_id,
        "source": f"/horai/tenants/{tenant}",
        "type": event.type,
        "time": event.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "datacontenttype": "application/json",
        "sequence": str(event.position),
        "partitionkey": str(event.instance_id or event.job_id or tenant),
    } | ({"subject": subject} if subject else {})


def structured(event: OutboxEvent, tenant: str) -> bytes:
    """Return an event as one JSON document."""
    document: dict[str, Any] = {**attributes_of(event, tenant), "data": msgspec.Raw(event.data.encode())}
    return msgspec.json.encode(document)


def batched(events: Sequence[OutboxEvent], tenant: str) -> bytes:
    """Return events as a JSON array."""
    return b"[" + b",".join(structured(event, tenant) for event in events) + b"]"


def binary_headers(event: OutboxEvent, tenant: str) -> Mapping[str, str]:
    """Return the attributes as headers of a message whose body is the data."""
    attributes = attributes_of(event, tenant)
    media = attributes.pop("datacontenttype")
    return {"content-type": media} | {f"ce-{name}": header_text(value) for name, value in attributes.items()}
