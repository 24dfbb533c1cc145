"""A file of changes, one JSON document per line: for imports and for experiments.

Each line takes effect once per import name, so the same file can be read again after a crash.
"""

import asyncio
import hashlib
import heapq
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import BinaryIO

from horai.core.limits import BODY_LIMIT
from horai.features.events.source import Message


class JsonLines:
    """A source of the lines of an open file; empty lines are skipped."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        self._line = 0
        self._is_read = False
        self._open: dict[str, Message] = {}
        self._put_off: list[tuple[float, str]] = []

    @property
    def name(self) -> str:
        """The name of the import, with the prefix `jsonl:`."""
        return f"jsonl:{self._name}"

    async def receive(self, limit: int) -> Sequence[Message] | None:
        """Return the next lines, postponed lines that are due first; None when every line is settled."""
        if due := self._due(limit):
            return due
        if not self._is_read:
            found = await asyncio.to_thread(self._read, limit)
            self._open |= {message.place: message for message in found}
            return found
        if not self._open:
            return None
        if self._put_off:
            await asyncio.sleep(max(0.0, min(self._put_off[0][0] - time.monotonic(), 1.0)))
        return self._due(limit)

    async def ack(self, message: Message) -> None:
        self._open.pop(message.place, None)

    async def nak(self, message: Message, delay: timedelta) -> None:
        heapq.heappush(self._put_off, (time.monotonic() + delay.total_seconds(), message.place))

    async def park(self, message: Message) -> None:
        self._open.pop(message.place, None)

    async def close(self) -> None:
        """Do nothing: the caller that opened the file closes it."""

    def _due(self, limit: int) -> list[Message]:
        due: list[Message] = []
        while self._put_off and len(due) < limit and self._put_off[0][0] <= time.monotonic():
            _, place = heapq.heappop(self._put_off)
            known = self._open[place]
            again = Message(place, known.subject, known.body, known.headers, known.deliveries + 1)
            self._open[place] = again
            due.append(again)
        return due

    def _read(self, limit: int) -> list[Message]:
        found: list[Message] = []
        while len(found) < limit and not self._is_read:
            text = self._file.readline(BODY_LIMIT + 1)
            self._is_read = not text
            self._line += 1
            if len(text) > BODY_LIMIT:
                self._skip_rest(text)
            if text.strip():
                found.append(Message(self._place(text), f"line {self._line}", text))
        return found

    def _skip_rest(self, text: bytes) -> None:
        while text and not text.endswith(b"\n"):
            text = self._file.readline(BODY_LIMIT)

    def _place(self, text: bytes) -> str:
        """Return the line number with a digest of the text: an edited file has different lines at the same numbers."""
        return f"{self._line}#{hashlib.sha256(text.strip()).hexdigest()[:32]}"
