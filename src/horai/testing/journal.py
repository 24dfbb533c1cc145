"""The journal of a test: one entry for each attempt, in the order in which they began."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from horai.core.calls import Call
from horai.db.clock import DatabaseClock
from horai.db.pool import Platform
from horai.sdk.instance import Notes
from horai.testing import store

RUNNING = "RUNNING"


@dataclass(slots=True)
class Fired:
    """One attempt. `state` is the state of its instance afterwards: SUCCESS, FAIL, DEAD, CANCELLED, INIT if postponed.

    While the attempt runs, and after a crash until the rescuer finds it, the state is RUNNING. `error` is the name of
    the error (or NODE_LOST, TIMEOUT, …) and `message` its text. `payload` and `result` are plain JSON values.
    """

    job: str
    id: str
    key: str | None
    payload: Any
    fire_time: datetime
    execute_time: datetime
    ran_at: datetime
    attempt: int
    fence: int
    state: str = RUNNING
    result: Any = None
    error: str | None = None
    message: str | None = None
    progress: float | None = None
    log: list[str] = field(default_factory=list[str])


class Journal:
    """A record of every attempt and its outcome. `notes` is the progress writer that stores the notes of functions."""

    def __init__(self, clock: DatabaseClock, notes: Notes) -> None:
        self._clock = clock
        self._notes = notes
        self._entries: list[Fired] = []
        self._running: dict[tuple[int, int], Fired] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def begin(self, call: Call) -> None:
        """Record that an attempt begins."""
        entry = Fired(
            call.job,
            str(call.instance_id),
            call.key,
            None if call.payload is None else json.loads(call.payload),
            call.fire_time,
            call.execute_time,
            self._clock.now(),
            call.attempt,
            call.fence,
        )
        self._entries.append(entry)
        self._running[call.instance_id, call.fence] = entry

    def note(self, call: Call, progress: float | None, message: str | None) -> None:
        """Record a progress note of a function, from any thread, here and in the product's progress writer."""
        if (entry := self._running.get((call.instance_id, call.fence))) is not None:
            if progress is not None:
                entry.progress = progress
            if message is not None:
                entry.log.append(message)
        self._notes.note(call, progress, message)

    async def look_up(self, connection: Platform) -> None:
        """Read the outcomes of the running attempts."""
        if not self._running:
            return
        for row in await store.came_to(connection, [instance_id for instance_id, _ in self._running]):
            entry = self._running.get((row.id, row.fence))
            if entry is not None and row.state != RUNNING:
                del self._running[row.id, row.fence]
                _conclude(entry, row)

    def since(self, first: int) -> list[Fired]:
        """Return the entries from index `first` on."""
        return self._entries[first:]

    def of(self, job: str | None) -> list[Fired]:
        """Return the attempts of a job, or of all jobs."""
        return [entry for entry in self._entries if job in {None, entry.job}]

    def under_way(self) -> Sequence[Fired]:
        """Return the attempts without an outcome."""
        return list(self._running.values())


def _conclude(entry: Fired, row: store.CameTo) -> None:
    entry.state = row.state
    entry.result = None if row.result is None else json.loads(row.result)
    if row.state in {"FAIL", "DEAD"}:
        entry.error, entry.message = row.error_code, row.error_msg
