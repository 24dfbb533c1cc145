"""Messages of event sources that were put aside: looked at, tried once more by the rules of the first time, or let go of.

A message leaves the list behind the commit of its change. A crash between the two leaves it there, and the next retry finds
that its event has taken effect.
"""

from collections.abc import Iterator, Sequence

from horai.core.errors import Conflict, NotFound
from horai.db import jobs
from horai.db.pool import acquire, transaction
from horai.features.events import store as sources
from horai.features.events.change import read_change
from horai.features.events.service import AppliedChange, Arrival, Fate, RepeatedChange, accept_changes
from horai.features.events.store import Parked
from horai.operations.scope import Scope
from horai.text import Hint, Refused

BATCH = 500


async def read_page(scope: Scope, source: str | None, after: int, limit: int) -> list[Parked]:
    """What was put aside, of one source or of all, oldest first, from behind an id."""
    async with acquire(scope.pool) as connection:
        return await sources.parked_events(connection, scope.tenant_id, source, after, limit)


async def read_one(scope: Scope, parked_id: int) -> Parked:
    """One message as it came."""
    async with acquire(scope.pool) as connection:
        found = await sources.parked_event(connection, scope.tenant_id, parked_id)
    if found is None:
        raise parked_not_found(str(parked_id))
    return found


def parked_not_found(reference: str) -> NotFound:
    """One answer for a message that never was there, has been let go of, or is somebody else's."""
    return NotFound(Refused.NO_PARKED_EVENT(event=reference[:40]), Hint.LISTED_AT(path="/api/v1/events/parked"))


async def retry_one(scope: Scope, parked_id: int, job: str | None = None) -> Fate:
    """What becomes of a message when it is tried once more; `job` is whose, where it does not say so itself."""
    found = await read_one(scope, parked_id)
    if not found.is_whole:
        raise Conflict(
            Refused.PARKED_CUT(event=parked_id, size=found.size, kept=len(found.body)),
            Hint.SEND_SMALLER(event=parked_id),
        )
    (fate,) = await retry_all(scope, [found], job)
    return fate


async def retry_all(scope: Scope, parked: Sequence[Parked], job: str | None = None) -> list[Fate]:
    """The same for whole messages of one source, in their order. What takes no effect now stays where it is."""
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
        async with acquire(scope.pool) as connection:
            await sources.drop_parked(connection, scope.tenant_id, done)
        fates += some
    return fates


def _batches(parked: Sequence[Parked]) -> Iterator[Sequence[Parked]]:
    return (parked[first : first + BATCH] for first in range(0, len(parked), BATCH))


async def discard(scope: Scope, ids: Sequence[int], reason: str | None = None) -> list[Parked]:
    """Lets go of messages for good, of all or of none; an event each tells what they were, and why they went."""
    async with transaction(scope.pool) as connection:
        gone = await sources.drop_parked(connection, scope.tenant_id, ids)
        if missing := sorted(set(ids) - {one.id for one in gone}):
            raise parked_not_found(str(missing[0]))
        for one in gone:
            data = {"id": str(one.id), "source": one.source, "place": one.place, "subject": one.subject}
            told = {**data, "parkedFor": one.reason, "reason": reason}
            await jobs.insert_event(connection, scope.tenant_id, None, "PARKED_EVENT_DISCARDED", told)
    return gone
