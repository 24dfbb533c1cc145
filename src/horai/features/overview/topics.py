"""What the pages of a console are about, and which of them have to look again."""

from collections.abc import Mapping
from enum import StrEnum


class Topic(StrEnum):
    """Something of which a page may show a state that is over."""

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

Pulse = Mapping[Topic, tuple[str, ...]]
"""Marks by topic: where they are the same as before, nothing has changed, as far as anybody knows by now."""


def changed(before: Pulse | None, now: Pulse) -> frozenset[Topic]:
    """The topics whose marks are others than before; all of them where nothing is known of before."""
    if before is None:
        return EVERY_TOPIC
    return frozenset(topic for topic in Topic if before.get(topic) != now.get(topic))
