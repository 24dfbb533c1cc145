"""The driver as the worker sees it: a process that is started, hears, reports and dies."""

import asyncio
import socket
from collections.abc import Callable
from typing import Self

import msgspec
import structlog

from horai.isolation.frames import GIBBERISH, Hangup, Leave, Ready, Unfit, heard_as, pack
from horai.isolation.lifeline import Lifeline, describe
from horai.isolation.orphan_killer import OrphanKiller
from horai.ray_tasks.driver import ADDRESS
from horai.ray_tasks.messages import FROM_DRIVER, TaskEnded, TaskNote

log = structlog.get_logger(__name__)

PROGRAM = "import json, sys; sys.path[:] = json.loads(sys.argv[3]); from horai.ray_tasks.driver import main; main()"
CONNECT_WITHIN = 120.0
"""Seconds to import Ray and to connect to its cluster."""
LEAVE_WITHIN = 5.0
DIE_WITHIN = 5.0
ANSWER_WITHIN = 5.0


class DriverFailed(Exception):
    """The driver could not connect to Ray, and is dead. The text gives the reason."""


class DriverProcess:
    """A process that is connected to Ray."""

    def __init__(self, life: Lifeline, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._life = life
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, app: str, address: str, orphan_killer: OrphanKiller) -> Self:
        """Start a driver and wait until it is connected. Raises `DriverFailed` if it cannot connect."""
        await _require_answer(address)
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                life = Lifeline(app, theirs, {ADDRESS: address}, orphan_killer, PROGRAM)
        except OSError as error:
            ours.close()
            raise DriverFailed(f"No process could be started: {error}.") from error
        try:
            driver = cls(life, *await asyncio.open_unix_connection(sock=ours))
        except BaseException:
            life.kill()
            ours.close()
            raise
        await driver._ready()
        return driver

    async def _ready(self) -> None:
        try:
            async with asyncio.timeout(CONNECT_WITHIN):
                said = await heard_as(FROM_DRIVER, self._reader)
        except TimeoutError:
            await self.end()
            raise DriverFailed(f"Ray did not answer within {CONNECT_WITHIN:g} s.") from None
        except Hangup:
            raise DriverFailed(await self.fate()) from None
        except BaseException:
            self.kill()
            raise
        if not isinstance(said, Ready):
            await self.end()
            raise DriverFailed(said.reason if isinstance(said, Unfit) else f"The driver {GIBBERISH}.")

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._life.pid

    async def hear(self, take: Callable[[TaskNote | TaskEnded], None]) -> str:
        """Pass the messages of the driver to `take` until the driver is dead. Return how it ended."""
        try:
            while isinstance(said := await heard_as(FROM_DRIVER, self._reader), TaskNote | TaskEnded):
                take(said)
        except Hangup:
            return await self.fate()
        await self.end()
        return said.reason if isinstance(said, Unfit) else f"The driver {GIBBERISH}."

    def say(self, message: msgspec.Struct) -> None:
        """Send a message to the driver."""
        if not self._writer.is_closing():
            self._writer.write(pack(message))

    async def fate(self) -> str:
        """Wait for the end of a driver that has closed its connection, and say how it ended."""
        await asyncio.wait({self._life.ended}, timeout=DIE_WITHIN)
        status = self._life.ended.result() if self._life.ended.done() else None
        await self.end()
        return "The driver hung and was killed." if status is None else f"The driver ended with {describe(status)}."

    async def leave(self) -> None:
        """Ask the driver to disconnect and to end; kill it after `LEAVE_WITHIN` seconds."""
        self.say(Leave())
        await asyncio.wait({self._life.ended}, timeout=LEAVE_WITHIN)
        await self.end()

    def kill(self) -> None:
        """Kill the process and its whole group, and close the connection."""
        self._life.kill()
        self._writer.transport.abort()

    async def end(self) -> None:
        """Kill the process and wait until it is dead."""
        self.kill()
        await asyncio.wait({self._life.ended}, timeout=DIE_WITHIN)
        if not self._life.ended.done():
            log.error("a killed process does not end", pid=self.pid)


async def _require_answer(address: str) -> None:
    """Raise `DriverFailed` if an address of the form HOST:PORT does not answer. Ray would try for most of a minute."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        async with asyncio.timeout(ANSWER_WITHIN):
            _, writer = await asyncio.open_connection(host, int(port))
    except (OSError, TimeoutError, OverflowError) as error:
        raise DriverFailed(f"{address} does not answer: {str(error) or type(error).__name__}.") from None
    writer.close()
