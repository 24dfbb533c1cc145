"""Calls of isolated functions, and an ear for what they tell."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import msgspec
import psutil

from horai.core.calls import Call, WorkerTarget

FIRE_TIME = datetime(2026, 11, 15, 9, 30, 0, 123456, tzinfo=UTC)
EXECUTE_TIME = datetime(2026, 11, 15, 9, 31, tzinfo=UTC)

_ids = count(1)


def call(handler: str, payload: Any = None, timeout: timedelta | None = None) -> Call:
    """One attempt, of an instance of its own."""
    text = None if payload is None else msgspec.json.encode(payload).decode()
    target = WorkerTarget(handler)
    return Call(
        next(_ids),
        2,
        handler,
        "default",
        "k",
        FIRE_TIME,
        EXECUTE_TIME,
        4,
        3,
        FIRE_TIME,
        -1,
        text,
        target,
        timeout,
        (),
        9,
    )


class Heard:
    """Notes that have arrived, by instance."""

    def __init__(self) -> None:
        self.notes: list[tuple[int, float | None, str | None]] = []
        self._is_new = asyncio.Event()

    def note(self, call: Call, progress: float | None, message: str | None) -> None:
        self.notes.append((call.instance_id, progress, message))
        self._is_new.set()

    def of(self, call: Call) -> list[tuple[float | None, str | None]]:
        return [(progress, message) for instance_id, progress, message in self.notes if instance_id == call.instance_id]

    async def messages(self, call: Call, number: int) -> list[str]:
        """The first so many of an attempt, when they are there."""
        async with asyncio.timeout(30):
            while len(found := [message for _, message in self.of(call) if message is not None]) < number:
                self._is_new.clear()
                await self._is_new.wait()
        return found[:number]

    async def pids(self, call: Call, number: int) -> list[int]:
        return [int(message) for message in await self.messages(call, number)]


def is_alive(pid: int) -> bool:
    """Return true if the process runs. A zombie does not count: another process has to reap it."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def pythons() -> set[int]:
    """The living below this process that run Python; PostgreSQL comes and goes as it likes."""
    found: set[int] = set()
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if "python" in process.name() and is_alive(process.pid):
                found.add(process.pid)
    return found


async def until(holds: Callable[[], bool], within: float = 30.0) -> None:
    async with asyncio.timeout(within):
        while not holds():
            await asyncio.sleep(0.01)
