"""Progress and log lines of running attempts, within bounds: no attempt can crowd out the others.

A line is a note with a message; an attempt keeps `LINES` of them, and one that says that there were more. A step is a
note of progress alone; steps that differ by less than `STEP` are not kept, so that the last step of a long attempt is.
"""

import itertools
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from horai.core.calls import Call

MESSAGE_BYTES: Final = 4096
LINES: Final = 1_000
"""Notes with a message that are kept per attempt."""
MORE: Final = f"… truncated: only the first {LINES:,} lines of an attempt are kept."
STEP: Final = 0.001
"""Progress by less than this is not worth a row."""
STEPS: Final = 1_000
"""Notes of progress alone that are kept per attempt, besides the one that says that all is done."""
WAITING: Final = 10_000
ATTEMPTS: Final = 10_000
"""Attempts whose bounds are remembered: those that reported last."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class ProgressNote(NamedTuple):
    """The progress of an attempt, a line of its log, or both. `n` orders the notes of one process."""

    instance_id: int
    fence: int
    n: int
    at: datetime
    node: int
    attempt: int
    progress: float | None
    message: str | None
    tenant: str
    sealed_for: tuple[int, str] | None = None
    """For a note of an encrypted job whose message is not sealed yet: the tenant and the job. It is not stored."""


@dataclass(slots=True)
class _AttemptNotes:
    """The number of lines and steps of an attempt, and its last progress."""

    lines: int = 0
    steps: int = 0
    progress: float | None = None

    def line(self, message: str) -> str | None:
        """Count a message and return it as it is stored; None beyond the limit."""
        self.lines += self.lines <= LINES + 1
        if self.lines <= LINES:
            return message_text(message)
        return MORE if self.lines == LINES + 1 else None

    def is_step(self, progress: float) -> bool:
        """Return whether this progress alone is worth another note."""
        if self.progress is None:
            return True
        if progress >= 1:
            return self.progress < 1
        return self.steps < STEPS and abs(progress - self.progress) >= STEP


class ProgressNotes:
    """Notes that wait to be written."""

    def __init__(self) -> None:
        self.dropped = 0
        self._waiting: list[ProgressNote] = []
        self._said: dict[tuple[int, int], _AttemptNotes] = {}
        self._steps: dict[tuple[int, int], int] = {}  # index of the waiting step of an attempt, which the next replaces
        self._numbers = itertools.count(1)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, call: Call, at: datetime, progress: float | None, message: str | None) -> None:
        """Add a note; a step replaces the one that still waits.

        Beyond the bounds, a note is left out or counted as dropped.
        """
        attempt = (call.instance_id, call.fence)
        said = self._said_by(attempt)
        line = None if message is None else said.line(message)
        own = (call.tenant_id, call.job) if call.is_encrypted else None
        named = (call.node, call.attempt, progress, line, call.tenant, own)
        note = ProgressNote(*attempt, next(self._numbers), at, *named)
        if (self._append(note) if line is not None else self._add_step(note, said)) and progress is not None:
            said.progress = progress

    def _add_step(self, note: ProgressNote, said: _AttemptNotes) -> bool:
        attempt = (note.instance_id, note.fence)
        if (place := self._steps.get(attempt)) is not None and note.progress is not None:
            self._waiting[place] = note
            return True
        if note.progress is None or not said.is_step(note.progress) or not self._append(note):
            return False
        self._steps[attempt] = len(self._waiting) - 1
        said.steps += 1
        return True

    def _said_by(self, attempt: tuple[int, int]) -> _AttemptNotes:
        said = self._said.pop(attempt, None) or _AttemptNotes()
        self._said[attempt] = said  # at the end: the attempt that has been silent longest is dropped first
        if len(self._said) > ATTEMPTS:
            del self._said[next(iter(self._said))]
        return said

    def _append(self, note: ProgressNote) -> bool:
        if len(self._waiting) >= WAITING:
            self.dropped += 1
            return False
        self._waiting.append(note)
        return True

    def take(self, limit: int) -> list[ProgressNote]:
        """Take up to `limit` notes that have waited longest; the caller writes them, or puts them back."""
        taken, self._waiting = self._waiting[:limit], self._waiting[limit:]
        self._steps.clear()
        return taken

    def put_back(self, notes: list[ProgressNote]) -> None:
        """Put notes that could not be written back in front of all others."""
        waiting = [*notes, *self._waiting]
        self._waiting = waiting[:WAITING]
        self.dropped += len(waiting) - len(self._waiting)
        self._steps.clear()


def message_text(text: str) -> str:
    """Return `text` fit for a text column: without NUL and half surrogate pairs, at most `MESSAGE_BYTES` bytes."""
    clean = _UNSTORABLE.sub("\ufffd", text[: MESSAGE_BYTES + 1])
    encoded = clean.encode()
    if len(encoded) <= MESSAGE_BYTES:
        return clean
    return encoded[: MESSAGE_BYTES - len("…".encode())].decode(errors="ignore") + "…"
