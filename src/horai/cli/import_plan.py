"""The plan of an import: the change that each exported object needs, by the object that the server has."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from horai.core.job import BUILTIN, Priority
from horai.core.masking import HIDDEN
from horai.wire.jobs import JobIn

Exported = Mapping[str, Any]
PERIODS = {1: "s", 60: "m", 3600: "h"}
ASSUMED: Mapping[str, Any] = {
    "misfire": "once",
    "overlap": "allow",
    "encrypted": False,
    "searchPaths": [],
    "tags": [],
    "timeout": None,
}
"""Values that a response has although the definition has none."""
OF_RESPONSES = frozenset({"priority", "timezone"})
"""Fields that a response fills in; without one in the export they are not compared."""
JOB_FIELDS = frozenset(str(field.alias) for field in JobIn.model_fields.values()) - {"name", "status", "payload"}
NEVER_CHANGE = frozenset({"encrypted", "searchPaths", "at", "delay"})


class ImportAction(StrEnum):
    """The change of one object."""

    CREATE = "create"
    CHANGE = "change"
    SAME = "same"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class ImportStep:
    """The change of one object: the fields to send, and the version that the change was planned for."""

    kind: str
    name: str
    action: ImportAction
    detail: str = ""
    body: Mapping[str, Any] | None = None
    version: int | None = None


def plan_queue(exported: Exported, found: Exported | None) -> ImportStep:
    """Plan a queue. One that was never configured needs no change."""
    name = exported["name"]
    if not exported["version"]:
        return ImportStep("queue", name, ImportAction.SAME)
    wanted = {
        "priority": None if exported["priority"] is None else Priority(exported["priority"]).name,
        "maxConcurrency": exported["maxConcurrency"],
        "rate": None
        if exported["rateCount"] is None
        else f"{exported['rateCount']}/{PERIODS[int(exported['ratePer'])]}",
        "paused": exported["paused"],
        **{field: exported.get(field) for field in ("note", "title", "description", "owner")},
    }
    return _settled("queue", name, wanted, {**wanted, "priority": wanted["priority"] or "normal"}, found)


def plan_calendar(exported: Exported, found: Exported | None) -> ImportStep:
    """Plan a calendar."""
    return _settled("calendar", exported["name"], exported["days"], exported["days"], found)


def _settled(
    kind: str, name: str, body: Mapping[str, Any], shown: Mapping[str, Any], found: Exported | None
) -> ImportStep:
    """Plan an object that is written as a whole. `shown` is the body as a response has it."""
    if found is None:
        return ImportStep(kind, name, ImportAction.CREATE, body=body, version=0)
    differing = [field for field, value in shown.items() if found.get(field) != value]
    if not differing:
        return ImportStep(kind, name, ImportAction.SAME)
    is_new = kind == "queue" and found["version"] == 0
    action = ImportAction.CREATE if is_new else ImportAction.CHANGE
    return ImportStep(kind, name, action, ", ".join(differing), body, found["version"])


def plan_job(exported: Exported, found: Exported | None, *, is_paused: bool) -> ImportStep:
    """Plan a job. `is_paused` creates it paused."""
    name, definition = exported["name"], exported["definition"]
    if reason := _obstacle(exported, is_new=found is None):
        return ImportStep("job", name, ImportAction.SKIP, reason)
    fields = {field: value for field, value in definition.items() if field in JOB_FIELDS}
    if found is None:
        given = {field: value for field, value in fields.items() if value is not None}
        status = "PAUSED" if is_paused else exported["status"]
        body = {"name": name, **given, "status": status, "payload": exported["rawPayload"]}
        return ImportStep("job", name, ImportAction.CREATE, body=body)
    changes = _changes(fields, found)
    if refused := sorted(changes.keys() & NEVER_CHANGE):
        return ImportStep("job", name, ImportAction.SKIP, f"{', '.join(refused)} of a job never changes")
    if exported["status"] != found["status"] and not is_paused:
        changes["status"] = exported["status"]
    if exported["payload"] != found["payload"]:
        changes["payload"] = exported["rawPayload"]
    if not changes:
        return ImportStep("job", name, ImportAction.SAME)
    return ImportStep("job", name, ImportAction.CHANGE, ", ".join(sorted(changes)), changes, found["version"])


def _obstacle(exported: Exported, *, is_new: bool) -> str | None:
    """Return why a job cannot be imported."""
    definition = exported["definition"]
    target: Mapping[str, Any] = definition.get("target") or {}
    if str(target.get("handler") or "").startswith(BUILTIN):
        return "a workflow, a refresh job or a reconciler makes it"
    if definition.get("at") or definition.get("delay"):
        return "it runs once: its instance belongs to the other cluster"
    if definition.get("encrypted") and exported["payload"] is not None:
        return "its payload is sealed with a key of the other cluster"
    if is_new and HIDDEN in str(target):
        return "its target has secret values, which an export does not contain: create it first"
    return None


def _changes(fields: Mapping[str, Any], found: Exported) -> dict[str, Any]:
    """Return the fields that differ; None removes a field that only the server has."""
    changed = {
        field: value
        for field, value in fields.items()
        if found.get(field) != value and not (value is None and field not in found)
    }
    for field in (JOB_FIELDS & found.keys()) - fields.keys() - OF_RESPONSES:
        if found[field] is not None and found[field] != ASSUMED.get(field):
            changed[field] = None
    return changed
