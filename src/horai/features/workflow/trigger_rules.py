"""Trigger rules: when a node of a run starts, by the ends of its parents, and when it never will.

All functions are pure. A node that is BLOCKED gets a `NodeVerdict`; the table in `verdict_of` is the contract.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum, auto
from typing import NamedTuple

from horai.core.states import State


class TriggerRule(IntEnum):
    """When a node starts."""

    ALL_SUCCESS = 0
    """All parents have succeeded."""
    ALL_DONE = 1
    """No parent can go on: each has succeeded, failed, or was skipped or cancelled."""
    ONE_FAILED = 2
    """A parent has failed; the others need not have ended."""
    NONE_FAILED = 3
    """Each parent has succeeded or was skipped."""

    @property
    def rest_name(self) -> str:
        """Return the name in REST, such as `allDone`."""
        first, second = self.name.lower().split("_")
        return first + second.capitalize()

    @property
    def is_tolerant(self) -> bool:
        """Return whether a dead parent does not keep the node from starting."""
        return self in {TriggerRule.ALL_DONE, TriggerRule.ONE_FAILED}


RULE_NAMES: Mapping[str, TriggerRule] = {
    name: rule for rule in TriggerRule for name in (rule.rest_name, rule.name.lower())
}
"""The rules by their names in REST (`allDone`) and in Python (`all_done`)."""


class NodeCause(IntEnum):
    """The end of a node that the state of its instance does not tell."""

    RULE = 1
    """Skipped: its trigger rule cannot be met any more."""
    NOT_CHOSEN = 2
    """Skipped: a parent chose other nodes."""
    ITSELF = 3
    """Skipped: its function said so. Its instance is SUCCESS."""
    CHOICE_UNKNOWN = 4
    """Dead: it chose a node that is not directly after it. Its instance is SUCCESS."""
    MAP_NOT_LIST = 5
    """Dead: there is no list to map over."""
    MAP_TRUNCATED = 6
    """Dead: the list to map over was too large to be stored."""
    MAP_TOO_LONG = 7
    """Dead: the list to map over has too many items."""
    MAP_FAILED = 8
    """Dead: more items of the map failed than may."""
    SENSOR_DEADLINE = 9
    """Dead: the condition of the sensor was not met at its deadline. Its instance is CANCELLED with the reason EXPIRED."""
    SENSOR_SKIPPED = 10
    """Skipped: as before, and the sensor says so."""

    @property
    def is_skip(self) -> bool:
        """Return whether the node was skipped."""
        return self in {NodeCause.RULE, NodeCause.NOT_CHOSEN, NodeCause.ITSELF, NodeCause.SENSOR_SKIPPED}


class NodeFault(NamedTuple):
    """The error code and message of a dead node whose instance, if it has one, does not have them."""

    code: str
    message: str


CHOICE_UNKNOWN = "BRANCH_UNKNOWN"
"""The error code of a node that chose a node that is not directly after it."""
NODE_FAULTS: Mapping[NodeCause, NodeFault] = {
    NodeCause.CHOICE_UNKNOWN: NodeFault(
        CHOICE_UNKNOWN, "It chose a node that is not directly after it in the workflow."
    ),
    NodeCause.MAP_NOT_LIST: NodeFault(
        "MAP_NOT_LIST",
        "There is no list to map over. Let the node before it return a list, then rerun the run from there.",
    ),
    NodeCause.MAP_TRUNCATED: NodeFault(
        "MAP_LIST_TOO_LARGE",
        "The list to map over is larger than 64 kB and was not stored. Return ids or pages, and let the items read the rest.",
    ),
    NodeCause.MAP_TOO_LONG: NodeFault(
        "MAP_TOO_LONG", "The list to map over has more than 100,000 items. Map over pages of it."
    ),
    NodeCause.MAP_FAILED: NodeFault(
        "MAP_FAILED",
        "More items failed than allowFailures accepts. Replay their dead letters or rerun the run from this node.",
    ),
    NodeCause.SENSOR_DEADLINE: NodeFault(
        "SENSOR_DEADLINE", "The condition was not met before the deadline. Rerun the run from this node to wait again."
    ),
}


class ParentEnd(Enum):
    """The end of a node as the nodes after it see it."""

    OPEN = auto()
    """It has not ended, or can still start."""
    SUCCESS = auto()
    FAILED = auto()
    """It is dead, or waits for a dead node."""
    SKIPPED = auto()
    CANCELLED = auto()


class NodeVerdict(Enum):
    """The decision on a BLOCKED node; its value is the end that the nodes after it see."""

    RELEASE = (ParentEnd.OPEN, "start")
    WAIT = (ParentEnd.OPEN, "wait for parents that have not ended")
    HOLD = (ParentEnd.FAILED, "wait until the dead node is replayed or rerun")
    SKIP = (ParentEnd.SKIPPED, "the rule cannot be met")
    PASS_OVER = (ParentEnd.SKIPPED, "a parent chose other nodes")
    CANCEL = (ParentEnd.CANCELLED, "a parent was cancelled")

    @property
    def end(self) -> ParentEnd:
        """Return the end of the node as the nodes after it see it."""
        return self.value[0]


SKIP_CAUSES = {NodeVerdict.SKIP: NodeCause.RULE, NodeVerdict.PASS_OVER: NodeCause.NOT_CHOSEN}


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Facts about the nodes of a run beside their states. A skipped node has the state CANCELLED.

    `rules` has the nodes whose rule is not `all_success`; `passed_over` the nodes that branches did not choose.
    """

    rules: Mapping[str, TriggerRule] = field(default_factory=dict[str, TriggerRule])
    skipped: frozenset[str] = frozenset()
    passed_over: frozenset[str] = frozenset()


PLAIN = RunFacts()

_ENDS = {State.SUCCESS: ParentEnd.SUCCESS, State.DEAD: ParentEnd.FAILED, State.CANCELLED: ParentEnd.CANCELLED}


def end_of(state: State, *, is_skipped: bool) -> ParentEnd:
    """Return the end of a node that is not BLOCKED."""
    return ParentEnd.SKIPPED if is_skipped else _ENDS.get(state, ParentEnd.OPEN)


def verdict_of(rule: TriggerRule, parents: Collection[ParentEnd]) -> NodeVerdict:
    """Decide on a BLOCKED node. The first column that applies decides, from left to right.

    | rule        | a parent CANCELLED | SKIPPED | OPEN    | FAILED  | else    |
    |-------------|--------------------|---------|---------|---------|---------|
    | all_success | CANCEL             | SKIP    | WAIT    | HOLD    | RELEASE |
    | none_failed | CANCEL             |         | WAIT    | HOLD    | RELEASE |
    | all_done    |                    |         | WAIT    |         | RELEASE |

    `one_failed` is released with the first failed parent, and skipped if all parents have ended and none has failed.
    """
    if rule is TriggerRule.ONE_FAILED:
        if ParentEnd.FAILED in parents:
            return NodeVerdict.RELEASE
        return NodeVerdict.WAIT if ParentEnd.OPEN in parents else NodeVerdict.SKIP
    if not rule.is_tolerant and ParentEnd.CANCELLED in parents:
        return NodeVerdict.CANCEL
    if rule is TriggerRule.ALL_SUCCESS and ParentEnd.SKIPPED in parents:
        return NodeVerdict.SKIP
    if ParentEnd.OPEN in parents:
        return NodeVerdict.WAIT
    return NodeVerdict.HOLD if not rule.is_tolerant and ParentEnd.FAILED in parents else NodeVerdict.RELEASE
