"""Bulk discard of dead letters: oldest first, in batches of one transaction each.

A crash between batches leaves the other letters unchanged; the same request again discards the rest.

The loop of operations/bulk.py does not fit: one statement finds and discards the letters that are not locked (SKIP
LOCKED), so no letter is waited for, retried or counted as held, and the next batch needs no position to start from.
"""

import time
from dataclasses import dataclass

from horai.core.audit import AuditVerb
from horai.db import dead_letters, nodes
from horai.db.dead_letters import LetterFilter
from horai.db.pool import Plans
from horai.operations import audit
from horai.operations.letter_replay import BATCH, until
from horai.operations.scope import Scope


@dataclass(slots=True)
class DiscardSummary:
    """The result of a discard; `more`: other letters match, or matching letters are locked by another transaction."""

    matched: int = 0
    discarded: int = 0
    more: bool = False


async def count_matching(scope: Scope, only: LetterFilter, limit: int) -> DiscardSummary:
    """Count the letters that a discard would take now, without writing."""
    async with scope.read() as connection:
        meant = until(only, await nodes.database_time(connection))
        found = await dead_letters.count_open(connection, scope.tenant_id, meant, limit + 1)
    return DiscardSummary(min(found, limit), more=found > limit)


async def discard_matching(scope: Scope, only: LetterFilter, limit: int, reason: str) -> DiscardSummary:
    """Discard letters that match and existed when the call began, at most `limit`."""
    told, ends_at = DiscardSummary(), time.monotonic() + scope.longest
    async with scope.read() as connection:
        meant = until(only, await nodes.database_time(connection))
    while (left := limit - told.discarded) > 0 and time.monotonic() < ends_at:
        async with scope.write(Plans.FRESH) as connection:
            done = await dead_letters.discard_open(connection, scope.tenant_id, meant, min(left, BATCH), reason)
            if done:
                verb, counts = AuditVerb.DEAD_LETTERS_DISCARD_MATCHING, {"letters": done}
                await audit.record_write(connection, scope, verb, "", "", {"reason": reason}, counts)
        told.discarded += done
        if done < min(left, BATCH):
            break
    async with scope.read() as connection:
        told.more = await dead_letters.count_open(connection, scope.tenant_id, meant, 1) > 0
    told.matched = told.discarded
    return told
