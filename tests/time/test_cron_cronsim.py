"""Cron against cronsim on what both know: five fields, by the default policy.

Where they differ, and why, is told by a test each: nothing is left out in silence.
"""

import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise, product
from zoneinfo import ZoneInfo

import pytest
from cron_cases import EXPRESSIONS, SEED, ZONES, random_expression
from cronsim import CronSim, CronSimError
from sizes import IS_LONG

from horai.time.cron import Cron, next_fire, parse
from horai.time.zones import zone

FIRES = 150
NOT_CRONSIMS = re.compile(r"\dW|L-|[A-Z]{3}L")
"""Forms that cronsim refuses: the nearest weekday but `LW`, days before the last, the last weekday by name."""


def walk(cron: Cron, where: ZoneInfo, after: datetime) -> Iterator[datetime]:
    while (fire := next_fire(cron, where, after)) is not None:
        yield fire
        after = fire


class Place:
    """A zone in two years, and when its clock was changed."""

    def __init__(self, name: str) -> None:
        self.zone = zone(name)
        noons = [datetime(ZONES[name], 1, 1, 12, tzinfo=UTC) + timedelta(days=day) for day in range(2 * 365)]
        changed = [noon for noon, next_noon in pairwise(noons) if self._offset(noon) != self._offset(next_noon)]
        self.starts = [noons[0], *(noon - timedelta(days=1) for noon in changed)]
        self.has_odd_changes = any(map(self._is_odd, changed))

    def _offset(self, instant: datetime) -> timedelta:
        return instant.astimezone(self.zone).utcoffset() or timedelta(0)

    def _is_odd(self, noon: datetime) -> bool:
        """Return true if a change of the clock is odd.

        A change is odd if it goes to or from the midst of an hour within a day, or touches a midnight.
        """
        minutes = (noon + timedelta(minutes=number) for number in range(24 * 60))
        at = next(minute for minute in minutes if self._offset(minute) != self._offset(noon))
        shown = at.astimezone(self.zone)
        midnights = [(shown + timedelta(days=days)).replace(hour=0, minute=0) for days in (0, 1)]
        return (
            shown.minute != 0
            or bool((self._offset(at) - self._offset(noon)) % timedelta(hours=1))
            or any(
                midnight.replace(fold=0).utcoffset() != midnight.replace(fold=1).utcoffset() for midnight in midnights
            )
        )

    def is_known_to_cronsim(self, text: str) -> bool:
        """Return true if cronsim takes the expression, and steps over the changes here as it means to."""
        if len(text.split()) != 5 or (self.has_odd_changes and parse(text).is_wildcard):
            return False
        try:
            CronSim(text, self.starts[0])
        except CronSimError:
            assert NOT_CRONSIMS.search(text), f"cronsim should know {text}"
            return False
        return True


@pytest.mark.timeout(3600 if IS_LONG else 180)
def test_X15_five_fields_fire_as_cronsim_says_in_every_zone():
    print(f"HORAI_TEST_SEED={SEED}")
    dice = random.Random(SEED)
    compared = 0
    for name in sorted(ZONES) if IS_LONG else dice.sample(sorted(ZONES), 8):
        place = Place(name)
        texts = [*EXPRESSIONS, *(random_expression(dice) for _ in range(20))]
        known = [text for text in texts if place.is_known_to_cronsim(text)]
        for text, start in product(known if IS_LONG else dice.sample(known, 10), place.starts):
            expected = [fire.astimezone(UTC) for fire in islice(CronSim(text, start.astimezone(place.zone)), FIRES)]
            assert list(islice(walk(parse(text), place.zone, start), FIRES)) == expected, f"{text} in {name}, {SEED=}"
            compared += 1
    print(f"{compared} walks compared")


def test_X15_a_wildcard_time_beside_a_change_of_half_an_hour_is_kept_though_cronsim_loses_it():
    where = zone("Australia/Lord_Howe")
    midnight = datetime(2025, 4, 6, tzinfo=where)
    shown_at_two = datetime(2025, 4, 5, 15, 30, tzinfo=UTC)

    assert shown_at_two.astimezone(where).strftime("%H:%M") == "02:00"
    assert next(walk(parse("0 */2 * * *"), where, midnight)) == shown_at_two
    assert next(CronSim("0 */2 * * *", midnight)).astimezone(UTC) == shown_at_two + timedelta(hours=2)


def test_X15_a_wildcard_time_keeps_its_hours_on_a_day_without_a_midnight_though_cronsim_does_not():
    where = zone("America/Havana")
    saturday = datetime(2022, 3, 12, 12, tzinfo=where)

    assert next(walk(parse("0 */2 * * SUN"), where, saturday)).astimezone(where).hour == 2
    assert next(CronSim("0 */2 * * SUN", saturday)).astimezone(UTC).astimezone(where).hour == 1
