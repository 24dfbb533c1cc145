"""The event loop of code that has none: one per process, in a thread of its own."""

import asyncio
import os
import selectors
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


class Portal:
    """An event loop in a daemon thread, started on first use, and again in a forked process."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._selector: selectors.BaseSelector | None = None
        self._lock = threading.Lock()
        self._inherited: list[object] = []

    def run(self, claimed_job: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine in the event loop and return its result."""
        with self._lock:
            if self._loop is None:
                self._selector = selectors.DefaultSelector()
                self._loop = asyncio.SelectorEventLoop(self._selector)
                threading.Thread(target=self._loop.run_forever, name="horai-sync", daemon=True).start()
        return asyncio.run_coroutine_threadsafe(claimed_job, self._loop).result()

    def leave_to_parent(self) -> None:
        """Forget the loop after a fork: its thread and its connections are the parent's.

        The child's copies of the descriptors become /dev/null. Closing the loop instead would unregister its sockets
        from the epoll instance, which both processes share, and the parent would no longer hear from its database. The
        objects are kept, so that no destructor closes a descriptor that the child has given to another file.
        """
        loop, selector = self._loop, self._selector
        self._loop, self._selector, self._lock = None, None, threading.Lock()
        if loop is None or selector is None:
            return
        self._inherited += [loop, selector]
        nowhere = os.open(os.devnull, os.O_RDWR)
        shared: list[int] = [key.fd for key in selector.get_map().values()]
        own = getattr(selector, "fileno", None)  # epoll and kqueue have a descriptor, select has none
        if own is not None:
            shared.append(own())
        for descriptor in shared:
            with suppress(OSError):
                os.dup2(nowhere, descriptor, inheritable=False)
        os.close(nowhere)


PORTAL = Portal()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=PORTAL.leave_to_parent)
