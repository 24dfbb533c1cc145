"""The start rate of a bulk request: how many instances start per period, and when the first one does."""

from datetime import datetime

from horai.core.errors import Invalid
from horai.core.queue import Rate, parse_rate
from horai.operations.spread_starts import Spread
from horai.text import Hint, Wrong, told_by


def rate_of(written: str | int | None) -> Rate | None:
    """Return the rate that a request gives, if any. Raises `Invalid` if it cannot be read."""
    try:
        return None if written is None else parse_rate(written)
    except ValueError as error:
        raise Invalid.field("rate", told_by(error), Hint.WRITE_RATES()) from error


def spread_of(rate: str | int | None, start_at: datetime | None) -> Spread | None:
    """Return how a request spreads its starts; None without a rate. Raises `Invalid` for a time without a rate."""
    found = rate_of(rate)
    if found is None:
        if start_at is not None:
            raise Invalid.field("startAt", Wrong.ONLY_WITH(kinds="rate"))
        return None
    return Spread(found, start_at)
