"""What a node of a workflow is given: its payload, with what its parents came to."""

from collections.abc import Mapping

import msgspec

from horai.core.outcome import RESULT_LIMIT

MEMBER = "parents"
"""Of the payload: the parents' results by their names."""

_Members = dict[str, msgspec.Raw]
_NULL = msgspec.Raw(b"null")


def with_results(payload: str | None, results: Mapping[str, str | None]) -> str | None:
    """The payload with the parents' results as its member `parents`; all are JSON text and stay so to the letter.

    As it is when no parent has a result, when they are more than 64 kB together, or when it is no object.
    """
    given = {name: _NULL if text is None else msgspec.Raw(text.encode()) for name, text in results.items()}
    size = sum(len(bytes(text)) for text in given.values())
    if size > RESULT_LIMIT or all(text is None for text in results.values()):
        return payload
    try:
        members = {} if payload is None else msgspec.json.decode(payload, type=_Members)
    except msgspec.ValidationError:
        return payload
    return msgspec.json.encode({**members, MEMBER: given}).decode()
