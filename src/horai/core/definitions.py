"""Definitions of jobs, workflows, queues and reconcilers as documents: what two of them differ in, and what a change has to write."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from horai.core.masking import shown_target

OF_CODE = frozenset({"declaredBy", "payloadSchema", "status"})
"""Fields of a stored document that are no part of a definition: code or an operator sets them."""


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field with its value in two definitions; None where it is absent. Secret values are `***` in both."""

    field: str
    before: Any
    after: Any


def exact_json(text: str | bytes) -> Any:
    """Return a JSON value whose numbers are kept as they are written: 1 and 1.0 differ, as they do in a payload."""
    return json.loads(text, parse_int=_number, parse_float=_number)


def _number(text: str) -> tuple[str, str]:
    return "number", text


def same_json(one: str | None, other: str | None) -> bool:
    """Return whether two JSON texts have the same value. None is null."""
    return exact_json(one or "null") == exact_json(other or "null")


def changes_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[FieldChange]:
    """Return the fields that differ, in the order of the new definition. Null and absent are the same."""
    names = list(dict.fromkeys([*after, *before]))
    changed = [name for name in names if before.get(name) != after.get(name)]
    return [FieldChange(name, before.get(name), after.get(name)) for name in changed]


def shown_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored document as a definition: without secrets, nulls and the fields of code and operators."""
    shown = {name: value for name, value in document.items() if value is not None and name not in OF_CODE}
    return {**shown, "target": shown_target(shown["target"])} if "target" in shown else shown


def patch_between(now: Mapping[str, Any], wanted: Mapping[str, Any], merged: Collection[str] = ()) -> dict[str, Any]:
    """Return the fields of a PATCH that makes one document the other; None removes a field.

    A PATCH lays the members of a `merged` field over the stored ones: those that it no longer has are None.
    """
    fields = {change.field: change.after for change in changes_between(now, wanted)}
    for name in merged:
        old, new = now.get(name), fields.get(name)
        if old is not None and new is not None:
            fields[name] = {**dict.fromkeys(old), **new}
    return fields
