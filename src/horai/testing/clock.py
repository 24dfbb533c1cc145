"""The virtual time of a test: it stands still until the test moves it, here and in the database."""

from datetime import UTC, datetime, timedelta

from horai.db.clock import DatabaseClock


class VirtualClock(DatabaseClock):
    """The clock of the stages and clients, readable from any thread."""

    def __init__(self, start: datetime) -> None:
        super().__init__()
        self._at = start

    def observe(self, now: datetime, asked_at: float) -> None:
        """Ignore the database's time: it is the virtual time of this clock."""

    @property
    def width(self) -> float:
        """Return 0: the time is known exactly."""
        return 0.0

    def now(self) -> datetime:
        """Return the virtual time."""
        return self._at

    def move_to(self, moment: datetime) -> None:
        """Set the virtual time. Raises `ValueError` for an earlier moment."""
        if moment < self._at:
            raise ValueError(f"{moment.isoformat()} is in the past: the time is {self._at.isoformat()}")
        self._at = moment


def moment_of(written: datetime | str) -> datetime:
    """Parse an instant, a datetime or ISO 8601 text, and return it in UTC. Raises `ValueError` without an offset."""
    moment = datetime.fromisoformat(written) if isinstance(written, str) else written
    if moment.tzinfo is None:
        raise ValueError(
            f"{moment.isoformat()} is not an instant: it needs a UTC offset, such as {moment.isoformat()}Z"
        )
    return moment.astimezone(UTC)


def present_moment() -> datetime:
    """Return the next full second of the real time."""
    return datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1)
