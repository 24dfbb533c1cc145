"""`horai` as a user calls it: a process with its own environment, its two streams and its exit code."""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

HORAI = str(Path(sys.executable).parent / "horai")


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Stdout, which must be one JSON value and nothing else."""
        return json.loads(self.out)

    def failed_with(self, code: int, *lines: str) -> bool:
        """Whether it said exactly these lines on stderr and nothing on stdout."""
        return (self.code, self.out, self.err.splitlines()) == (code, "", list(lines))


class Terminal:
    """Runs `horai` with nothing of the caller's own settings."""

    def __init__(self, **environment: str) -> None:
        self.environment = clean_environment() | environment
        self.directory = Path.cwd()

    def at(self, directory: Path) -> Self:
        """The same, in another directory."""
        self.directory = directory
        return self

    def __call__(self, *arguments: str, stdin: str = "", **environment: str) -> Ended:
        with tempfile.TemporaryDirectory() as place:
            files = {name: Path(place) / name for name in ("stdin", "stdout", "stderr")}
            for name, file in files.items():
                file.write_text(stdin if name == "stdin" else "")
            request = {"arguments": arguments, "environment": self.environment | environment}
            request |= {"directory": str(self.directory)}
            code = _ask(json.dumps(request | {name: str(file) for name, file in files.items()}))
            return Ended(code, files["stdout"].read_text(), files["stderr"].read_text())


def _ask(request: str) -> int:
    warm = _warm()
    assert warm.stdin is not None
    assert warm.stdout is not None
    warm.stdin.write(request + "\n")
    warm.stdin.flush()
    return int(warm.stdout.readline())


@cache
def _warm() -> "subprocess.Popen[str]":
    command = [sys.executable, str(Path(__file__).with_name("warm.py"))]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def cool_down() -> None:
    """Ends the process that commands are forked from."""
    if _warm.cache_info().currsize:
        _warm().communicate(timeout=30)
        _warm.cache_clear()


def clean_environment() -> dict[str, str]:
    ours = ("HORAI_", "DATABASE_URL", "NO_COLOR", "FORCE_COLOR", "COLUMNS")
    kept = "HORAI_STATE_DIR"  # of this run, not of the machine
    return {name: value for name, value in os.environ.items() if name == kept or not name.startswith(ours)}
