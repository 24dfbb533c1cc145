"""`horai` as a user calls it: a process with its own environment, its two streams and its exit code."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import Any, Self

from forked import HORAI, ForkedPopen


@dataclass(frozen=True, slots=True)
class Ended:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Stdout, which must be one JSON value and nothing else."""
        return json.loads(self.out)

    def failed_with(self, code: int, *lines: str) -> bool:
        """Return true if the command exited with `code`, wrote exactly these lines to stderr and nothing to stdout."""
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
        with ForkedPopen(
            [HORAI, *arguments],
            env=self.environment | environment,
            cwd=self.directory,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            text=True,
        ) as process:
            out, err = process.communicate(stdin)
        return Ended(process.returncode, out, err)


def clean_environment() -> dict[str, str]:
    ours = ("HORAI_", "DATABASE_URL", "NO_COLOR", "FORCE_COLOR", "COLUMNS")
    kept = "HORAI_STATE_DIR"  # of this run, not of the machine
    found = {name: value for name, value in os.environ.items() if name == kept or not name.startswith(ours)}
    return found | {"XDG_CONFIG_HOME": "/nonexistent"}  # not the keys that this user has stored
