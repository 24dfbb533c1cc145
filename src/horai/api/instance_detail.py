"""One instance with its attempts, their progress notes and its timeline."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from horai.api.json import instance_json, raw
from horai.core.progress import ProgressNote
from horai.core.states import FINAL, State
from horai.core.workflow_neighbour import Parent
from horai.db import instance_queries, instance_relations, progress
from horai.db.instance_queries import ATTEMPTS_SHOWN, AttemptRow, EventRow, InstanceRow
from horai.db.instance_relations import Kin, RunOf, Successors
from horai.db.pool import Connection

NOTES_READ = 3_000
"""The last notes of an instance. One attempt can write fewer, so the notes of its last attempt are complete."""
LINES_SHOWN = 500
"""The last log lines of each attempt."""


@dataclass(frozen=True, slots=True)
class InstanceFacts:
    """The facts about one instance that are not in its row."""

    attempts: Sequence[AttemptRow] = ()
    events: Sequence[EventRow] = ()
    notes: Sequence[ProgressNote] = ()
    run: RunOf | None = None
    kin: Kin = field(default_factory=Kin)
    successors: Successors = field(default_factory=lambda: Successors((), ()))


async def known_of(connection: Connection, row: InstanceRow) -> InstanceFacts:
    """Read the facts after the row: they may already show changes that the row does not."""
    run = await instance_relations.run_of_instance(connection, row.id)
    return InstanceFacts(
        await instance_queries.attempts_of(connection, row.id),
        await instance_queries.timeline_of(connection, row.id),
        await progress.notes_of(connection, row.id, NOTES_READ),
        run,
        Kin() if run is None else await instance_relations.kin_of_instance(connection, row.id),
        await instance_relations.successors_of(connection, row.id, row.job_id, row.key),
    )


def instance_detail(row: InstanceRow, known: InstanceFacts) -> dict[str, Any]:
    """Return the JSON of an instance with its attempts and its timeline."""
    said: dict[int, list[ProgressNote]] = {}
    for note in known.notes:
        said.setdefault(note.fence, []).append(note)
    tried = _tried(row, known.attempts, said)
    return {
        **instance_json(row),
        "lostCount": sum(attempt.outcome == "LOST" for attempt in known.attempts),
        "progress": _progress(said.get(row.fence, ())),
        "attempts": [_with_notes(attempt, own) for attempt, own in _attributed(tried, said)],
        "timeline": _timeline(row, known.events),
        "workflow": None if known.run is None else _place_json(known.run, known.kin),
        "replays": [str(id_) for id_ in known.successors.replays],
        "supersededBy": [str(id_) for id_ in known.successors.superseded_by],
    }


def _place_json(run: RunOf, kin: Kin) -> dict[str, Any]:
    return {
        "runId": str(run.run_id),
        "workflowId": str(run.workflow_id),
        "workflow": run.workflow,
        "node": run.node,
        "parents": [_neighbour_json(one) for one in kin.parents],
        "children": [_neighbour_json(one) for one in kin.children],
    }


def _neighbour_json(one: Parent) -> dict[str, Any]:
    return {
        "node": one.name,
        "instanceId": str(one.instance_id),
        "state": None if one.state is None else one.state.name,
    }


def _timeline(row: InstanceRow, events: Sequence[EventRow]) -> list[dict[str, Any]]:
    timeline = [{"seq": e.seq, "at": e.at, "kind": e.kind, "data": raw(e.data)} for e in events]
    if row.state is State.SUCCESS:
        last = max((e.seq for e in events if e.seq is not None), default=0)
        timeline.append({"seq": last + 1, "at": row.finished_at, "kind": "INSTANCE_DONE", "data": None})
    return timeline


def _tried(
    row: InstanceRow, attempts: Sequence[AttemptRow], said: Mapping[int, Sequence[ProgressNote]]
) -> list[dict[str, Any]]:
    """Return the attempts in order. Released attempts are included only if they have notes."""
    tried = [_attempt_json(attempt) for attempt in attempts]
    if (own := _own_attempt(row)) and not any(a["fence"] == row.fence and not a["late"] for a in tried):
        tried.append(own)
    if len(attempts) < ATTEMPTS_SHOWN:
        shown = {attempt["fence"] for attempt in tried}
        tried += [_given_back(said[fence][0]) for fence in said if fence not in shown and fence <= row.fence]
    return sorted(tried, key=lambda attempt: attempt["attempt"])


def _attempt_json(row: AttemptRow) -> dict[str, Any]:
    return {
        "attempt": row.attempt,
        "fence": row.fence,
        "outcome": row.outcome,
        "late": row.late,
        "startedAt": row.started_at,
        "finishedAt": row.finished_at,
        "errorCode": row.error_code,
        "errorMsg": row.error_msg,
    }


def _own_attempt(row: InstanceRow) -> dict[str, Any] | None:
    """Return the attempt that the row itself describes: the running one, or the last one of a final instance."""
    if row.claimed_at is None or row.state not in {State.RUNNING, *FINAL}:
        return None
    return {
        "attempt": row.attempt,
        "fence": row.fence,
        "outcome": row.state.name,
        "late": False,
        "startedAt": row.claimed_at,
        "finishedAt": row.finished_at,
        "errorCode": row.error_code if row.state is not State.SUCCESS else None,
        "errorMsg": row.error_msg if row.state is not State.SUCCESS else None,
    }


def _given_back(note: ProgressNote) -> dict[str, Any]:
    """Return a released attempt. The row does not record it, but its function has written notes."""
    nothing = dict.fromkeys(("startedAt", "finishedAt", "errorCode", "errorMsg"))
    return {"attempt": note.attempt, "fence": note.fence, "outcome": "RELEASED", "late": False, **nothing}


def _attributed(
    tried: Sequence[dict[str, Any]], said: Mapping[int, Sequence[ProgressNote]]
) -> Iterator[tuple[dict[str, Any], Sequence[ProgressNote]]]:
    """Pair each attempt with its notes. A late outcome gets none if the attempt itself is listed: notes appear once."""
    in_time = {attempt["fence"] for attempt in tried if not attempt["late"]}
    for attempt in tried:
        is_told = attempt["late"] and attempt["fence"] in in_time
        yield attempt, () if is_told else said.get(attempt["fence"], ())


def _with_notes(attempt: dict[str, Any], said: Sequence[ProgressNote]) -> dict[str, Any]:
    lines = [note for note in said if note.message is not None][-LINES_SHOWN:]
    log = [{"at": note.at, "message": note.message, "progress": note.progress} for note in lines]
    return {**attempt, "progress": _progress(said), "log": log}


def _progress(said: Sequence[ProgressNote]) -> float | None:
    return next((note.progress for note in reversed(said) if note.progress is not None), None)
