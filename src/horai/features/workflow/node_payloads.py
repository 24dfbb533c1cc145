"""The payloads of the nodes of a workflow in a request or a file."""

import msgspec

from horai.core.payload_text import payload_text


class _RawNode(msgspec.Struct):
    payload: msgspec.Raw = msgspec.Raw(b"null")


class _RawWorkflow(msgspec.Struct):
    nodes: list[_RawNode]


def node_payloads(text: bytes) -> list[str | None]:
    """Return the payload of each node as exact JSON text; None for none. Raises `TooLarge`."""
    nodes = msgspec.json.decode(text, type=_RawWorkflow).nodes
    return [payload_text(node.payload, f"nodes.{number}.payload") for number, node in enumerate(nodes)]
