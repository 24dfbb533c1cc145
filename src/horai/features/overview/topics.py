"""Topics of the pages of the console, and the detection of changed topics."""

from collections.abc import Mapping
from enum import StrEnum


class Topic(StrEnum):
    """A kind of data of which a page may show an outdated state."""

    instances = "instances"
    jobs = "jobs"
    queues = "queues"
    dead_letters = "dead-letters"
    workflows = "workflows"
    backfills = "backfills"
    refresh = "refresh"
    reconcilers = "reconcilers"
    nodes = "nodes"


EVERY_TOPIC = frozenset(Topic)
OF_TENANTS = EVERY_TOPIC - {Topic.nodes}
"""The topics of data that belong to tenants."""

Pulse = Mapping[Topic, tuple[str, ...]]
"""Marks by topic: if they are the same as before, no change of the topic is known so far."""


def changed(before: Pulse | None, now: Pulse) -> frozenset[Topic]:
    """Return the topics whose marks differ from `before`; every topic if `before` is None."""
    if before is None:
        return EVERY_TOPIC
    return frozenset(topic for topic in Topic if before.get(topic) != now.get(topic))
