"""Wire models of server-sent events."""

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
    """The data of `event: change`: the topics that may have changed. It contains only what to reload."""

    topics: list[TopicName]
