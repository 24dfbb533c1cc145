"""Time zones by their IANA name."""

from difflib import get_close_matches
from functools import cache, lru_cache
from zoneinfo import ZoneInfo, available_timezones

_NO_PLACES = frozenset({"Factory", "localtime"})
"""Names that mean another thing on each machine, or nothing."""


@lru_cache(maxsize=1024)
def zone(name: str) -> ZoneInfo:
    """The zone called `name`, spelt as IANA spells it; ValueError, with the nearest name, for any other text.

    Only listed names are looked up, so that no text can reach another file.
    """
    if name not in _known():
        raise ValueError(f"unknown time zone {name[:64]!r}: {_suggestion(name[:64])}")
    return ZoneInfo(name)


@cache
def _known() -> frozenset[str]:
    return frozenset(available_timezones()) - _NO_PLACES


def _suggestion(name: str) -> str:
    """The known name nearest to `name`, whatever its case and even if its region was left out."""
    by_name = {known.casefold(): known for known in sorted(_known())}
    by_city = {folded.rpartition("/")[2]: known for folded, known in by_name.items()}
    wanted = name.casefold().replace(" ", "_")
    for candidates in (by_name, by_city):
        if close := get_close_matches(wanted, candidates, n=1, cutoff=0.7):
            return f"did you mean {candidates[close[0]]}?"
    return "write an IANA name such as Europe/Berlin or UTC"
