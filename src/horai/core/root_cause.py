"""The root causes of a blocked workflow run: the first dead nodes on the way to the nodes that wait."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from graphlib import TopologicalSorter


@dataclass(frozen=True, slots=True)
class RootCause:
    """A dead node that blocks a run, its instance with the error, and the nodes that wait for it, directly or not.

    `has_letter`: its dead letter is open and can be replayed; otherwise only a rerun from the node continues the run.
    """

    node: str
    job: str
    job_id: int
    instance_id: int
    error_code: str | None
    error_msg: str | None
    died_at: datetime | None
    has_letter: bool
    blocks: tuple[str, ...]


def causes_by_node(graph: Mapping[str, Collection[str]], dead: Collection[str]) -> dict[str, frozenset[str]]:
    """Return the dead nodes that each node goes back to. A dead node below another one is a consequence, not a cause.

    A dead node without a dead one above it goes back to itself; nodes without a dead one above them are absent.
    """
    found: dict[str, frozenset[str]] = {}
    for name in TopologicalSorter(graph).static_order():
        above = frozenset[str]().union(*(found.get(parent, frozenset()) for parent in graph[name]))
        if above or name in dead:
            found[name] = above or frozenset({name})
    return found


def blocked_by(
    graph: Mapping[str, Collection[str]], dead: Collection[str], waiting: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """Return the root causes of a run, each with the waiting nodes that it blocks, both in the order of their names."""
    causes = causes_by_node(graph, dead)
    roots = sorted({root for name in dead for root in causes[name]})
    return {root: tuple(name for name in sorted(waiting) if root in causes.get(name, ())) for root in roots}
