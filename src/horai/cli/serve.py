"""Runs a service until a signal: the first asks it to stop, a second Ctrl-C does not ask."""

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
"""What a stop may take beyond the grace: outcomes are settled, leases given back, connections closed."""

Ready = Callable[[str], None]
Service = Callable[[asyncio.Event, Ready], Coroutine[Any, Any, None]]
"""Serves until the event is set, and says what it is once it is ready; one that has not said so yet is cancelled."""


def serve(service: Service, *, until_stdin_ends: timedelta | None = None) -> None:
    """Returns when the service has stopped cleanly.

    With a time, it also stops when stdin ends: with the process that holds the other end. As nobody is left then to end
    it when it hangs, it does so itself after that time.
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
        """Serves until SIGINT or SIGTERM; one that comes before it is ready takes back what was started."""
        loop = asyncio.get_running_loop()
        running = asyncio.create_task(self._service(self._stop, self._ready))

        def told(why: str) -> None:
            self._is_told = True
            with suppress(RuntimeError):  # the loop has ended before
                loop.call_soon_threadsafe(self._end, why, running)

        def signalled(number: int, _: FrameType | None) -> None:
            if self._is_told and number == signal.SIGINT:
                os._exit(INTERRUPTED)
            told(signal.Signals(number).name)

        # Python's own handlers, not the loop's: a function that blocks the loop must not make us deaf to Ctrl-C.
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
            log.info("Ready.", service=told)  # stdout and log are one stream: each of its lines is JSON
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
    """Calls `told` once the other end is closed; a thread of its own waits, as stdin may be anything."""

    def watch() -> None:
        with suppress(OSError):
            while os.read(STDIN, 4096):
                continue
        told("stdin has ended")
        time.sleep(patience.total_seconds())
        log.error("It did not stop in time.")
        os._exit(STUCK)

    threading.Thread(target=watch, name="horai-stdin", daemon=True).start()
