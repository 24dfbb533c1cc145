"""The further nodes of `horai up --processes N`: started with it, started again when they die, stopped with it.

Each has the read end of a pipe as its stdin and stops when that ends: so they also end with a parent that was killed.
"""

import asyncio
import os
import sys
import time
from asyncio.subprocess import PIPE, Process
from datetime import timedelta

import structlog

from horai.core.durations import format_duration
from horai.core.shards import Role
from horai.node import NodeSettings

log = structlog.get_logger(__name__)

ROLES = (Role.scheduler, Role.executor)
RUN = "from horai.cli.main import run; run()"
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
STEADY_AFTER = 60.0
"""Seconds. A process that ends sooner than that after its start counts as one that fails to start."""
SLACK = timedelta(seconds=15)
"""What a stop may take beyond the grace: outcomes are settled, leases given back, connections closed."""


def pause_before(restart: int) -> float:
    """Seconds to wait before the `restart`-th restart in a row (1 for the first): 0.5, 1, 2, … at most 30."""
    return min(FIRST_PAUSE * 2 ** min(restart - 1, 10), LONGEST_PAUSE)


class Processes:
    """Nodes without the API, on the database of the node they belong to."""

    def __init__(self, settings: NodeSettings, count: int) -> None:
        self._settings = settings
        self._names = [f"{settings.name}-{number}" for number in range(2, count + 2)]
        self._tasks: list[asyncio.Task[None]] = []
        self._running: set[Process] = set()
        self._dismissed = asyncio.Event()

    def start(self, url: str) -> None:
        """Starts them all; each is kept running until `dismiss`."""
        self._tasks = [asyncio.create_task(self._keep(name, url), name=name) for name in self._names]

    def dismiss(self) -> None:
        """Asks all to stop; none is started again."""
        self._dismissed.set()
        for process in tuple(self._running):
            _terminate(process)

    async def end(self) -> None:
        """Returns when none is left; who does not stop in time is killed."""
        self.dismiss()
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks, timeout=(self._settings.engine.grace + SLACK).total_seconds())
        for process in tuple(self._running):
            log.warning("A process did not stop in time.", pid=process.pid)
            process.kill()
        if late:
            await asyncio.wait(late)

    async def _keep(self, name: str, url: str) -> None:
        restarts = 0
        while not self._dismissed.is_set():
            begun = time.monotonic()
            code = await self._run(name, url)
            if self._dismissed.is_set():
                return
            restarts = 1 if time.monotonic() - begun > STEADY_AFTER else restarts + 1
            log.warning("A process has ended: starting another.", node=name, code=code, in_s=pause_before(restarts))
            try:
                async with asyncio.timeout(pause_before(restarts)):
                    await self._dismissed.wait()
            except TimeoutError:
                continue

    async def _run(self, name: str, url: str) -> int | str:
        """The exit code of one life. A URL may hold a password: it goes by the environment, which others cannot read."""
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command(name),
                env={**os.environ, "HORAI_DATABASE_URL": url},
                stdin=PIPE,
                stdout=sys.stderr.fileno(),
            )
        except OSError as error:
            return str(error)
        self._running.add(process)
        if self._dismissed.is_set():
            _terminate(process)
        try:
            return await process.wait()
        finally:
            self._running.discard(process)

    def _command(self, name: str) -> list[str]:
        engine = self._settings.engine
        networks = ",".join(map(str, engine.callback_allow))
        return [
            *(sys.executable, "-c", RUN, "node", "--until-stdin-ends"),
            *("--name", name, "--roles", ",".join(ROLES)),
            *("--lease-ttl", format_duration(engine.lease), "--grace", format_duration(engine.grace)),
            *("--callback-allow", networks),
        ]


def _terminate(process: Process) -> None:
    try:
        process.terminate()
    except ProcessLookupError:
        return
