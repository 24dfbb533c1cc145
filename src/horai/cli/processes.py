"""Further processes of Horai: started with this one, started again when they die, stopped with it.

Each has the read end of a pipe as its stdin and stops when that ends: so they also end with a parent that was killed.
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
"""What a parent was told about its children would have them bring up children of their own."""
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
STEADY_AFTER = 60.0
"""Seconds. A process that ends sooner than that after its start counts as one that fails to start."""


class Command(NamedTuple):
    """A process to run: what it is called, what follows `horai` on its command line, and variables of its own."""

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str] = MappingProxyType({})


def like_this_one(name: str, *instead: str) -> Command:
    """A child with our own command line, but for what it is told instead; it follows no code and ends with us."""
    own = [word for word in sys.argv[1:] if word != "--reload"]
    return Command(name, (*own, "--name", name, "--until-stdin-ends", *instead))


def pause_before(restart: int) -> float:
    """Seconds to wait before the `restart`-th restart in a row (1 for the first): 0.5, 1, 2, … at most 30."""
    return min(FIRST_PAUSE * 2 ** min(restart - 1, 10), LONGEST_PAUSE)


async def begin(command: Command, stdout: int | None = None, **environment: str) -> Process:
    """Starts it. A URL may hold a password: it goes by the environment, which others cannot read."""
    inherited = {name: value for name, value in os.environ.items() if name not in NOT_FOR_CHILDREN}
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", RUN, *command.arguments),
        env={**inherited, **command.environment, **environment},
        stdin=PIPE,
        stdout=stdout,
    )


def ask_to_stop(process: Process) -> None:
    """SIGTERM; nothing for one that has ended."""
    with suppress(ProcessLookupError):
        process.terminate()


class Processes:
    """Keeps one process per command running. What they print goes to `stdout`: by default where our own goes."""

    def __init__(self, commands: Sequence[Command], grace: timedelta, stdout: int | None = None) -> None:
        self._commands = commands
        self._patience = (grace + SLACK).total_seconds()
        self._stdout = stdout
        self._tasks: list[asyncio.Task[None]] = []
        self._running: set[Process] = set()
        self._dismissed = asyncio.Event()

    def start(self, url: str) -> None:
        """Starts them all on this database; each is kept running until `dismiss`."""
        self._tasks = [asyncio.create_task(self._keep(one, url), name=one.name) for one in self._commands]

    def dismiss(self) -> None:
        """Asks all to stop; none is started again."""
        self._dismissed.set()
        for process in tuple(self._running):
            ask_to_stop(process)

    async def end(self) -> None:
        """Returns when none is left; who does not stop in time is killed."""
        self.dismiss()
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks, timeout=self._patience)
        for process in tuple(self._running):
            log.warning("A process did not stop in time.", pid=process.pid)
            process.kill()
        if late:
            await asyncio.wait(late)

    async def _keep(self, command: Command, url: str) -> None:
        restarts = 0
        while not self._dismissed.is_set():
            begun = time.monotonic()
            code = await self._run(command, url)
            if self._dismissed.is_set():
                return
            restarts = 1 if time.monotonic() - begun > STEADY_AFTER else restarts + 1
            pause = pause_before(restarts)
            log.warning("A process has ended: starting another.", node=command.name, code=code, in_s=pause)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._dismissed.wait()

    async def _run(self, command: Command, url: str) -> int | str:
        """The exit code of one life."""
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
