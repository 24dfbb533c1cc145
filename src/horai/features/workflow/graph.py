"""Rules of a graph of jobs: detect cycles, decide which nodes can start, list blocked nodes, and plan a rerun.

A graph is a mapping from each node to its parents. All functions are pure: they take the states of a run and return a
decision.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from graphlib import CycleError, TopologicalSorter

from horai.core.states import FINAL, State
from horai.features.workflow.trigger_rules import (
    PLAIN,
    SKIP_CAUSES,
    NodeCause,
    NodeVerdict,
    RunFacts,
    TriggerRule,
    end_of,
    verdict_of,
)
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
    """Final: every node succeeded or was skipped."""
    CANCELLED = 3
    """Final: no node died, and at least one was cancelled."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The next step of a run: nodes to release, to cancel and to skip, and the state of the run after that.

    A node is cancelled with a cancelled parent, or because the run is given up.
    """

    released: tuple[str, ...]
    cancelled: tuple[str, ...]
    state: RunState
    skipped: tuple[tuple[str, NodeCause], ...] = ()


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


def decide(
    graph: Graph, states: Mapping[str, State], *, is_given_up: bool = False, facts: RunFacts = PLAIN
) -> Decision:
    """Decide the next step of a run from the states of its nodes.

    `is_given_up`: cancel every node that is not running.
    """
    if is_given_up:
        left = tuple(name for name in ordered(graph) if states[name] in WAITING)
        return Decision((), left, _given_up([state for state in states.values() if state not in WAITING]))
    verdicts = _verdicts(graph, states, facts)
    released = tuple(name for name, verdict in verdicts.items() if verdict is NodeVerdict.RELEASE)
    cancelled = tuple(name for name, verdict in verdicts.items() if verdict is NodeVerdict.CANCEL)
    skipped = tuple((name, SKIP_CAUSES[verdict]) for name, verdict in verdicts.items() if verdict in SKIP_CAUSES)
    after = {**states, **dict.fromkeys(released, State.INIT), **dict.fromkeys(cancelled, State.CANCELLED)}
    left_out = facts.skipped | {name for name, _ in skipped}
    state = _run_state([state for name, state in after.items() if name not in left_out])
    return Decision(released, cancelled, state, skipped)


def _verdicts(graph: Graph, states: Mapping[str, State], facts: RunFacts) -> dict[str, NodeVerdict]:
    """Return the verdict on each BLOCKED node, in topological order."""
    verdicts: dict[str, NodeVerdict] = {}
    ends = {name: end_of(state, is_skipped=name in facts.skipped) for name, state in states.items()}
    for name in (name for name in ordered(graph) if states[name] is State.BLOCKED):
        rule = facts.rules.get(name, TriggerRule.ALL_SUCCESS)
        is_passed_over = name in facts.passed_over
        verdicts[name] = (
            NodeVerdict.PASS_OVER if is_passed_over else verdict_of(rule, {ends[parent] for parent in graph[name]})
        )
        ends[name] = verdicts[name].end
    return verdicts


def passed_over(graph: Graph, chosen: Mapping[str, Collection[str]]) -> frozenset[str]:
    """Return the nodes that branches skip. `chosen`: by node, those directly after it that it chose.

    A node that comes after a chosen node as well, such as a join, is not skipped by the branch.
    """
    left_out: set[str] = set()
    for parent, names in chosen.items():
        behind = {below for name in names for below in descendants(graph, name)}
        left_out |= {name for name in children_of(graph, parent) if name not in names and name not in behind}
    return frozenset(left_out)


def children_of(graph: Graph, name: str) -> frozenset[str]:
    """Return the nodes directly after a node."""
    return frozenset(child for child, parents in graph.items() if name in parents)


def _run_state(states: Collection[State]) -> RunState:
    if all(state is State.SUCCESS for state in states):
        return RunState.SUCCESS
    if any(state in UNDER_WAY for state in states):
        return RunState.RUNNING
    return RunState.BLOCKED if State.DEAD in states else RunState.CANCELLED


def _given_up(states: Collection[State]) -> RunState:
    return RunState.RUNNING if State.RUNNING in states else RunState.CANCELLED


def without_tolerant(graph: Graph, rules: Mapping[str, TriggerRule]) -> Graph:
    """Return the graph in which a dead node holds up all nodes after it: nodes with a tolerant rule have no parents."""
    return {name: () if name in rules and rules[name].is_tolerant else parents for name, parents in graph.items()}


def held_up_by(
    graph: Graph, states: Mapping[str, State], dead: str, rules: Mapping[str, TriggerRule] = PLAIN.rules
) -> list[str]:
    """Return the nodes that stay BLOCKED because a node died, in the order in which they would have run."""
    below = descendants(without_tolerant(graph, rules), dead)
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


def rerun_from(graph: Graph, states: Mapping[str, State], first: str, facts: RunFacts = PLAIN) -> Rerun:
    """Return the nodes to run again from `first` on.

    Raises `NoRerun` if `first` or a descendant is in progress, `first` is still BLOCKED, or its trigger rule is not met.
    """
    below = descendants(graph, first)
    affected = [name for name in ordered(graph) if name == first or name in below]
    _require_rest([name for name in affected if states[name] in UNDER_WAY], states)
    if states[first] is State.BLOCKED:
        raise NoRerun(Refused.NODE_NOT_RUN(node=first), Hint.RERUN_FROM_HOLD())
    verdict = _verdicts(graph, {**states, first: State.BLOCKED}, facts)[first]
    if verdict is not NodeVerdict.RELEASE:
        raise _not_met(graph, states, first, facts, verdict)
    return Rerun(first, tuple(name for name in affected if states[name] in FINAL))


def _not_met(graph: Graph, states: Mapping[str, State], first: str, facts: RunFacts, verdict: NodeVerdict) -> NoRerun:
    parents = sorted(graph[first])
    if verdict is NodeVerdict.PASS_OVER:
        return NoRerun(Refused.NODE_NOT_CHOSEN(node=first), Hint.RERUN_FROM(node=parents[0]))
    unfinished = [parent for parent in parents if states[parent] is not State.SUCCESS]
    if facts.rules.get(first) is TriggerRule.ONE_FAILED or not unfinished:
        return NoRerun(Refused.NO_PARENT_FAILED(), Hint.RERUN_FROM(node=parents[0]))
    name = unfinished[0]
    state = "SKIPPED" if name in facts.skipped else states[name].name
    return NoRerun(Refused.PARENT_IS(parent=name, state=state), Hint.RERUN_FROM(node=name))


def _require_rest(busy: Sequence[str], states: Mapping[str, State]) -> None:
    if busy:
        raise NoRerun(
            Refused.NODE_IS(node=busy[0], state=states[busy[0]].name),
            Hint.WAIT_OR_CANCEL(),
        )
