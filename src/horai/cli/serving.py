"""Runs the node until a signal: the first asks it to stop, a second Ctrl-C does not ask."""

import asyncio
import os
import signal
import sys
from contextlib import suppress

import structlog
import uvloop

from horai.cli.logs import talk_on_stderr
from horai.node import KEYLESS, NodeSettings, run

log = structlog.get_logger(__name__)

INTERRUPTED = 130


def serve(settings: NodeSettings) -> None:
    """Returns when the node has stopped cleanly."""
    talk_on_stderr()
    uvloop.run(_Serving(settings).until_told())


class _Serving:
    def __init__(self, settings: NodeSettings) -> None:
        self._settings = settings
        self._stop = asyncio.Event()
        self._is_ready = False

    async def until_told(self) -> None:
        """Serves until SIGINT or SIGTERM; one that comes before it is ready takes back what was started."""
        running = asyncio.create_task(run(self._settings, self._stop, self._ready))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._told, number, running)
        with suppress(asyncio.CancelledError):
            await running
        log.info("Stopped.")

    def _ready(self, address: str) -> None:
        self._is_ready = True
        print(f"Horai is ready: {address}", flush=True)
        log.warning(KEYLESS)

    def _told(self, number: signal.Signals, running: "asyncio.Task[None]") -> None:
        if self._stop.is_set():
            if number == signal.SIGINT:
                sys.stderr.flush()
                os._exit(INTERRUPTED)
            return
        log.info("Stopping.", signal=number.name)
        self._stop.set()
        if not self._is_ready:
            running.cancel()
