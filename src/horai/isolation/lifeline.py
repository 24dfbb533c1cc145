"""The process of a child: how it is started, how its whole group is ended, and how it came to its end."""

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

from horai.isolation.orphan_killer import Warden

PROGRAM = "import json, sys; sys.path[:] = json.loads(sys.argv[3]); from horai.isolation.service import main; main()"


class Lifeline:
    """A running process that leads its own session. A thread waits for its end, kills what it left, and tells."""

    def __init__(self, app: str, end: socket.socket, environment: Mapping[str, str], warden: Warden) -> None:
        self._warden = warden
        self._lock = threading.Lock()
        self._is_over = False
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[int] = self._loop.create_future()
        """Its exit code, or minus the signal that killed it, once its group is killed."""
        self._process = subprocess.Popen(  # noqa: S603 - ourselves, with the app that the worker was given
            [sys.executable, "-c", PROGRAM, str(end.fileno()), app, json.dumps(sys.path)],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            pass_fds=[end.fileno()],
            start_new_session=True,
        )
        self.pid = self._process.pid
        try:
            warden.watch(self.pid)
        except OSError:
            self.kill()
            raise
        finally:
            threading.Thread(target=self._attend, name=f"horai-child-{self.pid}", daemon=True).start()

    def kill(self) -> None:
        """SIGKILL for all of its group, at once; nothing when it has ended."""
        with self._lock:
            if not self._is_over:
                _kill(self.pid)

    def _attend(self) -> None:
        """The group is killed while its leader is not yet waited for: until then the number is nobody else's."""
        if hasattr(os, "waitid"):
            with suppress(ChildProcessError):
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        else:
            self._process.wait()
        with self._lock:
            _kill(self.pid)
            self._is_over = True
        self._warden.forget(self.pid)
        status = self._process.wait()
        with suppress(RuntimeError):  # the loop has ended, and so has everyone who would want to know
            self._loop.call_soon_threadsafe(self._tell, status)

    def _tell(self, status: int) -> None:
        if not self.ended.done():
            self.ended.set_result(status)


def describe(status: int) -> str:
    """How a process ended, in words: `exit code 3`, `signal 11 (SIGSEGV)`."""
    if status >= 0:
        return f"exit code {status}"
    number = -status
    name = signal.Signals(number).name if number in set(signal.Signals) else "unknown"
    hint = ": killed, perhaps for want of memory" if number == signal.SIGKILL else ""
    return f"signal {number} ({name}){hint}"


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # a zombie alone is no group on some systems
        os.killpg(group, signal.SIGKILL)
