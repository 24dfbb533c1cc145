"""The threads of functions that are not async: started when needed. They do not keep the process from ending."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeVar

T = TypeVar("T")

_Errand = Callable[[], None]


class Threads:
    """Runs functions in at most `most` threads. A thread that hangs only reduces the number of usable threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._errands: SimpleQueue[_Errand | None] = SimpleQueue()
        self._started = 0
        self._busy = 0
        """Functions submitted and not yet ended. Changed in the event loop only."""

    def run(self, function: Callable[[], T]) -> "asyncio.Future[T]":
        """Run `function` in a thread and return its future. Cancelling the future does not stop the function."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        context = contextvars.copy_context()

        def claimed_job() -> None:
            try:
                value = context.run(function)
            except BaseException as error:  # SystemExit too: it ends a function, never a worker
                _tell(loop, self._ended, future, None, error)
            else:
                _tell(loop, self._ended, future, value, None)

        self._busy += 1
        if self._busy > self._started and self._started < self._most:
            self._started += 1
            threading.Thread(target=self._work, name=f"horai-function-{self._started}", daemon=True).start()
        self._errands.put(claimed_job)
        return future

    def _ended(self, future: "asyncio.Future[T]", value: T | None, error: BaseException | None) -> None:
        self._busy -= 1
        if future.done():
            return
        if error is None:
            future.set_result(value)  # pyright: ignore[reportArgumentType] — T may be None
        elif isinstance(error, StopIteration):
            future.set_exception(RuntimeError("the function raised StopIteration"))
        else:
            future.set_exception(error)

    def _work(self) -> None:
        while (claimed_job := self._errands.get()) is not None:
            claimed_job()

    def close(self) -> None:
        """End idle threads. A thread that runs a function ends after it, or with the process."""
        for _ in range(self._started):
            self._errands.put(None)


def _tell(
    loop: asyncio.AbstractEventLoop,
    ended: Callable[["asyncio.Future[T]", T | None, BaseException | None], None],
    future: "asyncio.Future[T]",
    value: T | None,
    error: BaseException | None,
) -> None:
    try:
        loop.call_soon_threadsafe(ended, future, value, error)
    except RuntimeError:
        return  # the loop has ended, and with it every waiter
