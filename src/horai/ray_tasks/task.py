"""The program of a task: it runs one attempt in a process of a Ray node, and yields what the attempt reports.

A process of Ray runs one task after another, in its main thread. The functions run beside it, in an event loop that the
process keeps, so that the main thread can hear a cancellation: Ray interrupts it as Ctrl-C would.
"""

import asyncio
import os
import signal
import sys
import threading
import traceback
from collections.abc import Generator, Sequence
from concurrent.futures import Future
from datetime import timedelta
from queue import Empty, SimpleQueue
from typing import Any

import msgspec

from horai.core.calls import Call
from horai.core.outcome import FailedRetryable, Outcome, outcome_of
from horai.isolation.frames import Begin, Begun, CallEnded, Message, call_of, ended
from horai.isolation.reports import Reports
from horai.isolation.service import last_lines, load
from horai.logs import write_to_stderr
from horai.ray_tasks.fates import TASK_FAILED
from horai.sdk.app import Horai
from horai.sdk.functions import Crew
from horai.sdk.job import Job

LOOK = 0.05
"""Seconds. The interruption by which Ray cancels a task does not wake a thread that waits."""
LINGER = 1.0
"""Seconds for a function to end after Ray has ended its task. The process ends after that."""

_encode = msgspec.msgpack.Encoder().encode


class _Box:
    """The messages of an attempt on their way to the main thread."""

    is_cut = False

    def __init__(self) -> None:
        self.messages: SimpleQueue[Message] = SimpleQueue()

    def send(self, message: Message) -> None:
        """Pass a message on."""
        self.messages.put(message)


class _Station:
    """The event loop of a process, in its own thread, and the applications that the process has imported."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._apps: dict[str, Horai] = {}
        threading.Thread(target=self.loop.run_forever, name="horai-functions", daemon=True).start()

    def app(self, name: str) -> Horai:
        """Return the application; import it on first use."""
        if name not in self._apps:
            self._apps[name] = load(name)
            write_to_stderr()  # after the import: an application may set up `logging` itself
        return self._apps[name]


class _RunningAttempt:
    """An attempt in the event loop of the station, as the main thread sees it."""

    def __init__(self, station: _Station, call: Call, job: Job[..., Any]) -> None:
        self._box = _Box()
        self._reports = Reports(self._box, station.loop)
        self._crew = Crew(1, self._reports)
        self._call = call
        self._job = job
        self._loop = station.loop
        self._is_over = False
        self._left = asyncio.Event()
        self._crew.left = self._left.set
        self._running: Future[None] | None = None

    def start(self) -> None:
        """Start the function, unless its claim is over already."""
        if not self._is_over:
            self._reports.begin(self._call)
            self._running = asyncio.run_coroutine_threadsafe(self._run(), self._loop)

    async def _run(self) -> None:
        try:
            outcome = await outcome_of(self._job.executor(self._crew).run(self._call))
            if not self._crew.may_begin(self._job.name):
                await self._left.wait()  # a thread runs on after its timeout, and keeps the resources of the task
        except Exception as error:
            outcome = FailedRetryable("EXECUTOR_ERROR", f"Horai failed to make the call ({type(error).__name__})")
        finally:
            self._crew.close()
        self._reports.end(ended(outcome))

    def claim_over(self) -> None:
        """Tell the function that its claim is over, and report nothing more: Ray takes nothing of a cancelled task."""
        self._is_over = True
        self._crew.claim_over(self._call.instance_id, self._call.fence)

    def messages(self) -> Generator[Message]:
        """Yield the messages of the attempt, until it has ended."""
        while self._running is not None:
            try:
                message = self._box.messages.get(timeout=LOOK)
            except Empty:
                continue
            if not self._is_over:
                yield message
            if isinstance(message, CallEnded):
                return

    def abandon(self) -> None:
        """End the process if the function goes on although its task has ended."""
        if self._running is not None and not self._running.done():
            self.claim_over()
            try:
                self._running.result(LINGER)
            except TimeoutError:
                os._exit(1)


_station: _Station | None = None


def attempt(app: str, asked: Begin, timeout: float | None, paths: Sequence[str] = ()) -> Generator[bytes]:
    """Run one attempt. Yield `Begun`, the notes of the function, and `CallEnded`, each as bytes.

    `paths` are the directories in which the worker finds modules. The node looks there last.
    """
    global _station  # noqa: PLW0603 — one for the process
    _station = _station or _Station()
    try:
        sys.path += [path for path in paths if path not in sys.path]
        job = _station.app(app).jobs.get(asked.handler)
    except BaseException:
        yield _encode(ended(_unfit(last_lines(traceback.format_exc()))))
        return
    if job is None:
        yield _encode(ended(FailedRetryable("HANDLER_MISSING", "The code on the Ray node has no such job.")))
        return
    call = call_of(asked)._replace(timeout=None if timeout is None else timedelta(seconds=timeout))
    running = _RunningAttempt(_station, call, job)

    def interrupted(_signal: int, _frame: object) -> None:
        running.claim_over()

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield _encode(Begun())
        running.start()
        for message in running.messages():
            yield _encode(message)
    finally:
        signal.signal(signal.SIGINT, before)
        running.abandon()


def _unfit(reason: str) -> Outcome:
    return FailedRetryable(TASK_FAILED, f"The Ray node cannot import the application.\n{reason}")
