"""Sensors of runs: the end of one whose instance has expired. All functions are pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from horai.core.states import CancelReason, State
from horai.features.workflow.run_store import RunNode, Seen
from horai.features.workflow.trigger_rules import NODE_FAULTS, NodeCause


def with_deadlines(nodes: Sequence[RunNode], seen: Mapping[int, Seen]) -> tuple[list[RunNode], dict[int, Seen]]:
    """Return the nodes and the states of their instances; a sensor whose instance has expired is dead, or skipped."""
    found, states = list(nodes), dict(seen)
    for place, node in enumerate(nodes):
        there = seen[node.instance_id]
        if node.sensor is None or node.ended is not None or there.reason is not CancelReason.EXPIRED:
            continue
        cause = NodeCause.SENSOR_SKIPPED if node.sensor.skips else NodeCause.SENSOR_DEADLINE
        found[place] = replace(node, cause=cause)
        if not node.sensor.skips:
            states[node.instance_id] = replace(there, state=State.DEAD, error_code=NODE_FAULTS[cause].code)
    return found, states
