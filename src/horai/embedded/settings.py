"""The settings of the embedded PostgreSQL."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path


def _nothing() -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class EmbeddedSettings:
    """One embedded server. Only Horai uses `data_dir`: created if missing, otherwise empty or created by Horai."""

    data_dir: Path
    port: int = 5432
    """Only part of the name of the socket: there is no TCP port."""
    shared_buffers: str = "128MB"
    max_connections: int = 100
    start_within: timedelta = timedelta(minutes=5)
    """Long, because crash recovery replays up to 2 GB of WAL."""
    stop_within: timedelta = timedelta(seconds=30)
    """Limit of the fast shutdown with its checkpoint; then an immediate shutdown, and recovery at the next start."""
    extra: Mapping[str, str] = field(default_factory=_nothing)
    """More of postgresql.conf, such as `log_statement`. Settings that keep data safe and private cannot be changed."""


def default_data_dir() -> Path:
    """Return a directory that works for the current user. For root, not its home: PostgreSQL's user cannot enter it."""
    if os.geteuid() == 0:
        return Path("/var/lib/horai")
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "horai"
