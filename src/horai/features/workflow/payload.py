"""The payload of a workflow node, with the results of its parents."""

from collections.abc import Mapping

import msgspec

from horai.core.limits import RESULT_LIMIT
from horai.core.payload_members import PARENTS
from horai.features.workflow.composed import is_template, with_taken

_Members = dict[str, msgspec.Raw]
_NULL = msgspec.Raw(b"null")


def with_results(payload: str | None, results: Mapping[str, str | None]) -> str | None:
    """Return the payload with the results of the parents as its member `parents`; all JSON text stays unchanged.

    Return the payload unchanged if no parent has a result, if the results together exceed 64 kB, or if the payload is
    not an object. The payload of a composed call gets the results that it takes.
    """
    if payload is not None and is_template(payload):
        return with_taken(payload, results)
    given = {name: _NULL if text is None else msgspec.Raw(text.encode()) for name, text in results.items()}
    size = sum(len(bytes(text)) for text in given.values())
    if size > RESULT_LIMIT or all(text is None for text in results.values()):
        return payload
    try:
        members = {} if payload is None else msgspec.json.decode(payload, type=_Members)
    except msgspec.ValidationError:
        return payload
    return msgspec.json.encode({**members, PARENTS: given}).decode()
