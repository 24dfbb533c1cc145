"""`horai node` processes of a drill. They end with the drill, also if it is killed: their stdin ends then."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta

from horai.cli.drills.home import DrillHome
from horai.cli.errors import CommandFailed
from horai.cli.processes import RUN
from horai.time.durations import format_duration

READY = b"Horai is ready: "
STOP_WITHIN = 30.0
NOT_INHERITED = ("HORAI_", "PG", "DATABASE_URL")
"""Beginnings of variables that would change the nodes of a drill."""


@dataclass(frozen=True, slots=True)
class DrillNode:
    """A node process and the address of its API."""

    process: Process
    base: str


@dataclass(slots=True)
class DrillNodes:
    """The nodes of a drill by name. `doors` are the addresses that clients know, dead ones included."""

    home: DrillHome
    url: str
    lease: timedelta
    running: dict[str, DrillNode] = field(default_factory=dict[str, DrillNode])
    doors: list[str] = field(default_factory=list[str])

    async def start(self, name: str) -> None:
        """Start a node, and return when it is ready."""
        flags = ("--port", "0", "--name", name, "--lease-ttl", format_duration(self.lease))
        environment = {key: value for key, value in os.environ.items() if not key.startswith(NOT_INHERITED)}
        environment |= {"HORAI_DATABASE_URL": self.url, "HORAI_STATE_DIR": str(self.home.root / "state")}
        with self.home.log(name).open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", RUN, "node", *flags, "--callback-allow", "127.0.0.0/8", "--until-stdin-ends"),
                env=environment,
                stdin=PIPE,
                stdout=PIPE,
                stderr=log,
            )
        try:
            base = await _address(process)
        except asyncio.CancelledError:
            process.kill()
            raise
        if base is None:
            raise CommandFailed(f"The node {name} ended before it was ready.", self.home.last_lines(name) or None)
        self.running[name] = DrillNode(process, base)
        self.doors.append(base)

    async def kill(self, name: str) -> None:
        """Kill a node with kill -9. Clients still know its address."""
        process = self.running.pop(name).process
        process.kill()
        await process.wait()

    async def stop(self) -> None:
        """Stop all nodes; kill those that take longer than `STOP_WITHIN` seconds."""
        processes = [node.process for node in self.running.values()]
        self.running.clear()
        for process in processes:
            with suppress(ProcessLookupError):
                process.terminate()
        for process in processes:
            try:
                await asyncio.wait_for(process.wait(), STOP_WITHIN)
            except TimeoutError:
                process.kill()
                await process.wait()


async def _address(process: Process) -> str | None:
    """Return the address of a node once it is ready; None if it has ended."""
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    async for line in process.stdout:
        if line.startswith(READY):
            return line.removeprefix(READY).decode().strip()
    await process.wait()
    return None


@asynccontextmanager
async def drill_nodes(home: DrillHome, url: str, lease: timedelta, *names: str) -> AsyncGenerator[DrillNodes]:
    """Start nodes, and stop those that still run at the end."""
    nodes = DrillNodes(home, url, lease)
    try:
        for failure in await asyncio.gather(*map(nodes.start, names), return_exceptions=True):
            if failure is not None:
                raise failure
        yield nodes
    finally:
        await nodes.stop()
