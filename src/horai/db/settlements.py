"""Writes of decisions: for each kind of decision in a batch, one guarded statement."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from horai.core.outcome import Bury, Complete, Decision, Release, RetryAt, Suspend, Withdraw
from horai.core.states import CancelReason
from horai.db import claims, compensations
from horai.db.claims import Claim, Claimable
from horai.db.pool import AnyWrite


@dataclass(slots=True)
class SettledRows:
    """The ids of claims that were settled, and the rows that will be due again."""

    ids: set[int] = field(default_factory=set[int])
    woken: list[Claimable] = field(default_factory=list[Claimable])
    instead: dict[int, Decision] = field(default_factory=dict[int, Decision])
    """The decisions that were written in place of others, by instance: one whose compensations run first does not die yet."""

    def again(self, woken: Sequence[Claimable]) -> None:
        """Add rows that are settled for now and will be due again."""
        self.ids |= {row.id for row in woken}
        self.woken += woken


async def apply(connection: AnyWrite, batch: Sequence[tuple[Claim, Decision]]) -> SettledRows:
    """Write the decisions in the caller's transaction; skip rows that another transaction has locked."""
    applied = SettledRows()
    if complete := [(held, decision) for held, decision in batch if isinstance(decision, Complete)]:
        applied.ids |= await claims.finish_if_free(connection, complete)
    retry = [(held, decision) for held, decision in batch if isinstance(decision, RetryAt)]
    if bury := [(held, decision) for held, decision in batch if isinstance(decision, Bury)]:
        dead, again = await compensations.before_death(connection, bury)
        applied.ids |= await claims.bury_if_running(connection, dead) if dead else set()
        applied.instead = {held.id: decision for held, decision in again}
        retry += again
    if retry:
        applied.again(await claims.fail_if_running(connection, retry))
    if suspend := [(held, decision) for held, decision in batch if isinstance(decision, Suspend)]:
        applied.again(await claims.suspend_if_running(connection, suspend))
    if withdrawn := [held for held, decision in batch if isinstance(decision, Withdraw)]:
        applied.ids |= await claims.cancel_if_running(connection, withdrawn, CancelReason.USER)
    if release := [(held, decision) for held, decision in batch if type(decision) is Release]:
        applied.again(await claims.release_if_running(connection, release))
    return applied
