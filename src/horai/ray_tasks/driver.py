"""The program of the driver process: it is connected to Ray, submits the worker's calls as tasks and follows them.

It ends with its worker. Ray ends the tasks of a driver that has ended.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import Any

from horai.core.outcome import Lost, NotSent, Outcome
from horai.isolation.frames import (
    Begin,
    Begun,
    CallEnded,
    ClaimOver,
    Hangup,
    Leave,
    NoteFrame,
    Ready,
    Unfit,
    ended,
    heard_as,
    outcome_of,
    pack,
    unpack,
)
from horai.ray_tasks.fates import fate_of
from horai.ray_tasks.messages import FROM_TASK, TO_DRIVER, Drop, Submit, TaskEnded, TaskNote
from horai.ray_tasks.task import attempt

ADDRESS = "HORAI_RAY_DRIVER_ADDRESS"
"""The variable that gives the driver the address of the cluster."""
FORCE_AFTER = 2.0
"""Seconds for a function to end by itself after its timeout. Ray ends its process after that."""
REASON_LIMIT = 1_500
WATCH_EVERY = 2.0
"""Seconds between two looks at the own node."""


def main() -> None:
    """Run a driver. Its arguments are the file descriptor of its socket, and the app."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)
    try:
        ray: Any = import_module("ray")
        ray.init(address=os.environ[ADDRESS], logging_level="warning")
    except BaseException as error:
        connection.sendall(pack(Unfit(f"{type(error).__name__}: {str(error)[:REASON_LIMIT]}")))
        os._exit(1)  # Ray may leave threads behind that keep the process alive
    asyncio.run(_serve(ray, sys.argv[2], connection))
    ray.shutdown()


async def _serve(ray: Any, app: str, connection: socket.socket) -> None:
    reader, writer = await asyncio.open_unix_connection(sock=connection)
    driver = Driver(ray, app, writer)
    watch = asyncio.create_task(_watch(ray, writer))
    try:
        await driver.serve(reader)
    except Hangup:
        os._exit(1)
    watch.cancel()


async def _watch(ray: Any, writer: asyncio.StreamWriter) -> None:
    """End the driver when the node that it is connected to is gone: Ray itself may not notice after a new head started.

    While the head does not answer, Ray waits for it, and ends the process after `RAY_gcs_rpc_server_reconnect_timeout_s`.
    """
    own = ray.get_runtime_context().get_node_id()
    while True:
        with suppress(Exception):  # the head does not answer
            if not is_alive(own, await asyncio.to_thread(ray.nodes)):
                break
        await asyncio.sleep(WATCH_EVERY)
    writer.write(pack(Unfit("The Ray node of this machine is gone.")))
    with suppress(OSError):
        await writer.drain()
    os._exit(1)


def is_alive(node: str, nodes: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether a node is among the living `nodes` of the cluster."""
    return any(each["NodeID"] == node and each["Alive"] for each in nodes)


@dataclass(slots=True, eq=False)
class _Task:
    """A task that was submitted and has not ended."""

    asked: Submit
    stream: Any = None
    is_over: bool = False
    is_late: bool = False
    timer: asyncio.TimerHandle | None = None


class Driver:
    """The tasks of a worker, by instance and fence."""

    def __init__(self, ray: Any, app: str, writer: asyncio.StreamWriter) -> None:
        self._ray = ray
        self._app = app
        self._writer = writer
        self._paths = [*map(os.path.abspath, sys.path)]
        self._remote = ray.remote(max_retries=0, num_returns="streaming")(attempt)
        self._tasks: dict[tuple[int, int], _Task] = {}
        self._functions: dict[str, Any] = {}
        """The remote function of each handler, with its resources."""
        self._followers: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader) -> None:
        """Serve the worker until it sends `Leave`. Raises `Hangup` if it is gone."""
        self._say(Ready())
        while True:
            match await heard_as(TO_DRIVER, reader):
                case Submit() as asked:
                    self._submit(asked)
                case ClaimOver(instance_id, fence):
                    self._cancel(instance_id, fence, force=False)
                case Drop(instance_id, fence):
                    self._cancel(instance_id, fence, force=True)
                case Leave():
                    return

    def _submit(self, asked: Submit) -> None:
        """Submit a task at once, so that a cancellation in the next message finds it."""
        task = _Task(asked)
        try:
            begin = Begin(asked.handler, asked.fields)
            task.stream = self._function(asked).remote(self._app, begin, asked.timeout, self._paths)
        except Exception as error:
            self._end(task, _fate(task, error))
            return
        self._tasks[asked.instance_id, asked.fence] = task
        follower = asyncio.create_task(self._follow(task))
        self._followers.add(follower)
        follower.add_done_callback(self._followers.discard)

    def _cancel(self, instance_id: int, fence: int, *, force: bool) -> None:
        """Tell a task, and the tasks that it has submitted, that the claim is over; or end its process."""
        if (task := self._tasks.get((instance_id, fence))) is not None:
            task.is_over = True
            self._ray.cancel(task.stream, force=force, recursive=True)

    async def _follow(self, task: _Task) -> None:
        try:
            outcome = await self._outcome(task)
        except Exception as error:
            outcome = _fate(task, error)
        finally:
            del self._tasks[task.asked.instance_id, task.asked.fence]
            if task.timer is not None:
                task.timer.cancel()
        self._end(task, outcome)

    def _end(self, task: _Task, outcome: Outcome | Lost) -> None:
        self._say(TaskEnded(task.asked.instance_id, task.asked.fence, ended(outcome)))

    async def _outcome(self, task: _Task) -> Outcome | Lost:
        """Pass the notes of a task on. Return its outcome after its end; raises an error of Ray if it has none."""
        asked, outcome = task.asked, None
        async for reference in task.stream:
            match unpack(FROM_TASK, await reference):
                case Begun():
                    self._limit(task)
                case NoteFrame(progress, message):
                    self._say(TaskNote(asked.instance_id, asked.fence, progress, message))
                case CallEnded() as answer:
                    outcome = outcome_of(answer)
        return outcome or (NotSent() if task.is_over else Lost("The task gave no outcome."))

    def _function(self, asked: Submit) -> Any:
        if asked.handler not in self._functions:
            self._functions[asked.handler] = self._remote.options(name=asked.handler, **asked.options)
        return self._functions[asked.handler]

    def _limit(self, task: _Task) -> None:
        """Start the time of the function. The function knows its timeout too, and should end before this one acts."""
        if task.asked.timeout is not None:
            loop = asyncio.get_running_loop()
            task.timer = loop.call_later(task.asked.timeout + FORCE_AFTER, self._time_over, task)

    def _time_over(self, task: _Task) -> None:
        task.is_late = True
        self._ray.cancel(task.stream, force=True, recursive=True)

    def _say(self, message: Ready | TaskNote | TaskEnded) -> None:
        self._writer.write(pack(message))


def _fate(task: _Task, error: Exception) -> Outcome | Lost:
    """Return the outcome of a task that ended with an error of Ray."""
    names = [each.__name__ for each in type(error).__mro__]
    timeout = task.asked.timeout if task.is_late else None
    return fate_of(
        names,
        _said(error),
        timeout=None if timeout is None else timedelta(seconds=timeout),
        is_over=task.is_over,
    )


def _said(error: Exception) -> str:
    """Return the text of an error of Ray: for an error in a task, the error itself instead of a page about it."""
    cause = getattr(error, "cause", None)
    return f"{type(cause).__name__}: {cause}" if isinstance(cause, BaseException) else str(error)
