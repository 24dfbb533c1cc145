"""One instance with its attempts, their progress notes and its timeline."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from horai.core.log_levels import line_of
from horai.core.progress import ProgressNote
from horai.core.sealed_values import SealedColumn
from horai.core.states import FINAL, State
from horai.db import instance_queries, instance_relations, progress
from horai.db.instance_queries import ATTEMPTS_SHOWN, AttemptRow, EventRow, InstanceRow
from horai.db.instance_relations import Kin, RunOf, Successors
from horai.db.pool import TenantRead
from horai.operations.readable_values import ValueReader
from horai.operations.scope import Scope
from horai.operations.traces import Traces
from horai.wire.encode import Encoded
from horai.wire.instances import AttemptOut, EventOut, InstanceOut, LogLine, WorkflowPlace

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
    caller: int | None = None
    successors: Successors = field(default_factory=lambda: Successors((), ()))


async def known_of(connection: TenantRead, row: InstanceRow) -> InstanceFacts:
    """Read the facts after the row: they may already show changes that the row does not."""
    run = await instance_relations.run_of_instance(connection, row.id)
    return InstanceFacts(
        await instance_queries.attempts_of(connection, row.id),
        await instance_queries.timeline_of(connection, row.id),
        await progress.notes_of(connection, row.id, NOTES_READ),
        run,
        Kin() if run is None else await instance_relations.kin_of_instance(connection, row.id),
        await instance_relations.caller_of(connection, row.id),
        await instance_relations.successors_of(connection, row.id, row.job_id, row.key),
    )


async def readable_facts(connection: TenantRead, scope: Scope, row: InstanceRow, known: InstanceFacts) -> InstanceFacts:
    """Return the facts as the caller may see them: the error texts and the notes of an encrypted job are sealed."""
    if not row.is_encrypted:
        return known
    reader = ValueReader(scope)
    values = [(row.job, SealedColumn.ERROR, attempt.error_msg) for attempt in known.attempts]
    values += [(row.job, SealedColumn.NOTE, note.message) for note in known.notes]
    await reader.load(connection, values)
    return replace(
        known,
        attempts=[
            replace(attempt, error_msg=reader.text(row.job, SealedColumn.ERROR, attempt.error_msg))
            for attempt in known.attempts
        ],
        notes=[note._replace(message=reader.text(row.job, SealedColumn.NOTE, note.message)) for note in known.notes],
    )


def instance_detail(row: InstanceRow, known: InstanceFacts, traces: Traces | None = None) -> Encoded:
    """Return the response with an instance, its attempts and its timeline; with trace ids if traces are on."""
    said: dict[int, list[ProgressNote]] = {}
    for note in known.notes:
        said.setdefault(note.fence, []).append(note)
    return InstanceOut.encode(
        row,
        lost_count=sum(attempt.outcome == "LOST" for attempt in known.attempts),
        progress=_progress(said.get(row.fence, ())),
        attempts=[
            _with_notes(attempt, own, _trace_of(row, attempt, traces))
            for attempt, own in _attributed(_tried(row, known.attempts, said), said)
        ],
        timeline=_timeline(row, known.events),
        workflow=None
        if known.run is None
        else WorkflowPlace.encode(known.run, parents=known.kin.parents, children=known.kin.children),
        called_by=known.caller,
        replays=known.successors.replays,
        superseded_by=known.successors.superseded_by,
        **({} if traces is None else {"trace_id": traces.trace_id(row.id)}),
    )


def _trace_of(row: InstanceRow, attempt: AttemptRow, traces: Traces | None) -> Mapping[str, str]:
    if traces is None:
        return {}
    return {"trace_id": traces.trace_id(row.id), "span_id": traces.span_id(row.id, attempt.fence)}


def _timeline(row: InstanceRow, events: Sequence[EventRow]) -> list[Encoded]:
    timeline = [EventOut.encode(event) for event in events]
    if row.state is State.SUCCESS:
        last = max((e.seq for e in events if e.seq is not None), default=0)
        timeline.append(EventOut.encode(seq=last + 1, at=row.finished_at, kind="INSTANCE_DONE", data=None))
    return timeline


def _tried(
    row: InstanceRow, attempts: Sequence[AttemptRow], said: Mapping[int, Sequence[ProgressNote]]
) -> list[AttemptRow]:
    """Return the attempts in order. Released attempts are included only if they have notes."""
    tried = list(attempts)
    if (own := _own_attempt(row)) and not any(a.fence == row.fence and not a.late for a in tried):
        tried.append(own)
    if len(attempts) < ATTEMPTS_SHOWN:
        shown = {attempt.fence for attempt in tried}
        tried += [_given_back(said[fence][0]) for fence in said if fence not in shown and fence <= row.fence]
    return sorted(tried, key=lambda attempt: attempt.attempt)


def _own_attempt(row: InstanceRow) -> AttemptRow | None:
    """Return the attempt that the row itself describes: the running one, or the last one of a final instance."""
    if row.claimed_at is None or row.state not in {State.RUNNING, *FINAL}:
        return None
    is_success = row.state is State.SUCCESS
    return AttemptRow(
        row.attempt,
        row.fence,
        row.incarnation,
        row.claimed_at,
        row.finished_at,
        late=False,
        outcome=row.state.name,
        error_code=None if is_success else row.error_code,
        error_msg=None if is_success else row.error_msg,
    )


def _given_back(note: ProgressNote) -> AttemptRow:
    """Return a released attempt. The row does not record it, but its function has written notes."""
    return AttemptRow(
        note.attempt,
        note.fence,
        note.node,
        started_at=None,
        finished_at=None,
        late=False,
        outcome="RELEASED",
        error_code=None,
        error_msg=None,
    )


def _attributed(
    tried: Sequence[AttemptRow], said: Mapping[int, Sequence[ProgressNote]]
) -> Iterator[tuple[AttemptRow, Sequence[ProgressNote]]]:
    """Pair each attempt with its notes. A late outcome gets none if the attempt itself is listed: notes appear once."""
    in_time = {attempt.fence for attempt in tried if not attempt.late}
    for attempt in tried:
        is_told = attempt.late and attempt.fence in in_time
        yield attempt, () if is_told else said.get(attempt.fence, ())


def _with_notes(attempt: AttemptRow, said: Sequence[ProgressNote], trace: Mapping[str, str]) -> Encoded:
    lines = [_line(note, note.message) for note in said if note.message is not None][-LINES_SHOWN:]
    return AttemptOut.encode(attempt, progress=_progress(said), log=lines, **trace)


def _line(note: ProgressNote, stored: str) -> Encoded:
    line = line_of(stored)
    return LogLine.encode(note, level=line.level, message=line.message)


def _progress(said: Sequence[ProgressNote]) -> float | None:
    return next((note.progress for note in reversed(said) if note.progress is not None), None)
