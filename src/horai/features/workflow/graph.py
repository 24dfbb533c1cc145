"""Jobs in the order of a graph: whether it is one, what may begin, what is held up, and what a rerun does again.

A graph is a mapping from each node to its parents. Pure: a run's states come in, what becomes of it goes out.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from graphlib import CycleError, TopologicalSorter

from horai.core.states import FINAL, State
from horai.text import Hint, Refused
from horai.text.phrase import Phrase

NODES_LIMIT = 500
EDGES_LIMIT = 5_000

Graph = Mapping[str, Collection[str]]
"""The parents of each node; every parent is a node."""

UNDER_WAY = frozenset({State.INIT, State.RUNNING, State.FAIL})
WAITING = frozenset({State.INIT, State.FAIL, State.BLOCKED})


class RunState(IntEnum):
    """How a whole run is doing."""

    RUNNING = 0
    """Something is under way, or about to be."""
    BLOCKED = 1
    """Nothing is under way, and something died: a replay or a rerun lets it go on."""
    SUCCESS = 2
    """Final: every node succeeded."""
    CANCELLED = 3
    """Final: nothing died, and not everything succeeded."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a run: nodes to let go, nodes that end with a parent that was cancelled, and how it then is."""

    released: tuple[str, ...]
    cancelled: tuple[str, ...]
    state: RunState


def cycle_in(graph: Graph) -> list[str] | None:
    """Nodes that wait for one another in a circle, the first again at the end; None when there is an order."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return None


def ordered(graph: Graph) -> list[str]:
    """Every node after its parents; those that could come in any order, by name."""
    sorter = TopologicalSorter({name: graph[name] for name in sorted(graph)})
    sorter.prepare()
    order: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        order += ready
        sorter.done(*ready)
    return order


def roots(graph: Graph) -> frozenset[str]:
    """The nodes that wait for none."""
    return frozenset(name for name, parents in graph.items() if not parents)


def descendants(graph: Graph, name: str) -> frozenset[str]:
    """All that waits for a node, however indirectly; not the node itself."""
    children: dict[str, list[str]] = {node: [] for node in graph}
    for node, parents in graph.items():
        for parent in parents:
            children[parent].append(node)
    found: set[str] = set()
    waiting = [name]
    while waiting:
        fresh = [child for child in children[waiting.pop()] if child not in found]
        found.update(fresh)
        waiting += fresh
    return frozenset(found)


def decide(graph: Graph, states: Mapping[str, State], *, is_given_up: bool = False) -> Decision:
    """What the states of a run's nodes make of it. `is_given_up`: nothing that does not run shall run any more."""
    if is_given_up:
        left = tuple(name for name in ordered(graph) if states[name] in WAITING)
        return Decision((), left, _given_up([state for state in states.values() if state not in WAITING]))
    released: list[str] = []
    cancelled: list[str] = []
    for name in (name for name in ordered(graph) if states[name] is State.BLOCKED):
        parents = [State.CANCELLED if parent in cancelled else states[parent] for parent in graph[name]]
        if State.CANCELLED in parents:
            cancelled.append(name)
        elif all(parent is State.SUCCESS for parent in parents):
            released.append(name)
    after = {**states, **dict.fromkeys(released, State.INIT), **dict.fromkeys(cancelled, State.CANCELLED)}
    return Decision(tuple(released), tuple(cancelled), _run_state(after.values()))


def _run_state(states: Collection[State]) -> RunState:
    if all(state is State.SUCCESS for state in states):
        return RunState.SUCCESS
    if any(state in UNDER_WAY for state in states):
        return RunState.RUNNING
    return RunState.BLOCKED if State.DEAD in states else RunState.CANCELLED


def _given_up(states: Collection[State]) -> RunState:
    return RunState.RUNNING if State.RUNNING in states else RunState.CANCELLED


def held_up_by(graph: Graph, states: Mapping[str, State], dead: str) -> list[str]:
    """What stays BLOCKED because a node died, in the order in which it would have run."""
    below = descendants(graph, dead)
    return [name for name in ordered(graph) if name in below and states[name] is State.BLOCKED]


@dataclass(frozen=True, slots=True)
class Rerun:
    """What is done again from a node on: it and what has ended after it. What is still BLOCKED goes on waiting."""

    first: str
    again: tuple[str, ...]


class NoRerun(ValueError):
    """Why a run cannot be done again from a node on."""

    def __init__(self, message: Phrase, hint: Phrase) -> None:
        super().__init__(message)
        self.hint = hint


def rerun_from(graph: Graph, states: Mapping[str, State], first: str) -> Rerun:
    """Which nodes are done again from `first` on; `NoRerun` while that is at work, or its parents are not done."""
    below = descendants(graph, first)
    affected = [name for name in ordered(graph) if name == first or name in below]
    _require_rest([name for name in affected if states[name] in UNDER_WAY], states)
    if states[first] is State.BLOCKED:
        raise NoRerun(Refused.NODE_NOT_RUN(node=first), Hint.RERUN_FROM_HOLD())
    if unfinished := [parent for parent in sorted(graph[first]) if states[parent] is not State.SUCCESS]:
        name = unfinished[0]
        raise NoRerun(Refused.PARENT_IS(parent=name, state=states[name].name), Hint.RERUN_FROM(node=name))
    return Rerun(first, tuple(name for name in affected if states[name] in FINAL))


def _require_rest(busy: Sequence[str], states: Mapping[str, State]) -> None:
    if busy:
        raise NoRerun(
            Refused.NODE_IS(node=busy[0], state=states[busy[0]].name),
            Hint.WAIT_OR_CANCEL(),
        )
