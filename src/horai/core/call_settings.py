"""The settings of one call: its concurrency key, its queue, its priority, and the time at which it expires.

An instance without a queue or a priority of its own has those of its job. No attempt of an instance begins when it has
expired.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from horai.core.call_windows import span_between
from horai.core.errors import Invalid
from horai.core.job import QUEUE, Priority
from horai.text import Hint, Wrong, mismatch

SHORTEST_LIFE = timedelta(milliseconds=1)
LONGEST_LIFE = timedelta(days=365)
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = datetime(9000, 1, 1, tzinfo=UTC)

Expires = datetime | timedelta | float | str | None
"""An instant, or a duration that counts from the time of the instance: a text such as "10m", seconds, or a timedelta."""


@dataclass(frozen=True, slots=True)
class CallExpiry:
    """The end of the time in which an instance may start: an instant, or a duration from the time of the instance."""

    at: datetime | None = None
    after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class CallSettings:
    """The settings of one call; None stands for what the instance has without it."""

    concurrency_key: str | None = None
    queue: str | None = None
    priority: Priority | None = None
    expiry: CallExpiry | None = None

    @property
    def is_empty(self) -> bool:
        """Return whether the call has no settings."""
        return self.concurrency_key is None and not self.is_placed

    @property
    def is_placed(self) -> bool:
        """Return whether the call has settings other than a concurrency key."""
        return self.queue is not None or self.priority is not None or self.expiry is not None

    @property
    def rank(self) -> int | None:
        """Return the number of the priority; None without one."""
        return None if self.priority is None else int(self.priority)

    @property
    def expires_at(self) -> datetime | None:
        """Return the instant at which the instance expires; None without one."""
        return None if self.expiry is None else self.expiry.at

    @property
    def expires_after(self) -> timedelta | None:
        """Return how long after its time the instance expires; None without a duration."""
        return None if self.expiry is None else self.expiry.after


NO_SETTINGS = CallSettings()


def call_settings(
    concurrency_key: str | None, queue: object, priority: object, expires: Expires, field: str = ""
) -> CallSettings:
    """Return the settings of a call with a checked concurrency key. `field` precedes the names of the options in errors."""
    if concurrency_key is None and queue is None and priority is None and expires is None:
        return NO_SETTINGS
    return CallSettings(
        concurrency_key,
        _queue_of(queue, f"{field}queue"),
        _priority_of(priority, f"{field}priority"),
        expiry_of(expires, f"{field}expires"),
    )


def _queue_of(given: object, field: str) -> str | None:
    if given is None:
        return None
    if not isinstance(given, str):
        raise Invalid.field(field, Wrong.NOT_OF_TYPE(expected="a string", given=type(given).__name__))
    if not QUEUE.fullmatch(given):
        raise Invalid.field(field, mismatch(given, QUEUE))
    return given


def _priority_of(given: object, field: str) -> Priority | None:
    if given is None:
        return None
    names = [priority.name for priority in Priority]
    if not isinstance(given, str) or given not in names:
        raise Invalid.field(field, Wrong.NOT_ONE_OF(value=str(given)[:40], allowed=", ".join(names)))
    return Priority[given]


def expiry_of(given: Expires, field: str = "expires") -> CallExpiry | None:
    """Return the expiry that is given as a time or a duration; None without one. Raises `Invalid`."""
    match given:
        case None:
            return None
        case datetime():
            return CallExpiry(at=_checked_instant(given, field))
        case str() if "-" in given:
            return CallExpiry(at=_checked_instant(_instant(given, field), field))
        case _:
            return CallExpiry(after=span_between(field, given, SHORTEST_LIFE, LONGEST_LIFE))


def _instant(text: str, field: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise Invalid.field(field, Wrong.NOT_AN_EXPIRY(text=text[:64])) from None


def _checked_instant(at: datetime, field: str) -> datetime:
    if at.tzinfo is None:
        raise Invalid.field(field, Wrong.NO_ZONE(), Hint.GIVE_ZONE())
    if not _EARLIEST <= at < _LATEST:
        raise Invalid.field(field, Wrong.NOT_BETWEEN(low="1970", high="9000"))
    return at
