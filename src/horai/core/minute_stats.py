"""What was done in each minute: counts that a process keeps, and the series that those of all make."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from horai.core.health import EngineHealth, Reading

MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class MinuteCounts:
    """Attempts that began, and what attempts came to; `failed` has the dead ones too. `delays` as in a `Reading`."""

    started: int = 0
    succeeded: int = 0
    failed: int = 0
    dead: int = 0
    delays: tuple[tuple[int, int], ...] = ()

    def since(self, before: "MinuteCounts") -> "MinuteCounts":
        """What has come since an earlier count."""
        known = dict(before.delays)
        return MinuteCounts(
            self.started - before.started,
            self.succeeded - before.succeeded,
            self.failed - before.failed,
            self.dead - before.dead,
            tuple((which, more) for which, count in self.delays if (more := count - known.get(which, 0))),
        )

    def and_(self, other: "MinuteCounts") -> "MinuteCounts":
        """Both together."""
        total = dict(self.delays)
        for which, count in other.delays:
            total[which] = total.get(which, 0) + count
        return MinuteCounts(
            self.started + other.started,
            self.succeeded + other.succeeded,
            self.failed + other.failed,
            self.dead + other.dead,
            tuple(sorted(total.items())),
        )

    def delay_quantile(self, share: float) -> float:
        """The delay in seconds that `share` of what began did not exceed; 0 without any."""
        return Reading(self.delays).delay_quantile(share)


NOTHING = MinuteCounts()


@dataclass(frozen=True, slots=True)
class Gauges:
    """How much waited at a moment, of all processes together: for a retry, for somebody to see to it, to be read at all."""

    retrying: int
    dead_letters: int
    parked_events: int


def totals_of(vitals: EngineHealth) -> MinuteCounts:
    """What a process has done since its beginning."""
    delays = tuple((which, count) for which, count in enumerate(vitals.delays_ever) if count)
    return MinuteCounts(vitals.started, vitals.succeeded, vitals.failed, vitals.dead, delays)


def minute_of(instant: datetime) -> datetime:
    """The beginning of its minute."""
    return instant.replace(second=0, microsecond=0)


def series(found: Sequence[tuple[datetime, MinuteCounts]], first: datetime, count: int) -> list[MinuteCounts]:
    """One for each minute from `first` on; what several processes have counted together."""
    minutes = [NOTHING] * count
    for at, tally in found:
        place = (at - first) // MINUTE
        if 0 <= place < count:
            minutes[place] = minutes[place].and_(tally)
    return minutes
