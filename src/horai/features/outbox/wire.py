"""Sinks on the wire."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from horai.wire.fields import Instant, Model, Text

Kind = Literal["webhook", "nats", "kafka", "log"]


class SinkIn(Model):
    """`PUT /api/v1/sinks/{name}`: a receiver of the tenant's events, as CloudEvents 1.0.

    `webhook`: `url`, with optional `headers`, whose values are never shown again. `nats` and `kafka`: `broker`, a name
    that the operator allows (`--broker NAME=URL`), and `subject` or `topic`. `log`: the log of the node. `types`: the
    types of events to send, such as `horai.instance.done`; without it, all. `batch`: the most events in one request of a
    webhook (default 1: one JSON document; more: a JSON array).
    """

    kind: Kind
    url: Text | None = None
    headers: dict[Text, Text] | None = None
    broker: Text | None = None
    subject: Text | None = None
    topic: Text | None = None
    types: Annotated[list[Text], Field(min_length=1, max_length=50)] | None = None
    batch: Annotated[int, Field(ge=1, le=500)] | None = None


class SinkReplayIn(Model):
    """`POST /api/v1/sinks/{name}/replay`: send all events since a time again, in order. Events are kept for 7 days."""

    since: Instant


class SinkOut(Model):
    """A sink and the state of its delivery.

    `behind`: recorded events that it has not got, counted up to 10,000. `lagSeconds`: the age of the oldest of them, or
    the time for which an open transaction of the database has kept events from being recorded. `status`: `PARKED` after 5 minutes of failures, and then tried once a minute; `PAUSED` by hand, or because the receiver
    answered 410.
    """

    name: str
    kind: Kind
    url: str | None
    headers: dict[str, str] | None
    broker: str | None
    subject: str | None
    topic: str | None
    types: list[str] | None
    batch: int
    status: Literal["ACTIVE", "PARKED", "PAUSED"]
    delivered: int
    delivered_at: datetime | None
    behind: int
    lag_seconds: float
    failures: int
    failing_since: datetime | None
    last_error: str | None
    next_try: datetime | None
    version: int
    created_at: datetime
    updated_at: datetime


class SinkList(Model):
    """A page of sinks, by name."""

    items: list[SinkOut]
    next_cursor: str | None


class SinkReplayed(Model):
    """The events that the sink gets again."""

    replayed: int
