"""Processes of Python that are forked instead of started, from one that has done their imports."""

import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

HORAI = str(Path(sys.executable).parent / "horai")
PR_SET_CHILD_SUBREAPER = 36
_turn = threading.Lock()


@cache
def _nursery() -> tuple["subprocess.Popen[bytes]", socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, str(Path(__file__).with_name("warm.py")), str(theirs.fileno())]
        return subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL), ours


def open_nursery() -> None:
    """Start the process that others are forked from, unless it runs."""
    with _turn:
        _nursery()


def end_nursery() -> None:
    """End the process that others are forked from, if there is one."""
    if _nursery.cache_info().currsize:
        process, line = _nursery()
        line.close()
        process.wait(30)
        _nursery.cache_clear()


class ForkedPopen(subprocess.Popen[str]):
    """`subprocess.Popen` for `[HORAI, …]`, `[sys.executable, "-c", …]` and `[sys.executable, FILE, …]`.

    Threads may start processes at the same time.
    """

    _child_created: bool
    _close_pipe_fds: Callable[..., None]

    def _execute_child(self, *given: Any) -> None:
        """Ask the nursery for the process. Only Linux lets a process adopt the children of others."""
        if sys.platform != "linux":
            return super()._execute_child(*given)  # pyright: ignore
        args, _, _, _, pass_fds, cwd, env, _, _, _, *pipes = given[:16]
        reading, _, _, writing, _, complaining = pipes
        request = {
            "command": list(args),
            "environment": dict(os.environ if env is None else env),
            "directory": str(cwd or Path.cwd()),
            "descriptors": [0, 1, 2, *pass_fds],
            "is_session": given[-2],
        }
        streams = [own if end == -1 else end for own, end in enumerate((reading, writing, complaining))]
        with _turn:
            _, line = _nursery()
            _adopt(is_on=True)
            try:
                socket.send_fds(line, [json.dumps(request).encode()], [*streams, *pass_fds])
                self.pid = int(line.recv(32))
            finally:
                _adopt(is_on=False)
        self._child_created = True
        return self._close_pipe_fds(*pipes)


def _adopt(*, is_on: bool) -> None:
    """Take over, or stop to take over, the children of processes below this one that end before them."""
    assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(is_on), 0, 0, 0) == 0


FORKING = SimpleNamespace(Popen=ForkedPopen, DEVNULL=subprocess.DEVNULL)
"""Stands in for the module `subprocess` where a module of Horai starts processes."""


class Forked(ForkedPopen):
    """`horai` with these arguments, or the `main` of a module; its errors are added to `log`."""

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], log: Path, module: str | None = None
    ) -> None:
        command = (
            [HORAI] if module is None else [sys.executable, "-c", f"import sys, {module} as m; m.main(sys.argv[1:])"]
        )
        known = os.pathsep.join([str(Path(__file__).parent), environment.get("PYTHONPATH", "")])
        with log.open("a") as errors:
            super().__init__(
                [*command, *arguments],
                env=environment if module is None else {**environment, "PYTHONPATH": known},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
