"""The clock of this machine, for requests that another server compares with its own clock, and to check the database's."""

from datetime import UTC, datetime


def wall_clock() -> datetime:
    """Return the time of this machine. All decisions about rows take that of the database."""
    return datetime.now(UTC)
