"""The result of a PATCH on a stored definition."""

from collections.abc import Mapping
from typing import Any

from horai.core.assets import WHEN
from horai.core.errors import Invalid
from horai.core.job import JobStatus
from horai.core.timing import BESIDE_BOTH, BESIDE_CRON, BESIDE_EVERY, SCHEDULE_FIELDS
from horai.text import Hint, Wrong

NESTED = ("retry", "dst", "refresh")
"""Fields whose members a PATCH changes one by one.

A target is one value: its headers may hold what only its URL may see.
"""


def amended(document: Mapping[str, Any], status: JobStatus, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Apply `fields` to the stored document; a new schedule field replaces the old one.

    The fields that belong to a cron or an every are removed with it.
    """
    if "name" in fields and fields["name"] != document["name"]:
        raise Invalid.field("name", Wrong.NEVER_CHANGES(), Hint.CREATE_ANOTHER())
    if "encrypted" in fields and bool(fields["encrypted"]) is not bool(document.get("encrypted")):
        raise Invalid.field("encrypted", Wrong.NEVER_CHANGES(), Hint.CREATE_ANOTHER_ENCRYPTED())
    if "searchPaths" in fields and list(fields["searchPaths"] or ()) != list(document.get("searchPaths") or ()):
        raise Invalid.field("searchPaths", Wrong.NEVER_CHANGES(), Hint.CREATE_ANOTHER_SEARCHED())
    fields = {name: value for name, value in fields.items() if name not in {"encrypted", "searchPaths"}}
    for field in ("at", "delay"):
        if field in fields:
            raise Invalid.field(field, Wrong.CANNOT_CHANGE(), Hint.CANCEL_AND_CREATE())
    takes_over = next((field for field in SCHEDULE_FIELDS if fields.get(field) is not None), None)
    kept = {name: value for name, value in document.items() if not (takes_over and name in SCHEDULE_FIELDS)}
    given = {name: _laid_over(kept.get(name), value) if name in NESTED else value for name, value in fields.items()}
    merged = {**kept, "status": status.name, **given}
    outlived = {name for name in _outlived(merged) if fields.get(name) is None}
    return {name: value for name, value in merged.items() if value is not None and name not in outlived}


def _outlived(merged: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the fields that have no meaning with the current schedule."""
    if merged.get("cron") is not None:
        return BESIDE_EVERY
    if merged.get("every") is not None:
        return BESIDE_CRON if merged.get("calendar") else (*BESIDE_CRON, "timezone")
    return tuple(
        name
        for name in (*BESIDE_CRON, *BESIDE_EVERY, *BESIDE_BOTH)
        if name != "overlap" or merged.get(WHEN) is None  # it counts for instances that assets start as well
    )


def _laid_over(stored: Any, given: Any) -> Any:
    """Merge member by member; null removes a member."""
    if stored is None or given is None:
        return given
    return {name: value for name, value in {**stored, **given}.items() if value is not None}
