"""The time of a test: it stands still until it is moved, here and in the database alike."""

from datetime import UTC, datetime, timedelta

from horai.db.clock import DatabaseClock


class VirtualClock(DatabaseClock):
    """Tells the virtual time to the stages and to clients, of any thread."""

    def __init__(self, start: datetime) -> None:
        super().__init__()
        self._at = start

    def observe(self, now: datetime) -> None:
        """The database knows no other time than the one it was told here."""

    def now(self) -> datetime:
        """The moment that it is."""
        return self._at

    def move_to(self, moment: datetime) -> None:
        """Time goes on, never back."""
        if moment < self._at:
            raise ValueError(f"{moment.isoformat()} is over: it is {self._at.isoformat()}")
        self._at = moment


def moment_of(written: datetime | str) -> datetime:
    """An instant as a datetime or as ISO 8601 text; ValueError without a UTC offset."""
    moment = datetime.fromisoformat(written) if isinstance(written, str) else written
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} names no instant: it needs a UTC offset, such as {moment.isoformat()}Z")
    return moment.astimezone(UTC)


def present_moment() -> datetime:
    """The coming full second of the real time."""
    return datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1)
