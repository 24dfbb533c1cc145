"""Child processes of Horai: they start with this process, restart when they die, and stop with it.

Each has the read end of a pipe as its stdin and stops when that ends, so children also end with a killed parent.
"""

import asyncio
import os
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from types import MappingProxyType
from typing import NamedTuple

import structlog

from horai.cli.serve import SLACK

log = structlog.get_logger(__name__)

RUN = "from horai.cli.main import run; run()"
NOT_FOR_CHILDREN = frozenset({"HORAI_PROCESSES", "HORAI_RELOAD"})
"""Variables about children: a child that inherits them would start children of its own."""
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
STEADY_AFTER = 60.0
"""Seconds. A process that ends sooner after its start counts as one that fails to start."""


class ChildCommand(NamedTuple):
    """A process to run: its name, the arguments after `horai`, and its own environment variables."""

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str] = MappingProxyType({})


def like_this_one(name: str, *instead: str) -> ChildCommand:
    """Return a child with our command line, plus `instead`, without `--reload`. It ends with this process."""
    own = [word for word in sys.argv[1:] if word != "--reload"]
    return ChildCommand(name, (*own, "--name", name, "--until-stdin-ends", *instead))


def pause_before(restart: int) -> float:
    """Seconds to wait before the `restart`-th restart in a row (1 for the first): 0.5, 1, 2, … at most 30."""
    return min(FIRST_PAUSE * 2 ** min(restart - 1, 10), LONGEST_PAUSE)


async def begin(command: ChildCommand, stdout: int | None = None, **environment: str) -> Process:
    """Start the process. Pass URLs in the environment, which other users cannot read: they may hold a password."""
    inherited = {name: value for name, value in os.environ.items() if name not in NOT_FOR_CHILDREN}
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", RUN, *command.arguments),
        env={**inherited, **command.environment, **environment},
        stdin=PIPE,
        stdout=stdout,
    )


def ask_to_stop(process: Process) -> None:
    """Send SIGTERM. Does nothing if the process has ended."""
    with suppress(ProcessLookupError):
        process.terminate()


class Processes:
    """One process per command, kept running. Their output goes to `stdout`, by default the stdout of this process."""

    def __init__(self, commands: Sequence[ChildCommand], grace: timedelta, stdout: int | None = None) -> None:
        self._commands = commands
        self._patience = (grace + SLACK).total_seconds()
        self._stdout = stdout
        self._tasks: list[asyncio.Task[None]] = []
        self._running: set[Process] = set()
        self._dismissed = asyncio.Event()

    def start(self, url: str) -> None:
        """Start all processes on this database, and keep each running until `dismiss`."""
        self._tasks = [asyncio.create_task(self._keep(one, url), name=one.name) for one in self._commands]

    def dismiss(self) -> None:
        """Ask all processes to stop, and restart none."""
        self._dismissed.set()
        for process in tuple(self._running):
            ask_to_stop(process)

    async def end(self) -> None:
        """Stop all processes and wait until they have ended. Kill those that take longer than the grace + 15 s."""
        self.dismiss()
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks, timeout=self._patience)
        for process in tuple(self._running):
            log.warning("A process did not stop in time.", pid=process.pid)
            process.kill()
        if late:
            await asyncio.wait(late)

    async def _keep(self, command: ChildCommand, url: str) -> None:
        restarts = 0
        while not self._dismissed.is_set():
            begun = time.monotonic()
            code = await self._run(command, url)
            if self._dismissed.is_set():
                return
            restarts = 1 if time.monotonic() - begun > STEADY_AFTER else restarts + 1
            pause = pause_before(restarts)
            log.warning("A process has ended: restarting it.", node=command.name, code=code, in_s=pause)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._dismissed.wait()

    async def _run(self, command: ChildCommand, url: str) -> int | str:
        """Run the command once; return its exit code, or the error if it cannot start."""
        try:
            process = await begin(command, self._stdout, HORAI_DATABASE_URL=url)
        except OSError as error:
            return str(error)
        self._running.add(process)
        if self._dismissed.is_set():
            ask_to_stop(process)
        try:
            return await process.wait()
        finally:
            self._running.discard(process)
