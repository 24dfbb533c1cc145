"""A service that runs until a signal: the first asks it to stop, a second Ctrl-C ends the process at once."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from types import FrameType
from typing import Any

import structlog
import uvloop

from horai.logs import is_json, write_to_stderr

log = structlog.get_logger(__name__)

INTERRUPTED = 130
STUCK = 1
STDIN, STDOUT, STDERR = 0, 1, 2
SIGNALS = (signal.SIGINT, signal.SIGTERM)
SLACK = timedelta(seconds=15)
"""Time that a stop may take beyond the grace, to settle outcomes, release leases and close connections."""

Ready = Callable[[str], None]
Service = Callable[[asyncio.Event, Ready], Coroutine[Any, Any, None]]
"""Serves until the event is set, and calls `Ready` once it is ready. Before that, a stop cancels it."""


def serve(service: Service, *, until_stdin_ends: timedelta | None = None) -> None:
    """Run the service, and return when it has stopped cleanly.

    With `until_stdin_ends`, the service also stops when stdin ends, that is when the process at its other end exits. No
    parent is left then to end a process that hangs, so it exits by itself after that time.
    """
    write_to_stderr()
    uvloop.run(_Serving(service).until_told(until_stdin_ends))


class _Serving:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._stop = asyncio.Event()
        self._is_ready = False
        self._is_told = False

    async def until_told(self, until_stdin_ends: timedelta | None) -> None:
        """Serve until SIGINT or SIGTERM. A signal before the service is ready cancels its start."""
        loop = asyncio.get_running_loop()
        running = asyncio.create_task(self._service(self._stop, self._ready))

        def told(why: str) -> None:
            self._is_told = True
            with suppress(RuntimeError):  # the loop has ended already
                loop.call_soon_threadsafe(self._end, why, running)

        def signalled(number: int, _: FrameType | None) -> None:
            if self._is_told and number == signal.SIGINT:
                os._exit(INTERRUPTED)
            told(signal.Signals(number).name)

        # Python's own handlers, not the loop's: Ctrl-C must work even if a function blocks the loop.
        before = {number: signal.signal(number, signalled) for number in SIGNALS}
        if until_stdin_ends is not None:
            _when_stdin_ends(told, until_stdin_ends)
        try:
            with suppress(asyncio.CancelledError):
                await running
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        log.info("Stopped.")

    def _ready(self, told: str) -> None:
        self._is_ready = True
        if is_json() and os.path.sameopenfile(STDOUT, STDERR):
            log.info("Ready.", service=told)  # stdout and the log are one stream: each line must be JSON
        else:
            print(f"Horai is ready: {told}\n", end="", flush=True)  # one write: processes share this stdout

    def _end(self, why: str, running: "asyncio.Task[None]") -> None:
        if self._stop.is_set():
            return
        log.info("Stopping.", why=why)
        self._stop.set()
        if not self._is_ready:
            running.cancel()


def _when_stdin_ends(told: Callable[[str], None], patience: timedelta) -> None:
    """Call `told` when the other end is closed. A thread waits for it, because stdin may be any kind of file."""

    def watch() -> None:
        with suppress(OSError):
            while os.read(STDIN, 4096):
                continue
        told("stdin has ended")
        time.sleep(patience.total_seconds())
        log.error("The service did not stop in time.")
        os._exit(STUCK)

    threading.Thread(target=watch, name="horai-stdin", daemon=True).start()
