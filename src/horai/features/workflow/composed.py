"""Payloads of nodes that come with a run: those of the calls that code composes (sdk/composition.py). All functions are pure.

The payload of such a run has a member `horai:calls` with the payload of each node. One that waits for the results of other
nodes is a template: `horai:takes` says whose results it takes, and as which argument.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from horai.core.limits import PAYLOAD_LIMIT
from horai.features.workflow.store import NodeRow

CALLS, TAKES = "horai:calls", "horai:takes"
_TEMPLATE = f'{{"{TAKES}":'
_NULL = msgspec.Raw(b"null")


class TakenResults(msgspec.Struct):
    """The nodes whose results a call takes: as a list, or that of the only one; as the payload, or as the argument `name`."""

    nodes: list[str]
    is_list: bool = False
    name: str | None = None


class _RunPayload(msgspec.Struct):
    calls: dict[str, msgspec.Raw] = msgspec.field(name=CALLS, default_factory=dict[str, msgspec.Raw])


class _Template(msgspec.Struct):
    takes: TakenResults = msgspec.field(name=TAKES)
    payload: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict[str, msgspec.Raw])


def template_of(takes: TakenResults, others: str | None) -> str:
    """Return the payload of a call that waits for results. `others` are its other arguments, as the text of an object."""
    given: dict[str, Any] = {TAKES: takes}
    if others is not None:
        given["payload"] = msgspec.Raw(others.encode())
    return msgspec.json.encode(given).decode()


def is_template(payload: str | None) -> bool:
    """Return whether a payload waits for results."""
    return payload is not None and payload.startswith(_TEMPLATE)


def with_calls(nodes: Sequence[NodeRow], payload: str | None) -> Sequence[NodeRow]:
    """Return the nodes of a new run with the payloads that its own payload has for them."""
    if payload is None or f'"{CALLS}"' not in payload:
        return nodes
    try:
        calls = msgspec.json.decode(payload, type=_RunPayload).calls
    except msgspec.ValidationError:
        return nodes
    return [
        replace(row, node=replace(row.node, payload=bytes(calls[row.node.name]).decode()))
        if row.node.name in calls and row.node.map is None
        else row
        for row in nodes
    ]


def with_taken(template: str, results: Mapping[str, str | None]) -> str:
    """Return the payload of a call with the results that it takes. One that would be too large stays a template."""
    wanted = msgspec.json.decode(template, type=_Template)
    texts = [results.get(name) for name in wanted.takes.nodes]
    taken = [_NULL if text is None else msgspec.Raw(text.encode()) for text in texts]
    value: Any = taken if wanted.takes.is_list else taken[0]
    made = msgspec.json.encode(value if wanted.takes.name is None else {wanted.takes.name: value, **wanted.payload})
    return template if len(made) > PAYLOAD_LIMIT else made.decode()
