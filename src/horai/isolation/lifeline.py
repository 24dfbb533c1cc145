"""The process of a child: its start, the end of its whole group, and its exit status."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress

from horai.isolation.orphan_killer import OrphanKiller

PROGRAM = "import json, sys; sys.path[:] = json.loads(sys.argv[3]); from horai.isolation.service import main; main()"


class Lifeline:
    """A process that leads its own session. A thread waits for its end, kills its group and sets `ended`."""

    def __init__(
        self,
        app: str,
        end: socket.socket,
        environment: Mapping[str, str],
        orphan_killer: OrphanKiller,
        program: str = PROGRAM,
    ) -> None:
        self._orphan_killer = orphan_killer
        self._lock = threading.Lock()
        self._is_over = False
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[int] = self._loop.create_future()
        """The exit code, or minus the signal that killed the process. Set after its group is killed."""
        self._process = subprocess.Popen(  # noqa: S603 - ourselves, with the app that the worker was given
            [sys.executable, "-c", program, str(end.fileno()), app, json.dumps(sys.path)],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            pass_fds=[end.fileno()],
            start_new_session=True,
        )
        self.pid = self._process.pid
        try:
            orphan_killer.watch(self.pid)
        except OSError:
            self.kill()
            raise
        finally:
            threading.Thread(target=self._attend, name=f"horai-child-{self.pid}", daemon=True).start()

    def kill(self) -> None:
        """Send SIGKILL to the whole group. Do nothing if the process has ended."""
        with self._lock:
            if not self._is_over:
                _kill(self.pid)

    def _attend(self) -> None:
        """Wait for the end of the process, kill its group, then reap it: until then its number is not reused."""
        if hasattr(os, "waitid"):
            with suppress(ChildProcessError):
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        else:
            self._process.wait()
        with self._lock:
            _kill(self.pid)
            self._is_over = True
        self._orphan_killer.forget(self.pid)
        status = self._process.wait()
        with suppress(RuntimeError):  # the loop has ended, and with it every waiter
            self._loop.call_soon_threadsafe(self._tell, status)

    def _tell(self, status: int) -> None:
        if not self.ended.done():
            self.ended.set_result(status)


def describe(status: int) -> str:
    """Return how a process ended, in words: `exit code 3`, `signal 11 (SIGSEGV)`."""
    if status >= 0:
        return f"exit code {status}"
    number = -status
    name = signal.Signals(number).name if number in set(signal.Signals) else "unknown"
    hint = ": killed, perhaps because memory ran out" if number == signal.SIGKILL else ""
    return f"signal {number} ({name}){hint}"


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # on some systems a zombie alone is not a group
        os.killpg(group, signal.SIGKILL)
