"""Parked messages of event sources: list them, retry them by the rules of the first attempt, or discard them.

A message leaves the list after its change is committed. If the process crashes between the two, the message stays, and
the next retry finds that its event has already taken effect.
"""

from collections.abc import Iterator, Sequence

from horai.core.audit import AuditVerb
from horai.core.errors import Conflict, NotFound
from horai.db import jobs
from horai.db.pool import TenantRead
from horai.features.events import store as sources
from horai.features.events.change import read_change
from horai.features.events.sealed_bodies import opened, readable
from horai.features.events.service import AppliedChange, Arrival, Fate, RepeatedChange, accept_changes
from horai.features.events.store import Parked
from horai.operations import audit
from horai.operations.scope import Scope
from horai.text import Hint, Refused

BATCH = 500


async def read_page(scope: Scope, source: str | None, after: int, limit: int) -> list[Parked]:
    """Return a page of parked messages after the id `after`, oldest first; `source` None means all sources."""
    async with scope.read() as connection:
        found = await sources.parked_events(connection, scope.tenant_id, source, after, limit)
        return [await readable(connection, scope, one) for one in found]


async def read_one(scope: Scope, parked_id: int) -> Parked:
    """Return one parked message. Raises `NotFound` if there is none with this id."""
    async with scope.read() as connection:
        return await readable(connection, scope, await _stored(connection, scope, parked_id))


async def _stored(connection: TenantRead, scope: Scope, parked_id: int) -> Parked:
    found = await sources.parked_event(connection, scope.tenant_id, parked_id)
    if found is None:
        raise parked_not_found(str(parked_id))
    return found


def parked_not_found(reference: str) -> NotFound:
    """Return the same error for a message that never existed, was discarded, or belongs to another tenant."""
    return NotFound(Refused.NO_PARKED_EVENT(event=reference[:40]), Hint.LISTED_AT(path="/api/v1/events/parked"))


async def retry_one(scope: Scope, parked_id: int, job: str | None = None) -> Fate:
    """Retry a parked message and return the result; `job` is used if the message names none.

    Raises `Conflict` if only the beginning of the message was kept.
    """
    async with scope.read() as connection:
        found = await opened(connection, scope, await _stored(connection, scope, parked_id))
    if not found.is_whole:
        raise Conflict(
            Refused.PARKED_CUT(event=parked_id, size=found.size, kept=len(found.body)),
            Hint.SEND_SMALLER(event=parked_id),
        )
    (fate,) = await retry_all(scope, [found], job)
    return fate


async def retry_all(scope: Scope, parked: Sequence[Parked], job: str | None = None) -> list[Fate]:
    """Retry complete messages of one source, in order. Messages that take no effect now stay parked."""
    fates: list[Fate] = []
    for batch in _batches(parked):
        arrivals = [
            Arrival(one.place, one.subject, one.headers, one.body, read_change(one.body, one.headers, job))
            for one in batch
        ]
        some = await accept_changes(scope, batch[0].source, arrivals)
        done = [
            one.id for one, fate in zip(batch, some, strict=True) if isinstance(fate, AppliedChange | RepeatedChange)
        ]
        async with scope.write() as connection:
            await sources.drop_parked(connection, scope.tenant_id, done)
            counts = {"events": len(done), "parked": len(batch) - len(done)}
            verb = AuditVerb.PARKED_EVENTS_RETRY
            await audit.record_write(connection, scope, verb, "", batch[0].source, counts=counts)
        fates += some
    return fates


def _batches(parked: Sequence[Parked]) -> Iterator[Sequence[Parked]]:
    return (parked[first : first + BATCH] for first in range(0, len(parked), BATCH))


async def discard(scope: Scope, ids: Sequence[int], reason: str | None = None) -> list[Parked]:
    """Delete all of the messages, or none if one is missing; record an event with the reason for each."""
    async with scope.write() as connection:
        gone = await sources.drop_parked(connection, scope.tenant_id, ids)
        if missing := sorted(set(ids) - {one.id for one in gone}):
            raise parked_not_found(str(missing[0]))
        for one in gone:
            data = {"id": str(one.id), "source": one.source, "place": one.place, "subject": one.subject}
            told = {**data, "parkedFor": one.reason, "reason": reason}
            await jobs.insert_event(connection, scope.tenant_id, None, "PARKED_EVENT_DISCARDED", told)
            verb = AuditVerb.PARKED_EVENT_DISCARD
            await audit.record_write(connection, scope, verb, one.id, one.subject or "", {"reason": reason})
        return [await readable(connection, scope, one) for one in gone]
