"""Decisions as writes: whatever a batch holds, each kind goes to the database as one guarded statement."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from horai.core.outcome import Bury, Complete, Decision, Release, Retry
from horai.db import claims
from horai.db.claims import Held, Woken
from horai.db.pool import Connection


@dataclass(slots=True)
class Applied:
    """The ids that were still their holder's and are settled now, and what will be due again."""

    ids: set[int] = field(default_factory=set[int])
    woken: list[Woken] = field(default_factory=list[Woken])

    def again(self, woken: Sequence[Woken]) -> None:
        """Settled for now, and due again."""
        self.ids |= {row.id for row in woken}
        self.woken += woken


async def apply(connection: Connection, batch: Sequence[tuple[Held, Decision]]) -> Applied:
    """Writes the decisions in the caller's transaction, passing over rows that somebody else has locked."""
    applied = Applied()
    if complete := [(held, decision) for held, decision in batch if isinstance(decision, Complete)]:
        applied.ids |= await claims.finish_if_free(connection, complete)
    if bury := [(held, decision) for held, decision in batch if isinstance(decision, Bury)]:
        applied.ids |= await claims.bury_if_running(connection, bury)
    if retry := [(held, decision) for held, decision in batch if isinstance(decision, Retry)]:
        applied.again(await claims.fail_if_running(connection, retry))
    if release := [(held, decision) for held, decision in batch if isinstance(decision, Release)]:
        applied.again(await claims.release_if_running(connection, release))
    return applied
