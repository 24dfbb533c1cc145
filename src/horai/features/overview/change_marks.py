"""Marks that differ when data has changed: one function per statement of change_marks.sql."""

from collections import defaultdict

from horai.db.catalog import sql
from horai.db.pool import Connection
from horai.features.overview.topics import Pulse, Topic


async def pulse(connection: Connection) -> Pulse:
    """Return the current marks of every topic."""
    marks: defaultdict[Topic, list[str]] = defaultdict(list)
    for topic, mark in await connection.fetch(sql("pulse")):
        marks[Topic(topic)].append(mark or "")
    return {topic: tuple(found) for topic, found in marks.items()}
