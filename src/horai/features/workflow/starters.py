"""The end of the instances that started runs of workflows: each ends as its run does.

Such an instance stays RUNNING, held by no node, from the transaction that creates its run to the transaction that finds
the run over or blocked. A blocked run makes it DEAD: the run waits for an operator, and other work does not have to
wait with it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from horai.core.outcome import Bury, Complete, Decision, tags_of
from horai.core.states import CancelReason
from horai.db import instances, settlements
from horai.db.claims import Claim
from horai.db.pool import AnyWrite
from horai.features.workflow import run_store
from horai.features.workflow.graph import RunState

RUN_BLOCKED = "RUN_BLOCKED"
_MESSAGE = "A node of the run died. Replay its dead letter or rerun the run from it: the run then continues."


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The end of a run; `reason` applies if it was cancelled."""

    state: RunState
    reason: CancelReason = CancelReason.USER


@dataclass(frozen=True, slots=True)
class EndedStarters:
    """The instances that ended with their runs, and those that another transaction holds."""

    ended: frozenset[int]
    locked: frozenset[int]


async def end_starters(connection: AnyWrite, ends: Mapping[int, RunEnd]) -> EndedStarters:
    """End the instances that started these runs, in the transaction that holds the runs.

    An instance that a node has claimed again meanwhile is not touched: its executor asks for the state of the run.
    """
    waiting = await run_store.waiting_starters(connection, ends)
    cancelled = [run_id for run_id, end in ends.items() if end.state is RunState.CANCELLED]
    batch = [(held, _decision(held, ends[held.id].state)) for held in waiting if held.id not in cancelled]
    ended = (await settlements.apply(connection, batch)).ids
    await instances.supersede_dead_letters(connection, [held.id for held, does in batch if isinstance(does, Bury)])
    for reason in sorted({ends[run_id].reason for run_id in cancelled}):
        ids = sorted(run_id for run_id in cancelled if ends[run_id].reason is reason)
        ended |= {row.id for row in await instances.cancel_live(connection, ids, reason, running=True)}
    return EndedStarters(frozenset(ended), frozenset(held.id for held in waiting if held.id not in ended))


def _decision(held: Claim, state: RunState) -> Decision:
    """Decide how a starter ends.

    The letter of a blocked run needs no action: the letters of its dead nodes are replayed.
    """
    if state is RunState.SUCCESS:
        return Complete(json.dumps({"run": str(held.id)}))
    return Bury(RUN_BLOCKED, _MESSAGE, tags_of(RUN_BLOCKED, spent=False))
