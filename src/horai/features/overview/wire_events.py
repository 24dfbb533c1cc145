"""Server-sent events on the wire."""

from typing import Literal

from horai.wire.fields import Model

TopicName = Literal[
    "instances",
    "jobs",
    "queues",
    "dead-letters",
    "workflows",
    "backfills",
    "refresh",
    "reconcilers",
    "nodes",
]


class ChangeOut(Model):
    """The data of `event: change`: of what there may be news. It says where to look again, and no more."""

    topics: list[TopicName]
