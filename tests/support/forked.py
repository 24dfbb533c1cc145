"""Processes of `horai` that are forked instead of started: for tests that kill many of them."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO


class Nursery:
    """The process that others are forked from."""

    def __init__(self) -> None:
        self._place = tempfile.TemporaryDirectory(prefix="horai-forks-")
        self.exits = Path(self._place.name)
        script = str(Path(__file__).with_name("warm_nodes.py"))
        self._turn = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, script, str(self.exits)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def fork(self, request: Mapping[str, object]) -> int:
        """Return the id of a new process. Threads of a test may ask at the same time."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._turn:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            return int(self._process.stdout.readline())

    def end(self) -> None:
        self._process.communicate(timeout=30)
        self._place.cleanup()


_opening = threading.Lock()


@cache
def _nursery() -> Nursery:
    return Nursery()


def nursery() -> Nursery:
    """Return the one of this test process."""
    with _opening:
        return _nursery()


def end_nursery() -> None:
    """End the process that others are forked from, if there is one."""
    if _nursery.cache_info().currsize:
        nursery().end()
        _nursery.cache_clear()


class ForkedProcess:
    """A process of the nursery, with the part of `subprocess.Popen` that the tests use."""

    def __init__(self, request: Mapping[str, object]) -> None:
        self.pid = nursery().fork(request)

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        with suppress(FileNotFoundError):
            return int((nursery().exits / str(self.pid)).read_text())
        return None

    def wait(self, timeout: float | None = None) -> int:
        deadline = time.monotonic() + (timeout or 60)
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("horai", timeout or 60)
            time.sleep(0.005)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Forked(ForkedProcess):
    """`horai` with these arguments, as `subprocess.Popen` would start it."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        with tempfile.TemporaryDirectory() as place:
            said = Path(place) / "stdout"
            os.mkfifo(said)
            streams = {"stdin": os.devnull, "stdout": str(said), "stderr": str(log)}
            request = {"arguments": arguments, "environment": dict(environment), "directory": str(Path.cwd())}
            super().__init__(request | streams)
            self.stdout: IO[str] | None = said.open()


class ForkedScript(ForkedProcess):
    """A Python script that is spoken to by its stdin and stdout; its stderr is ours."""

    def __init__(self, script: Path, environment: Mapping[str, str], directory: Path) -> None:
        with tempfile.TemporaryDirectory() as place:
            streams = {name: Path(place) / name for name in ("stdin", "stdout")}
            for stream in streams.values():
                os.mkfifo(stream)
            request = {"script": str(script), "arguments": (), "environment": dict(environment)}
            request |= {name: str(path) for name, path in streams.items()}
            super().__init__(request | {"directory": str(directory), "stderr": "/dev/stderr"})
            self.stdin: IO[str] = streams["stdin"].open("w")
            self.stdout: IO[str] = streams["stdout"].open()

    def close(self) -> None:
        """End its stdin, which is how it is asked to end."""
        self.stdin.close()
        self.stdout.close()
