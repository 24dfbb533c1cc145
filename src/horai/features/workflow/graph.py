"""Rules of a graph of jobs: detect cycles, decide which nodes can start, list blocked nodes, and plan a rerun.

A graph is a mapping from each node to its parents. All functions are pure: they take the states of a run and return a
decision.
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
    """The state of a whole run."""

    RUNNING = 0
    """At least one node is running or about to run."""
    BLOCKED = 1
    """No node is running and at least one died: a replay or a rerun continues the run."""
    SUCCESS = 2
    """Final: every node succeeded."""
    CANCELLED = 3
    """Final: no node died, and not every node succeeded."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The next step of a run: nodes to release, nodes to cancel, and the state of the run after that.

    A node is cancelled with a cancelled parent, or because the run is given up.
    """

    released: tuple[str, ...]
    cancelled: tuple[str, ...]
    state: RunState


def cycle_in(graph: Graph) -> list[str] | None:
    """Return the nodes of a cycle, the first one repeated at the end; None if the graph has no cycle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return None


def ordered(graph: Graph) -> list[str]:
    """Return the nodes in topological order, and in order of name if several orders are possible."""
    sorter = TopologicalSorter({name: graph[name] for name in sorted(graph)})
    sorter.prepare()
    order: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        order += ready
        sorter.done(*ready)
    return order


def roots(graph: Graph) -> frozenset[str]:
    """Return the nodes without parents."""
    return frozenset(name for name, parents in graph.items() if not parents)


def descendants(graph: Graph, name: str) -> frozenset[str]:
    """Return all nodes that depend on a node, directly or indirectly, without the node itself."""
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
    """Decide the next step of a run from the states of its nodes.

    `is_given_up`: cancel every node that is not running.
    """
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
    """Return the nodes that stay BLOCKED because a node died, in the order in which they would have run."""
    below = descendants(graph, dead)
    return [name for name in ordered(graph) if name in below and states[name] is State.BLOCKED]


@dataclass(frozen=True, slots=True)
class Rerun:
    """The nodes of a rerun: the first node and its ended descendants. Nodes that are still BLOCKED keep waiting."""

    first: str
    again: tuple[str, ...]


class NoRerun(ValueError):
    """A rerun that is not possible; the message is the reason."""

    def __init__(self, message: Phrase, hint: Phrase) -> None:
        super().__init__(message)
        self.hint = hint


def rerun_from(graph: Graph, states: Mapping[str, State], first: str) -> Rerun:
    """Return the nodes to run again from `first` on.

    Raises `NoRerun` if `first` or a descendant is in progress, `first` is still BLOCKED, or a parent has not succeeded.
    """
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
