"""Durations as people write them: `500ms`, `5s`, `1h30m`, `10d`."""

import re
from datetime import timedelta

from horai.text import Wrong

LONGEST = timedelta(days=3653)
"""Ten years: a longer duration is a typing error."""

ACCEPTED = "write a number and a unit, such as 500ms, 5s, 10m, 24h, 10d, or several from large to small: 1h30m"

_LONGEST_TEXT = 64
_SCALE = 10**_LONGEST_TEXT
"""Numbers are added as multiples of 1 / `_SCALE`: no text has more decimals."""
_MILLISECOND = timedelta(milliseconds=1)
_MILLISECONDS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_DURATION = re.compile("".join(rf"(?:(?P<{unit}>{_NUMBER}){unit})?" for unit in _MILLISECONDS))


def parse_duration(text: str) -> timedelta:
    """Return the duration of `text`, in whole milliseconds. Raise ValueError, with the accepted forms, otherwise."""
    found = _DURATION.fullmatch(text) if len(text) <= _LONGEST_TEXT else None
    if not text or found is None:
        raise ValueError(Wrong.NOT_A_DURATION(text=text[:_LONGEST_TEXT]))
    exact, finer = divmod(
        sum(_scaled(found[unit]) * size for unit, size in _MILLISECONDS.items() if found[unit]), _SCALE
    )
    if finer:
        raise ValueError(Wrong.TOO_FINE(text=text))
    if exact > LONGEST // _MILLISECOND:
        raise ValueError(Wrong.TOO_LONG_A_TIME(text=text, days=LONGEST.days))
    return timedelta(milliseconds=exact)


def _scaled(number: str) -> int:
    whole, _, decimals = number.partition(".")
    return int(whole + decimals) * 10 ** (_LONGEST_TEXT - len(decimals))


def format_duration(duration: timedelta) -> str:
    """Return the canonical text of `duration`, which `parse_duration` reads (`90m` and `1h30m` both become `1h30m`)."""
    remaining, finer = divmod(duration, _MILLISECOND)
    if finer or not timedelta(0) <= duration <= LONGEST:
        raise ValueError(f"{duration} is no duration of whole milliseconds between 0s and {LONGEST.days}d")
    parts: list[str] = []
    for unit, size in _MILLISECONDS.items():
        count, remaining = divmod(remaining, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
