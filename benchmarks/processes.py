"""Further processes of a sample: each says in one line of JSON that it is ready, and in another what it found.

A child ends when its standard input does: also when this process is killed.
"""

import asyncio
import json
import logging
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import structlog

START_WITHIN = 60.0
END_WITHIN = 60.0
LINE_LIMIT = 64 * 1024 * 1024
ROOT = Path(__file__).parents[1]


class Child:
    """A process at work; `told` is what it said when it was ready."""

    def __init__(self, process: asyncio.subprocess.Process, told: Mapping[str, Any]) -> None:
        self._process = process
        self.told = told

    @property
    def pid(self) -> int:
        """For those who measure it."""
        return self._process.pid

    def go(self) -> None:
        """Send the line that a child waits for which has to begin together with others."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"go\n")

    async def next_line(self, within: float = END_WITHIN) -> Any:
        """Return the next line that the process prints."""
        return await _line(self._process, within)

    async def finish(self) -> Any:
        """Has it end, and returns what it found."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return await self.next_line()


@asynccontextmanager
async def child(*command: str, env: Mapping[str, str] | None = None) -> AsyncGenerator[Child]:
    """A process from when it is ready until the end of the block."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env=env,
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=LINE_LIMIT,
    )
    try:
        yield Child(process, await _line(process, START_WITHIN))
    finally:
        if process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), END_WITHIN)
        except TimeoutError:
            process.kill()
            await process.wait()


def module(name: str, *arguments: str) -> tuple[str, ...]:
    """The command that runs one of our modules."""
    return (sys.executable, "-m", name, *arguments)


async def _line(process: asyncio.subprocess.Process, within: float) -> Any:
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), within)
    if not line:
        raise RuntimeError(f"a process of the benchmark ended with {await process.wait()}")
    return json.loads(line)


def tell(facts: object) -> None:
    """In the child: one line for the parent."""
    print(json.dumps(facts), flush=True)


async def told_to_end() -> None:
    """In the child: returns when the parent has closed our standard input, or is gone."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()


def quiet() -> None:
    """Only what is wrong is worth a line between the figures; standard output is for those."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
