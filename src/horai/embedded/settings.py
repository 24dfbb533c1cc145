"""What the caller may choose about the embedded PostgreSQL."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path


def _nothing() -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class EmbeddedSettings:
    """One embedded server. `data_dir` is Horai's alone: it is made when missing, and must be empty or made by Horai."""

    data_dir: Path
    port: int = 5432
    """Only part of the socket's name: there is no TCP port."""
    shared_buffers: str = "128MB"
    max_connections: int = 100
    start_within: timedelta = timedelta(minutes=5)
    """Generous: crash recovery replays up to 2 GB of WAL."""
    stop_within: timedelta = timedelta(seconds=30)
    """For the fast shutdown with its checkpoint; after that, an immediate one, and recovery at the next start."""
    extra: Mapping[str, str] = field(default_factory=_nothing)
    """More of postgresql.conf, such as `log_statement`. What keeps data safe and private cannot be changed here."""


def default_data_dir() -> Path:
    """A directory that works for whoever runs us: for root not its home, which PostgreSQL's user cannot enter."""
    if os.geteuid() == 0:
        return Path("/var/lib/horai")
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "horai"
