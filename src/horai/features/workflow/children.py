"""Nodes that start runs of other workflows: their states by those of the runs, another run after a failed one, and cancels.

The instance of such a node is one of the job of the inner workflow, so the executor of workflows starts its run, once, and the
instance ends with the run. The decision on the parent run holds its row: it starts another run in the transaction that
points the node to it. A transaction that holds a parent run may lock a child run, never the other way round.
"""

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from horai.core.retry import Dice, backoff
from horai.core.states import State
from horai.db.claims import Claimable
from horai.db.pool import AnyWrite
from horai.features.workflow import child_store
from horai.features.workflow.child_store import ChildPhase
from horai.features.workflow.graph import RunState
from horai.features.workflow.run_store import HeldRun, RunNode, Seen, lock_runs
from horai.features.workflow.starters import RUN_BLOCKED

STATES: Mapping[RunState, State] = {
    RunState.RUNNING: State.RUNNING,
    RunState.BLOCKED: State.DEAD,
    RunState.SUCCESS: State.SUCCESS,
    RunState.CANCELLED: State.CANCELLED,
}
"""The state of a node by that of its run, once the instance that started the run is dead."""


@dataclass(slots=True)
class ChildDecisions:
    """The part of one decision on runs that concerns nodes with runs of their own.

    `woken` are instances that will start another run, `given_up` the runs that are no longer wanted, which this transaction has
    locked, and `busy` the parent runs to decide on again soon: another transaction has locked a run of theirs.
    """

    connection: AnyWrite
    since: datetime
    dice: Dice = random.uniform
    woken: list[Claimable] = field(default_factory=list[Claimable])
    given_up: set[int] = field(default_factory=set[int])
    busy: set[int] = field(default_factory=set[int])

    async def look(
        self, held: Sequence[HeldRun], nodes: Sequence[RunNode], seen: Mapping[int, Seen], orphans: Collection[int]
    ) -> tuple[list[RunNode], dict[int, Seen]]:
        """Return the nodes and the states of their instances, with those of nodes whose runs go on or are started again."""
        asked = [n.instance_id for n in nodes if n.child is not None and seen[n.instance_id].state in _OPEN]
        if not asked:
            return list(nodes), dict(seen)
        phases = await child_store.child_phases(self.connection, asked)
        found, states = await self._with_phases(nodes, seen, phases)
        leaving = {run.id for run in held if run.is_given_up or run.id in orphans}
        unwanted = {
            node.instance_id: place
            for place, node in enumerate(found)
            if node.child is not None and _is_unwanted(node, states, phases, is_leaving=node.run_id in leaving)
        }
        locked = {run.id for run in await lock_runs(self.connection, unwanted)} if unwanted else set[int]()
        self.given_up |= locked
        for instance_id, place in unwanted.items():
            node = found[place]
            if instance_id not in locked:
                self.busy.add(node.run_id)
                states[instance_id] = Seen(State.RUNNING)
            elif node.run_id not in leaving:
                found[place] = again = await self._started_again(node)
                states[again.instance_id] = Seen(State.INIT)
        return found, states

    async def _with_phases(
        self, nodes: Sequence[RunNode], seen: Mapping[int, Seen], phases: Mapping[int, ChildPhase]
    ) -> tuple[list[RunNode], dict[int, Seen]]:
        """Return the nodes and states with those of runs that went on after the instance that started them was dead."""
        found, states = list(nodes), dict(seen)
        reopened = list[int]()
        for place, node in enumerate(nodes):
            phase = None if node.child is None else phases.get(node.instance_id)
            if phase is None or seen[node.instance_id].state is not State.DEAD or phase.state is RunState.BLOCKED:
                continue
            states[node.instance_id] = Seen(STATES[phase.state])
            if node.ended is not None:
                reopened.append(node.instance_id)
                found[place] = replace(node, ended=None, cause=None)
        if reopened:
            await child_store.reopen_children(self.connection, reopened)
        return found, states

    async def _started_again(self, node: RunNode) -> RunNode:
        """Return the node with the instance that starts its next run."""
        assert node.child_attempt is not None and node.retry is not None  # noqa: S101, PT018 — the caller checked it
        delay = backoff(node.retry, node.child_attempt, self.dice)
        made = await child_store.start_again(self.connection, node.instance_id, node.child_attempt, delay, self.since)
        assert made is not None  # noqa: S101 — this transaction has locked the parent run, and read the node since
        self.woken.append(made)
        return replace(node, instance_id=made.id, child_attempt=node.child_attempt + 1)


_OPEN = frozenset({State.DEAD, State.RUNNING})
"""The states of an instance whose run may be in another state."""


def _is_unwanted(
    node: RunNode, states: Mapping[int, Seen], phases: Mapping[int, ChildPhase], *, is_leaving: bool
) -> bool:
    """Return whether the run of a node has to be given up: with its parent run, or because another run follows it."""
    there, phase = states[node.instance_id], phases.get(node.instance_id)
    if phase is None or phase.state not in {RunState.RUNNING, RunState.BLOCKED}:
        return False
    if is_leaving:
        return not phase.is_given_up
    has_failed = there.state is State.DEAD and there.error_code == RUN_BLOCKED and node.ended is None
    return has_failed and node.retry is not None and not node.retry.is_spent(node.child_attempt or 1)
