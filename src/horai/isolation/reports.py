"""The messages of a child to its worker, from any thread: answers, and rate-limited notes of the function."""

import asyncio
import os
import socket
import threading
import time
from contextlib import suppress
from typing import Protocol

from horai.core.calls import Call
from horai.isolation.frames import CallEnded, Message, NoteFrame, pack

PAUSE = 0.05
"""Seconds between two reports of progress without a message. The last one always arrives."""
MESSAGE_LIMIT = 4_096
MESSAGES_LIMIT = 2_000
"""Messages of one attempt. The worker keeps fewer: more would only keep it busy."""


class LogLine:
    """The child's end of the socket."""

    def __init__(self, connection: socket.socket) -> None:
        connection.set_inheritable(False)
        self._connection = connection
        self.incoming = connection.makefile("rb")
        self._lock = threading.Lock()
        self.is_cut = False

    def send(self, message: Message) -> None:
        """Send a message. Blocks while the worker is slow to read."""
        with self._lock:
            self._connection.sendall(pack(message))

    def cut(self) -> None:
        """Close the socket in a forked copy of the process, which must not send messages."""
        self.is_cut = True
        with suppress(OSError):
            os.close(self._connection.detach())


class Outgoing(Protocol):
    """The way of messages to the worker. A way that `is_cut` takes none."""

    is_cut: bool

    def send(self, message: Message) -> None:
        """Send a message, from any thread."""
        ...


class Reports:
    """The notes of the running attempt. Messages are sent at once: the last ones before a crash matter most."""

    def __init__(self, line: Outgoing, loop: asyncio.AbstractEventLoop) -> None:
        self._line = line
        self._loop = loop
        self._lock = threading.Lock()
        self._call: Call | None = None
        self._messages = 0
        self._told_at = 0.0
        self._latest: float | None = None

    def begin(self, call: Call) -> None:
        """Accept notes of this attempt only: code that an earlier function left running may still write some."""
        with self._lock:
            self._call, self._messages, self._told_at, self._latest = call, 0, 0.0, None

    def end(self, answer: CallEnded) -> None:
        """Send the answer, after all notes."""
        with self._lock:
            self._flush()
            self._call = None
            self._line.send(answer)

    def note(self, call: Call, progress: float | None, message: str | None) -> None:
        """Send a note of the running attempt. Notes of other attempts are dropped."""
        if self._line.is_cut:  # the fork copied the lock too, perhaps while another thread held it
            return
        with self._lock:
            if self._call is not call:
                return
            if message is not None and self._messages < MESSAGES_LIMIT:
                self._messages += 1
                self._flush()
                self._line.send(NoteFrame(progress, writable(message)))
            elif progress is not None:
                self._report(progress)

    def _report(self, progress: float) -> None:
        is_waiting = self._latest is not None
        self._latest = progress
        if time.monotonic() - self._told_at >= PAUSE:
            self._flush()
        elif not is_waiting:
            self._loop.call_soon_threadsafe(self._loop.call_later, PAUSE, self._catch_up)

    def _catch_up(self) -> None:
        with self._lock:
            self._flush()

    def _flush(self) -> None:
        if self._latest is not None:
            self._line.send(NoteFrame(self._latest, None))
            self._latest, self._told_at = None, time.monotonic()


def writable(message: str) -> str:
    """Return the text that can be sent: at most `MESSAGE_LIMIT` characters, without lone surrogates."""
    return str(message)[:MESSAGE_LIMIT].encode("utf-8", "replace").decode()
