"""Marks that differ when data has changed: one function per statement of change_marks.sql."""

from collections import defaultdict
from collections.abc import Collection

from horai.db.catalog import sql
from horai.db.pool import Platform
from horai.features.overview.topics import Pulse, Topic


async def pulse(connection: Platform) -> Pulse:
    """Return the current marks of every topic."""
    marks: defaultdict[Topic, list[str]] = defaultdict(list)
    for topic, mark in await connection.fetch(sql("pulse")):
        marks[Topic(topic)].append(mark or "")
    return {topic: tuple(found) for topic, found in marks.items()}


async def has_several_tenants(connection: Platform) -> bool:
    """Return whether the server has more than one tenant."""
    return await connection.fetchval(sql("has_several_tenants"))


async def tenant_pulses(connection: Platform, tenant_ids: Collection[int]) -> dict[int, Pulse]:
    """Return the current marks of tenants. Topics without marks of their own are left out."""
    if not tenant_ids:
        return {}
    marks: dict[int, defaultdict[Topic, list[str]]] = {tenant_id: defaultdict(list) for tenant_id in tenant_ids}
    for tenant_id, topic, mark in await connection.fetch(sql("tenant_pulses"), list(tenant_ids)):
        marks[tenant_id][Topic(topic)].append(mark or "")
    return {tenant_id: {topic: tuple(found) for topic, found in own.items()} for tenant_id, own in marks.items()}
