"""Runs the node until a signal: the first asks it to stop, a second Ctrl-C does not ask."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

import structlog
import uvloop

from horai.cli.logs import talk_on_stderr
from horai.core.shards import Role
from horai.node import KEYLESS, Company, NodeSettings, run

log = structlog.get_logger(__name__)

INTERRUPTED = 130
STDIN = 0


def serve(settings: NodeSettings, company: Company | None = None, *, until_stdin_ends: bool = False) -> None:
    """Returns when the node, and the company it keeps, have stopped cleanly."""
    talk_on_stderr()
    uvloop.run(_Serving(settings, company).until_told(until_stdin_ends))


class _Serving:
    def __init__(self, settings: NodeSettings, company: Company | None) -> None:
        self._settings = settings
        self._company = company
        self._stop = asyncio.Event()
        self._is_ready = False

    async def until_told(self, until_stdin_ends: bool) -> None:
        """Serves until SIGINT or SIGTERM; one that comes before it is ready takes back what was started."""
        running = asyncio.create_task(run(self._settings, self._stop, self._ready, self._company))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._signalled, number, running)
        if until_stdin_ends:
            _when_stdin_ends(lambda: self._end("stdin has ended", running))
        with suppress(asyncio.CancelledError):
            await running
        log.info("Stopped.")

    def _ready(self, told: str) -> None:
        self._is_ready = True
        print(f"Horai is ready: {told}", flush=True)
        if Role.api in self._settings.roles:
            log.warning(KEYLESS)

    def _signalled(self, number: signal.Signals, running: "asyncio.Task[None]") -> None:
        if self._stop.is_set() and number == signal.SIGINT:
            sys.stderr.flush()
            os._exit(INTERRUPTED)
        self._end(number.name, running)

    def _end(self, why: str, running: "asyncio.Task[None]") -> None:
        if self._stop.is_set():
            return
        log.info("Stopping.", why=why)
        self._stop.set()
        if not self._is_ready:
            running.cancel()


def _when_stdin_ends(told: Callable[[], None]) -> None:
    """Calls `told` in this loop once the other end is closed; a thread of its own waits, as stdin may be anything."""
    loop = asyncio.get_running_loop()

    def watch() -> None:
        with suppress(OSError):
            while os.read(STDIN, 4096):
                continue
        with suppress(RuntimeError):  # the loop has ended before
            loop.call_soon_threadsafe(told)

    threading.Thread(target=watch, name="horai-stdin", daemon=True).start()
