"""Whether anything has changed: one function per statement of sql/pulse.sql."""

from collections import defaultdict

from horai.db.catalog import sql
from horai.db.pool import Connection
from horai.features.overview.topics import Pulse, Topic


async def pulse(connection: Connection) -> Pulse:
    """The marks of every topic, as they are now."""
    marks: defaultdict[Topic, list[str]] = defaultdict(list)
    for topic, mark in await connection.fetch(sql("pulse")):
        marks[Topic(topic)].append(mark or "")
    return {topic: tuple(found) for topic, found in marks.items()}
