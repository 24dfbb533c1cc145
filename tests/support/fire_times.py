"""The fires of a cron, as a person reads them from a wall clock."""

from datetime import datetime

from horai.time.cron import DstPolicy, Gap, Overlap, next_fire, parse
from horai.time.zones import zone


def fires(
    cron: str, place: str, after: str, count: int = 1, *, gap: Gap = "shift", overlap: Overlap = "first"
) -> list[str]:
    """The next `count` fires later than `after`: local time with its UTC offset, seconds only where there are some."""
    where, parsed, policy = zone(place), parse(cron), DstPolicy(gap, overlap)
    base = datetime.fromisoformat(after)
    found: list[str] = []
    for _ in range(count):
        fire = next_fire(parsed, where, base, policy)
        if fire is None:
            break
        assert fire > base
        base = fire
        found.append(read(fire, place))
    return found


def read(fire: datetime, place: str) -> str:
    """An instant as the clocks of `place` show it."""
    local = fire.astimezone(zone(place))
    return local.isoformat(" ", "seconds" if local.second else "minutes")
