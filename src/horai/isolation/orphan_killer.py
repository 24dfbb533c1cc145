"""The process that kills what a killed worker leaves behind.

A worker that is killed cannot clean up, and a child whose interpreter is busy in foreign code does not notice that its
socket has ended; nor does what the child has started. So one small process, which runs nobody's code, knows the process
groups of all children and reads from a pipe that ends with the worker. This file is also its program: it needs nothing but
the standard library.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress


class Warden:
    """Watches process groups from a process of its own; from any thread. It is started when there is one to watch."""

    def __init__(self) -> None:
        self._groups: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def watch(self, group: int) -> None:
        """The group dies with this process from now on. OSError when that cannot be promised."""
        with self._lock:
            self._groups.add(group)
            if not self._tell(f"+{group}\n"):
                self._start()

    def forget(self, group: int) -> None:
        """The group is dead. To be told before its leader is waited for, as the number may then be anybody's."""
        with self._lock:
            self._groups.discard(group)
            self._tell(f"-{group}\n")

    def close(self) -> None:
        """Ends the process, which kills what is still watched."""
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
            start_new_session=True,  # Ctrl-C at the terminal, and signals to the worker's group, are not for it
        )
        self._tell("".join(f"+{group}\n" for group in self._groups))

    def _tell(self, line: str) -> bool:
        """Whether there is a warden that hears it."""
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
    """Returns when the worker is gone and all that it left is killed."""
    groups: set[int] = set()
    for line in lines:
        number = int(line[1:])
        (groups.add if line[0] == "+" else groups.discard)(number)
    for group in groups:
        with suppress(OSError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    keep_watch(sys.stdin)
