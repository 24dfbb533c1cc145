"""One child as the worker sees it: it gets a call, and it answers, dies or is killed."""

import asyncio
import socket
from collections.abc import Mapping
from datetime import timedelta
from typing import Self

import structlog

from horai.core.calls import Call
from horai.core.outcome import PROCESS_DIED, FailedRetryable, Lost, Outcome
from horai.isolation.frames import (
    GIBBERISH,
    Begun,
    CallEnded,
    ClaimOver,
    Hangup,
    Leave,
    Message,
    NoteFrame,
    Ready,
    Unfit,
    begin,
    heard,
    outcome_of,
    pack,
)
from horai.isolation.lifeline import Lifeline, describe
from horai.isolation.orphan_killer import OrphanKiller
from horai.sdk.function_outcomes import timed_out
from horai.sdk.instance import Notes

log = structlog.get_logger(__name__)


IMPORT_WITHIN = 120.0
BEGIN_WITHIN = 30.0
"""Seconds. An idle child that has not begun by then is stuck in work that an earlier function left running."""
LEAVE_WITHIN = 2.0
DIE_WITHIN = 5.0
"""Seconds to wait for a killed process. The kernel can hold it longer, such as in a read from a dead file server."""
LINGER = 1.0
"""Seconds allowed between the end of the process and the end of its connection, in either order."""


class ChildStartFailed(Exception):
    """The child could not be started, and is dead. The text gives the reason."""


class NeverBegun(Exception):
    """The child was dead or stuck, and is dead now. It has not begun its call."""


class Child:
    """A process that runs one call at a time. If it did not answer a call itself, it is dead when `run` returns."""

    def __init__(self, life: Lifeline, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._life = life
        self._reader = reader
        self._writer = writer
        self.is_busy = False
        """True while the child has an unanswered call. Stays True if the child dies during the call."""
        self.runs = 0
        self.ended = life.ended
        self.ended.add_done_callback(self._hang_up)

    @classmethod
    async def start(cls, app: str, environment: Mapping[str, str], orphan_killer: OrphanKiller) -> Self:
        """Start a process that imports the app. Raises `ChildStartFailed` if the system cannot start one."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                life = Lifeline(app, theirs, environment, orphan_killer)
        except OSError as error:
            ours.close()
            raise ChildStartFailed(f"No process could be started: {error}.") from error
        try:
            return cls(life, *await asyncio.open_unix_connection(sock=ours))
        except BaseException:
            life.kill()
            ours.close()
            raise

    @property
    def pid(self) -> int:
        """The id of the process and of its group."""
        return self._life.pid

    async def ready(self) -> None:
        """Wait until the app is imported. Raises `ChildStartFailed` if the import fails or takes too long."""
        try:
            async with asyncio.timeout(IMPORT_WITHIN):
                said = await heard(self._reader)
        except TimeoutError:
            await self._end()
            raise ChildStartFailed(f"The app was not imported within {IMPORT_WITHIN:g} s.") from None
        except Hangup as error:
            raise ChildStartFailed(f"The process {await self._fate(error)} while it imported the app.") from error
        except BaseException:
            self.kill()
            raise
        if not isinstance(said, Ready):
            await self._end()
            raise ChildStartFailed(said.reason if isinstance(said, Unfit) else f"The process {GIBBERISH}.")

    async def run(self, call: Call, handler: str, notes: Notes | None) -> Outcome:
        """Run the call and return its outcome. The timeout starts with the function. Cancellation kills the child."""
        self.is_busy = True
        try:
            await self._begin(call, handler)
            async with asyncio.timeout(None if call.timeout is None else call.timeout.total_seconds()):
                outcome = await self._answer(call, notes)
        except TimeoutError:
            await self._end()
            return timed_out(call.timeout or timedelta(0))
        except Hangup as error:
            return FailedRetryable(PROCESS_DIED, f"The process of the function {await self._fate(error)}.")
        except BaseException:
            self.kill()
            raise
        self.is_busy = False
        self.runs += 1
        return outcome

    def claim_over(self, instance_id: int, fence: int) -> None:
        """Tell the function that its claim is over. The function decides how to react."""
        self._say(ClaimOver(instance_id, fence))

    def kill(self) -> None:
        """Kill the process and its whole group, and close the connection."""
        self._life.kill()
        self._writer.transport.abort()

    async def leave(self) -> None:
        """Ask an idle child to end, and wait until it is dead. It is killed after `LEAVE_WITHIN` seconds."""
        self._say(Leave())
        await self._end(LEAVE_WITHIN)

    async def _begin(self, call: Call, handler: str) -> None:
        try:
            async with asyncio.timeout(BEGIN_WITHIN):
                self._say(begin(call, handler))
                await self._writer.drain()
                said = await heard(self._reader)
        except (TimeoutError, Hangup, OSError) as error:
            raise NeverBegun from error
        if not isinstance(said, Begun):
            raise NeverBegun

    async def _answer(self, call: Call, notes: Notes | None) -> Outcome:
        while True:
            match await heard(self._reader):
                case NoteFrame(progress, message):
                    if notes is not None:
                        notes.note(call, progress, message)
                case CallEnded() as ended if not isinstance(outcome := outcome_of(ended), Lost):
                    return outcome
                case _:
                    raise Hangup(GIBBERISH)

    async def _fate(self, hangup: Hangup) -> str:
        """Return how the process ended. If it closed the connection but lives on, kill it after `LINGER` seconds."""
        status = await self._end(LINGER)
        return f"{hangup} and was killed" if status is None else f"ended with {describe(status)}"

    async def _end(self, patience: float = 0) -> int | None:
        """Kill the process unless it ends by itself within `patience` seconds; return its status if it did."""
        try:
            await asyncio.wait({self.ended}, timeout=patience)
            status = self.ended.result() if self.ended.done() else None
        finally:
            self.kill()
        await asyncio.wait({self.ended}, timeout=DIE_WITHIN)
        if not self.ended.done():
            log.error("a killed process does not end", pid=self.pid)
        return status

    def _say(self, message: Message) -> None:
        if not self._writer.is_closing():
            self._writer.write(pack(message))

    def _hang_up(self, _ended: "asyncio.Future[int]") -> None:
        """Close the connection after the process has ended.

        Messages that the process sent before are still read, for `LINGER` seconds. Another process that holds the other
        end of the socket is not heard.
        """
        abort = self._writer.transport.abort
        if self.is_busy:
            asyncio.get_running_loop().call_later(LINGER, abort)
        else:
            abort()
