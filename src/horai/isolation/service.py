"""The program of the child: it imports the app, then serves calls one by one until the worker tells it to leave.

The functions have stdout, stderr and the main loop to themselves. A thread reads the worker's messages, so that they
arrive while a function blocks the loop. When the worker is gone, the thread kills the process group.
"""

import asyncio
import faulthandler
import importlib
import io
import os
import signal
import socket
import sys
import threading
import traceback
from contextlib import AsyncExitStack, suppress
from datetime import timedelta
from functools import reduce
from pathlib import Path
from typing import Any, cast

from horai.core.calls import Call
from horai.core.outcome import FailedRetryable, Outcome, outcome_of
from horai.db.stage_connection import StageConnection
from horai.isolation.frames import (
    GIBBERISH,
    Begin,
    Begun,
    ClaimOver,
    Hangup,
    Leave,
    Message,
    Ready,
    Unfit,
    call_of,
    ended,
    read,
)
from horai.isolation.reports import LogLine, Reports, writable
from horai.logs import write_to_stderr
from horai.operations.trace_export import ChildTraces, child_traces
from horai.sdk import django
from horai.sdk.app import Horai
from horai.sdk.functions import Crew
from horai.sdk.job import Job
from horai.sdk.step_writer import StepWriter

FLUSH_WITHIN = timedelta(seconds=1)
"""Time to export the last spans of functions: the worker waits 2 s for the end of the process."""
REASON_LINES = 12
REASON_LIMIT = 1_500
OOM_SCORE = Path("/proc/self/oom_score_adj")


def main() -> None:
    """Run a child. Its arguments are the file descriptor of its socket, and the app."""
    line = LogLine(socket.socket(fileno=int(sys.argv[1])))
    os.register_at_fork(after_in_child=line.cut)  # a copy forked by a function must not send messages
    faulthandler.enable()
    with suppress(AttributeError):  # if there is no stdout
        cast("io.TextIOWrapper", sys.stdout).reconfigure(line_buffering=True)  # keep the output if the process dies
    with suppress(OSError):
        OOM_SCORE.write_text("1000")  # when memory runs out, the kernel kills this process before the worker
    with asyncio.Runner() as runner:
        service = Service(line, runner.get_loop())
        service.start()
        try:
            app = load(sys.argv[2])
        except BaseException:
            line.send(Unfit(last_lines(traceback.format_exc())))
            sys.exit(1)
        write_to_stderr()  # after the import: an application may set up `logging` itself
        service.traces = child_traces(os.environ)  # as well: an application may set up OpenTelemetry itself
        runner.run(service.serve(app))


def load(name: str) -> Horai:
    """Import and return the application called `module:name`."""
    module, _, path = name.partition(":")
    django.set_up()
    found = reduce(getattr, path.split("."), importlib.import_module(module))
    if not isinstance(found, Horai):
        raise TypeError(f"{name} is not a Horai application")
    return found


class Service:
    """Reads the worker's messages and runs the calls that it sends."""

    def __init__(self, line: LogLine, loop: asyncio.AbstractEventLoop) -> None:
        self._line = line
        self._loop = loop
        self._reports = Reports(line, loop)
        self._crew = Crew(1, self._reports)
        if url := os.environ.get("HORAI_DATABASE_URL"):
            self._crew.steps = StepWriter(StageConnection(url, "horai steps"))
        self._calls: asyncio.Queue[Begin | None] = asyncio.Queue()
        self._over = (0, 0)
        self.traces: ChildTraces | None = None

    def start(self) -> None:
        """Start the thread that reads messages. From now on the process ends with its worker."""
        threading.Thread(target=self._listen, name="horai-worker", daemon=True).start()

    async def serve(self, app: Horai) -> None:
        """Serve calls until the worker sends `Leave`. The hooks and resources of the app are those of this process."""
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(app.lifecycle.opened())
            except BaseException:
                self._line.send(Unfit(last_lines(traceback.format_exc())))
                sys.exit(1)
            await self._serve(app)

    async def _serve(self, app: Horai) -> None:
        self._line.send(Ready())
        while (asked := await self._calls.get()) is not None:
            call = call_of(asked)
            self._reports.begin(call)
            self._line.send(Begun())
            self._loop.call_soon(self._claim_over)  # the message may have arrived before the instance existed
            self._reports.end(ended(await self._outcome(app.jobs.get(asked.handler), call)))
        with suppress(Exception):
            await app.close()
        if self.traces is not None:
            self.traces.queue.close(FLUSH_WITHIN)

    async def _outcome(self, job: Job[..., Any] | None, call: Call) -> Outcome:
        if job is None:
            return FailedRetryable(
                "HANDLER_MISSING", "The code has changed since the worker read it: it has no such job."
            )
        if self.traces is None or call.traceparent is None:
            return await outcome_of(job.executor(self._crew).run(call))
        leave = self.traces.enter(call.traceparent)
        try:
            return await outcome_of(job.executor(self._crew).run(call))
        finally:
            leave()

    def _listen(self) -> None:
        try:
            while True:
                self._hear(read(self._line.incoming))
        except (Hangup, OSError):
            pass
        finally:
            os.killpg(0, signal.SIGKILL)

    def _hear(self, message: Message) -> None:
        match message:
            case Begin():
                self._loop.call_soon_threadsafe(self._calls.put_nowait, message)
            case Leave():
                self._loop.call_soon_threadsafe(self._calls.put_nowait, None)
            case ClaimOver(instance_id, fence):
                self._over = (instance_id, fence)
                self._claim_over()
            case _:
                raise Hangup(GIBBERISH)

    def _claim_over(self) -> None:
        self._crew.claim_over(*self._over)


def last_lines(text: str) -> str:
    """Return the end of a traceback that fits into a message."""
    return writable("\n".join(text.splitlines()[-REASON_LINES:])[-REASON_LIMIT:])
