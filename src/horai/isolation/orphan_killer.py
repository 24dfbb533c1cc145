"""The process that kills the process groups that a killed worker leaves behind.

A worker that is killed cannot clean up. A child whose interpreter is busy in foreign code does not notice that its
socket has ended, and neither do the processes that the child has started. So one small process, which runs no
application code, knows the process groups of all children and reads from a pipe that ends with the worker. This file is
also its program: it needs only the standard library.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress


class OrphanKiller:
    """The worker's side of the orphan killer, usable from any thread. It starts the process with the first group."""

    def __init__(self) -> None:
        self._groups: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def watch(self, group: int) -> None:
        """Watch a group: from now on it dies with this process. Raises OSError if that cannot be guaranteed."""
        with self._lock:
            self._groups.add(group)
            if not self._tell(f"+{group}\n"):
                self._start()

    def forget(self, group: int) -> None:
        """Stop watching a dead group. Call this before its leader is reaped: after that, its number may be reused."""
        with self._lock:
            self._groups.discard(group)
            self._tell(f"-{group}\n")

    def close(self) -> None:
        """End the process, which kills the groups that are still watched."""
        with self._lock:
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.close()
                self._process.wait()
                self._process = None

    def _start(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - ourselves
            [sys.executable, "-I", "-S", __file__],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # Ctrl-C at the terminal and signals to the worker's group must not reach it
        )
        self._tell("".join(f"+{group}\n" for group in self._groups))

    def _tell(self, line: str) -> bool:
        """Write a line to the process; return whether one runs that reads it."""
        if self._process is None or self._process.stdin is None:
            return False
        try:
            self._process.stdin.write(line.encode())
        except OSError:
            self._process.stdin.close()
            self._process.wait()
            self._process = None
        return self._process is not None


def keep_watch(lines: Iterable[str]) -> None:
    """Read groups until the worker is gone, then kill every group that is left."""
    groups: set[int] = set()
    for line in lines:
        number = int(line[1:])
        (groups.add if line[0] == "+" else groups.discard)(number)
    for group in groups:
        with suppress(OSError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    keep_watch(sys.stdin)
