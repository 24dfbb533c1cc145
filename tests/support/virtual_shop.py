"""An application for tests in a virtual time, and the moments of its first days."""

from datetime import UTC, datetime

from horai import Horai

START = datetime(2026, 3, 1, 8, tzinfo=UTC)


def at(hour: int, minute: int = 0, second: float = 0, day: int = 1) -> datetime:
    whole = int(second)
    return datetime(2026, 3, day, hour, minute, whole, round((second - whole) * 1_000_000), tzinfo=UTC)


def application() -> Horai:
    return Horai("shop")
