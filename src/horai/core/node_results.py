"""Results by which a node of a workflow directs its run: skip this node, or run only some of the nodes after it.

A result is such a direction if it is a JSON object whose first member is `horai:skip` (a text, the reason) or
`horai:branch` (a list of names of nodes; the member `result` is then the result for the nodes after it). Every target can
send one: a function by `Skip` and `branch`, an HTTP target in its response. Outside workflows it is an ordinary result.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

SKIP = "horai:skip"
BRANCH = "horai:branch"
WAIT = "horai:wait"
"""The first member of a result that says that the condition of a sensor is not met; a text, the reason."""
REASON_LIMIT = 1_000
"""Characters of the reason of a skip that are kept."""


@dataclass(frozen=True, slots=True)
class SkippedNode:
    """The node is skipped, for this reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class ChosenNodes:
    """Of the nodes directly after this one, only these may run. `nodes` is None if they are not a list of names.

    `result` is the result of the node itself, as JSON text.
    """

    nodes: tuple[str, ...] | None
    result: str | None = None


Direction = SkippedNode | ChosenNodes
T = TypeVar("T")
_NULL = msgspec.Raw(b"null")


def direction_in(text: str | None) -> Direction | None:
    """Return the direction that a result is; None for an ordinary result."""
    if text is None or not _may_direct(text):
        return None
    members = _read(text, dict[str, msgspec.Raw]) or {}
    match next(iter(members), None):
        case "horai:skip":
            return SkippedNode((_read(members[SKIP], str) or "")[:REASON_LIMIT])
        case "horai:branch":
            names, result = _read(members[BRANCH], list[str]), _read(members.get("result", _NULL), msgspec.Raw)
            own = None if result is None or bytes(result) == b"null" else bytes(result).decode()
            return ChosenNodes(None if names is None else tuple(names), own)
        case _:
            return None


def is_not_ready(text: str | None) -> bool:
    """Return whether a result says that the condition of a sensor is not met."""
    if text is None or not _may_direct(text):
        return False
    return next(iter(_read(text, dict[str, msgspec.Raw]) or {}), None) == WAIT


def wait_text(reason: str) -> str:
    """Return the result of a sensor whose condition is not met, as JSON text."""
    return msgspec.json.encode({WAIT: reason[:REASON_LIMIT]}).decode()


def own_result(text: str | None) -> str | None:
    """Return the result of a node without its direction: that of a branch is its member `result`, a skip has none."""
    match direction_in(text):
        case SkippedNode():
            return None
        case ChosenNodes(result=result):
            return result
        case None:
            return text


def skip_text(reason: str) -> str:
    """Return the result of a node that is skipped, as JSON text."""
    return msgspec.json.encode({SKIP: reason[:REASON_LIMIT]}).decode()


def branch_text(nodes: Sequence[str], result: str | None) -> str:
    """Return the result of a node that chooses which nodes run after it; `result` is its own, as JSON text."""
    own = {} if result is None else {"result": msgspec.Raw(result.encode())}
    return msgspec.json.encode({BRANCH: list(nodes), **own}).decode()


def _may_direct(text: str) -> bool:
    return text.lstrip()[:1] == "{" and '"horai:' in text[:100]


def _read(text: str | msgspec.Raw, kind: type[T]) -> T | None:
    """Return JSON of this type; None for any other text. A result is what a target sent: it may be anything."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, RecursionError):
        return None
