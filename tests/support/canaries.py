"""Secrets of their own for each path, and everything in which they must not be found."""

import os
import subprocess
import zlib
from contextlib import suppress
from pathlib import Path

from embedded_servers import unprivileged

from horai.embedded import binaries
from horai.embedded.area import Area

TALKATIVE = {
    "log_min_duration_statement": "0",
    "log_statement": "all",
    "log_parameter_max_length": "-1",
    "log_parameter_max_length_on_error": "-1",
    "log_error_verbosity": "verbose",
}
"""A server that logs every statement with its parameters: what it never gets, it cannot log."""


class Canaries:
    """A secret of its own for each path, so that a hit names its path."""

    def __init__(self) -> None:
        self.all: list[str] = []

    def __call__(self, path: str) -> str:
        made = f"canary{path}{os.urandom(4).hex()}"
        self.all.append(made)
        return made

    def add(self, secret: str) -> str:
        """Watch a secret that Horai has made."""
        self.all.append(secret)
        return secret

    def in_(self, text: str) -> list[str]:
        """Return the canaries that the text has."""
        return [canary for canary in self.all if canary in text]


def pg_dump(data_dir: Path, url: str) -> str:
    """Return what `pg_dump` writes of the database, with binary columns as text as well."""
    program = binaries.binaries_for(Area.at(data_dir), unprivileged()) / "pg_dump"
    written = subprocess.run([program, "--inserts", url], capture_output=True, check=True).stdout.decode()
    hexes = [part.split("'")[0] for part in written.split("'\\x")[1:]]
    return written + "\n".join(_unpacked(bytes.fromhex(part)) for part in hexes if len(part) % 2 == 0)


def _unpacked(content: bytes) -> str:
    """Return a binary column as text: kept answers are compressed."""
    with suppress(zlib.error):
        content = zlib.decompress(content)
    return content.decode("latin-1")


def process_list() -> str:
    """Return the command lines of all processes, as `ps` shows them."""
    found: list[str] = []
    for directory in Path("/proc").iterdir():
        with suppress(OSError):
            if directory.name.isdigit():
                found.append((directory / "cmdline").read_bytes().decode("utf-8", "replace"))
    return "\n".join(found)
