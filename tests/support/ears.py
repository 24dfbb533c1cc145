"""Ears on the channel of wakes: what a process that listens would hear, in order and complete."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from horai.core.wakes import Wake, from_text
from horai.db.notify import listen, notify
from horai.db.pool import Platform, connect

MARK = "mark"
AUDIT = "a"
"""The wake of a row of the audit log, which every change of a job sends."""


@dataclass(slots=True)
class Ear:
    """Notes every notification."""

    connection: Platform
    marking: Platform
    payloads: list[str] = field(default_factory=list[str])
    pids: list[int] = field(default_factory=list[int])
    _marks: "asyncio.Queue[str]" = field(default_factory=asyncio.Queue)

    def hear(self, _: Any, pid: int, __: str, payload: Any) -> None:
        if payload == MARK:
            self._marks.put_nowait(payload)
        elif payload != AUDIT:
            self.payloads.append(payload)
            self.pids.append(pid)

    async def heard(self) -> list[str]:
        """All that was committed before this call: they come in the order of their commits, and the mark comes last."""
        await notify(self.marking, MARK)
        async with asyncio.timeout(30):
            await self._marks.get()
        return self.payloads

    async def wakes(self) -> list[Wake]:
        """The wakes of all that was committed before this call."""
        return [wake for payload in await self.heard() for wake in from_text(payload)]


@asynccontextmanager
async def ear(url: str) -> AsyncGenerator[Ear]:
    """One that listens from now on."""
    made = Ear(await connect(url, "horai test ear"), await connect(url, "horai test mark"))
    try:
        await listen(made.connection, made.hear)
        yield made
    finally:
        made.connection.terminate()
        made.marking.terminate()
