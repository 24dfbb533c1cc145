"""The import of an export: reads the file, shows the plan, and applies it through the REST API."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from horai.cli.client import RestClient, path_of
from horai.cli.errors import CommandFailed, NotThere
from horai.cli.import_plan import ImportAction, ImportStep, plan_calendar, plan_job, plan_queue
from horai.cli.show import console, say, table

COLUMNS = ("KIND", "NAME", "CHANGE", "DETAIL")
PLANNED = ("queue", "calendar", "job")
AT_ONCE = 200
LETTER_BYTES = 8 * 1024 * 1024
"""Letters and bytes of one request."""
WHY = {"NO_JOB": "its job does not exist here", "ENCRYPTED_JOB": "its job is encrypted"}


@dataclass(slots=True)
class ExportFile:
    """The parts of an export that can be imported, in its order."""

    objects: dict[str, list[Mapping[str, Any]]] = field(default_factory=lambda: {kind: [] for kind in PLANNED})
    letters: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    """Requests of the import route, each with its payload to the letter."""
    left_out: int = 0
    """Letters that are replayed or discarded already, or whose instance is no longer kept."""


def read_export(file: Path) -> ExportFile:
    """Read a file of `horai export`. Raises `CommandFailed` if it is not complete."""
    found, is_complete = ExportFile(), False
    try:
        with file.open("rb") as lines:
            for line in lines:
                is_complete = _read_line(found, line)
    except OSError as error:
        raise CommandFailed(f"{file} cannot be read: {error.strerror or error}.") from error
    except (ValueError, KeyError, TypeError, msgspec.DecodeError) as error:
        raise CommandFailed(f"{file} is not a file of `horai export`.") from error
    if not is_complete:
        raise CommandFailed(f"{file} is not complete: its last line is missing.", "Export it again.")
    return found


def _read_line(found: ExportFile, line: bytes) -> bool:
    """Add a line of the file; return whether it is the last one of a complete export."""
    document = json.loads(line)
    if (kind := document["kind"]) in found.objects:
        raw = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
        found.objects[kind].append({**document, "rawPayload": raw.get("payload")})
    elif kind == "deadLetter" and document["replayStatus"] == "NEW" and document["isKept"]:
        found.letters.append(_letter(document, msgspec.json.decode(line, type=dict[str, msgspec.Raw])))
    elif kind == "deadLetter":
        found.left_out += 1
    return kind == "end"


def _letter(document: Mapping[str, Any], raw: Mapping[str, msgspec.Raw]) -> dict[str, Any]:
    names = (
        "job",
        "key",
        "fireTime",
        "executeTime",
        "version",
        "fence",
        "errorCode",
        "errorMsg",
        "fingerprint",
        "tags",
    )
    identity = [document[name] for name in ("id", "instanceId", "job", "createdAt", "fireTime", "errorCode")]
    origin = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:40]
    given = {name: raw[name] for name in (*names, "payload")}
    return {"origin": origin, "diedAt": raw["createdAt"], **given}


@dataclass(frozen=True, slots=True)
class Importer:
    """An import into the tenant of a client's key."""

    client: RestClient
    is_paused: bool = False

    def run(self, export: ExportFile, *, apply: bool, as_json: bool) -> None:
        """Show what an export would change; with `apply`, change it.

        Each change names the version that it was planned for: an object that has changed since is refused.
        """
        steps = [self._plan(kind, one) for kind in PLANNED for one in export.objects[kind]]
        if apply:
            for step in steps:
                self._apply(step)
        created = {step.name for step in steps if step.kind == "job" and step.action is ImportAction.CREATE}
        letters = self._import_letters(export, created, dry_run=not apply)
        if as_json:
            shown = [{"kind": s.kind, "name": s.name, "action": s.action, "detail": s.detail} for s in steps]
            print(json.dumps({"applied": apply, "steps": shown, "deadLetters": letters}))
            return
        rows = [(s.kind, s.name, s.action.value, s.detail) for s in steps if s.action is not ImportAction.SAME]
        if rows:
            console().print(table(COLUMNS, rows))
        counts = Counter(step.action for step in steps)
        say(", ".join(f"{counts[action]} {action}" for action in ImportAction) + f"; dead letters: {_told(letters)}.")
        if not apply and (rows or letters["imported"]):
            say("Nothing was changed: --apply makes these changes.")

    def _plan(self, kind: str, exported: Mapping[str, Any]) -> ImportStep:
        found = self._find(kind, exported["name"])
        if kind == "job":
            return plan_job(exported, found, is_paused=self.is_paused)
        return plan_queue(exported, found) if kind == "queue" else plan_calendar(exported, found)

    def _find(self, kind: str, name: str) -> Mapping[str, Any] | None:
        try:
            return json.loads(self.client.call("GET", path_of(f"{kind}s", name)))
        except NotThere:
            return None

    def _apply(self, step: ImportStep) -> None:
        if step.body is None:
            return
        seen = {} if step.version is None else {"If-Match": f'"{step.version}"'}
        if step.kind != "job":
            self.client.call("PUT", path_of(f"{step.kind}s", step.name), step.body, seen)
        elif step.action is ImportAction.CREATE:
            self.client.call("POST", path_of("jobs"), step.body)
        else:
            self.client.call("PATCH", path_of("jobs", step.name), step.body, seen)

    def _import_letters(self, export: ExportFile, created: set[str], *, dry_run: bool) -> dict[str, Any]:
        """Import the letters in portions; in a dry run, those of jobs that would be created count as new."""
        told: dict[str, Any] = {"imported": 0, "known": 0, "skipped": {}, "leftOut": export.left_out}
        skipped = Counter[str]()
        letters = export.letters
        if dry_run:
            letters = [one for one in letters if msgspec.json.decode(one["job"]) not in created]
            told["imported"] = len(export.letters) - len(letters)
        for portion in _portions(letters):
            answer = self.client.call("POST", path_of("dlq", "import"), {"letters": portion, "dryRun": dry_run})
            found = json.loads(answer)
            told["imported"] += found["imported"]
            told["known"] += found["known"]
            skipped.update(one["reason"] for one in found["skipped"])
        return {**told, "skipped": dict(skipped)}


def _portions(letters: Sequence[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """Yield the letters in portions of a bounded size; a single large letter is a portion of its own."""
    portion, size = list[Mapping[str, Any]](), 0
    for letter in letters:
        added = len(bytes(letter["payload"]))
        if portion and (len(portion) == AT_ONCE or size + added > LETTER_BYTES):
            yield portion
            portion, size = [], 0
        portion.append(letter)
        size += added
    if portion:
        yield portion


def _told(letters: Mapping[str, Any]) -> str:
    parts = [f"{letters['imported']} new", f"{letters['known']} known"]
    parts += [f"{count} left out ({WHY[reason]})" for reason, count in letters["skipped"].items()]
    if letters["leftOut"]:
        parts.append(f"{letters['leftOut']} not open")
    return ", ".join(parts)
