"""The outgoing messages of a remote worker: reports that wait for an answer, and notes."""

import asyncio
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import suppress

from horai.core.calls import Call
from horai.core.progress import message_text
from horai.wire.worker_messages import Progress, ProgressPart, ProtocolLimits, Report, encode

Ref = tuple[int, int]
NOTES_WAITING = 10_000
"""The most notes that wait; further ones are dropped."""
NOTES_AT_ONCE = 200
REPORTS = (b'{"type":"reports","reports":[', b"]}")


class RemoteOutbox:
    """The reports without an answer, by attempt, and the notes that were not sent. A report is sent again on a new connection."""

    def __init__(self) -> None:
        self.wake = asyncio.Event()
        self.reports: dict[Ref, Report] = {}
        self._unsent: list[Ref] = []
        self._notes: deque[ProgressPart] = deque()
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()

    def add(self, report: Report) -> None:
        """Send a report, and keep it until it has an answer."""
        ref = (int(report.instance), report.fence)
        self.reports[ref] = report
        self._unsent.append(ref)
        self.wake.set()

    def answered(self, ref: Ref) -> Report | None:
        """Forget a report that has an answer, and return it."""
        return self.reports.pop(ref, None)

    def send_again(self) -> None:
        """Send every report that has no answer on the connection that begins now."""
        self._unsent = list(self.reports)
        self.wake.set()

    def note(self, call: Call, progress: float | None, message: str | None) -> None:
        """Send progress or a line of the log. Any thread may call this; it does not block."""
        text = None if message is None else message_text(message)
        with self._lock:
            if len(self._notes) >= NOTES_WAITING:
                return
            self._notes.append(ProgressPart(str(call.instance_id), call.fence, progress, text))
        with suppress(RuntimeError):  # the loop is closed: no connection is left
            self._loop.call_soon_threadsafe(self.wake.set)

    def take(self, limits: ProtocolLimits) -> Iterator[bytes]:
        """Return the messages to send, each within the limits of the server: notes first, because reports end attempts."""
        while notes := self._take_notes():
            yield encode(Progress(notes))
        unsent, self._unsent = self._unsent, []
        batch, size = list[bytes](), 0
        for text in (encode(self.reports[ref]) for ref in unsent if ref in self.reports):
            if batch and (len(batch) >= limits.reports or size + len(text) > limits.message_bytes - 1_000):
                yield b",".join(batch).join(REPORTS)
                batch, size = [], 0
            batch.append(text)
            size += len(text) + 1
        if batch:
            yield b",".join(batch).join(REPORTS)

    def _take_notes(self) -> list[ProgressPart]:
        with self._lock:
            return [self._notes.popleft() for _ in range(min(NOTES_AT_ONCE, len(self._notes)))]
