"""Operations that read and set queues."""

from dataclasses import replace

from horai.core.audit import AuditVerb
from horai.core.errors import NotFound
from horai.core.queue import QueueSettings, checked_name
from horai.core.wakes import QueueWake
from horai.db import jobs, queues
from horai.db.pool import TenantWrite, retrying
from horai.db.queues import QueueRow
from horai.operations import audit, versions
from horai.operations.scope import Scope, require_version
from horai.operations.versions import StoredDefinition, definition_text
from horai.text import Hint, Refused

LABELS = ("note", "title", "description", "owner")
"""The settings of a queue that only people read."""


async def read_queue(scope: Scope, name: str) -> QueueRow:
    """Return a queue that was set, or that a job uses or has used."""
    async with scope.read() as connection:
        queue = None if "\x00" in name else await queues.find_queue(connection, scope.tenant_id, name)
    if queue is None:
        raise NotFound(Refused.NO_QUEUE(name=name[:64]), Hint.QUEUE_COMES())
    return queue


async def set_queue(scope: Scope, name: str, settings: QueueSettings, if_version: int | None = None) -> QueueRow:
    """Set all limits of a queue. No claim, under way or later, takes more than the new limit."""
    checked_name(name)

    async def attempt() -> QueueRow:
        async with scope.write() as connection:
            return await _set(connection, scope, name, settings, if_version)

    queue = await retrying(attempt)
    scope.wakeups.publish(QueueWake(queue.id))
    return queue


async def _set(
    connection: TenantWrite, scope: Scope, name: str, settings: QueueSettings, if_version: int | None
) -> QueueRow:
    before = await lock_queue(connection, scope, name)
    require_version(f"queue {name!r}", before.version, if_version)
    return await write_settings(connection, scope, before, settings)


async def lock_queue(connection: TenantWrite, scope: Scope, name: str) -> QueueRow:
    """Lock a queue for update; create it first if it does not exist."""
    await queues.make_queue(connection, scope.tenant_id, name)
    queue = await queues.lock_queue(connection, scope.tenant_id, name)
    assert queue is not None  # noqa: S101 — it was made, and queues are never deleted
    return queue


async def write_settings(
    connection: TenantWrite, scope: Scope, before: QueueRow, settings: QueueSettings, declared_by: str | None = None
) -> QueueRow:
    """Set a queue that the caller has locked. The queue belongs to `declared_by` from then on; None keeps its owner.

    Run it last in its transaction. The caller publishes the `QueueWake` after the commit.
    """
    await queues.shut_queue(connection, before.id)
    if before.settings.max_concurrency is None and settings.max_concurrency is not None:
        await queues.adopt_running(connection, before.id)
    await queues.lock_slots(connection, before.id)
    await queues.arrange_slots(connection, before.id, settings.max_concurrency, before.version + 1)
    await queues.relane_queue(connection, before.id, settings.priority_in_force)
    queue = await queues.write_queue(connection, before.id, settings, declared_by)
    await jobs.insert_event(connection, scope.tenant_id, None, "QUEUE_CHANGED", event_of(queue))
    both = event_of(before), event_of(queue)
    await audit.record_change(connection, scope, AuditVerb.QUEUE_CHANGE, queue.id, queue.name, *both)
    await versions.keep(connection, scope, definition(queue), definition(before) if before.version else None)
    return queue


def event_of(queue: QueueRow) -> dict[str, object]:
    """Return the data of the event for a changed queue."""
    return {
        "name": queue.name,
        "priority": (queue.settings.priority_in_force).name,
        "maxConcurrency": queue.settings.max_concurrency,
        "rate": str(queue.settings.rate) if queue.settings.rate else None,
        "paused": queue.settings.paused,
        **{field: text for field in LABELS if (text := getattr(queue.settings, field)) is not None},
        **({} if queue.declared_by is None else {"declaredBy": queue.declared_by}),
        "version": queue.version,
    }


def definition(queue: QueueRow) -> StoredDefinition:
    """Return the definition of a queue: its settings without its pause and the note of it."""
    settings = queue.settings
    document = {
        "name": queue.name,
        "title": settings.title,
        "description": settings.description,
        "owner": settings.owner,
        "priority": settings.priority.name if settings.priority else None,
        "maxConcurrency": settings.max_concurrency,
        "rate": str(settings.rate) if settings.rate else None,
    }
    text = definition_text({name: value for name, value in document.items() if value is not None})
    return StoredDefinition("queue", queue.id, queue.name, queue.version, queue.updated_at, queue.declared_by, text)


def held_as(settings: QueueSettings, now: QueueSettings) -> QueueSettings:
    """Return new settings of a queue with its present pause and note."""
    return replace(settings, paused=now.paused, note=now.note)
