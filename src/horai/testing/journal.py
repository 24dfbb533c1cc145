"""What functions did in a test: one entry for each attempt, in the order in which they began."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from horai.core.calls import Call
from horai.db.clock import DatabaseClock
from horai.db.pool import Connection
from horai.sdk.instance import Notes
from horai.testing import store

RUNNING = "RUNNING"


@dataclass(slots=True)
class Fired:
    """One attempt. `state` is what it made of its instance: SUCCESS, FAIL, DEAD, CANCELLED, INIT when it was put off.

    While the attempt is under way, and after a crash until it is found out, it is RUNNING. `error` is the name of the
    error (or NODE_LOST, TIMEOUT, …) and `message` what it said. `payload` and `result` are plain JSON values.
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
    """Notes every attempt as it begins, and looks up what came of it. `notes` is whoever keeps what functions say."""

    def __init__(self, clock: DatabaseClock, notes: Notes) -> None:
        self._clock = clock
        self._notes = notes
        self._entries: list[Fired] = []
        self._running: dict[tuple[int, int], Fired] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def begin(self, call: Call) -> None:
        """An attempt is under way."""
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
        """What a function says of itself, from any thread: kept here, and where the product keeps it."""
        if (entry := self._running.get((call.instance_id, call.fence))) is not None:
            if progress is not None:
                entry.progress = progress
            if message is not None:
                entry.log.append(message)
        self._notes.note(call, progress, message)

    async def look_up(self, connection: Connection) -> None:
        """Asks what came of the attempts that were under way."""
        if not self._running:
            return
        for row in await store.came_to(connection, [instance_id for instance_id, _ in self._running]):
            entry = self._running.get((row.id, row.fence))
            if entry is not None and row.state != RUNNING:
                del self._running[row.id, row.fence]
                _conclude(entry, row)

    def since(self, first: int) -> list[Fired]:
        """The entries from the `first` on."""
        return self._entries[first:]

    def of(self, job: str | None) -> list[Fired]:
        """The attempts of a job, or of all."""
        return [entry for entry in self._entries if job in {None, entry.job}]

    def under_way(self) -> Sequence[Fired]:
        """Attempts without an outcome."""
        return list(self._running.values())


def _conclude(entry: Fired, row: store.CameTo) -> None:
    entry.state = row.state
    entry.result = None if row.result is None else json.loads(row.result)
    if row.state in {"FAIL", "DEAD"}:
        entry.error, entry.message = row.error_code, row.error_msg
