"""Properties of every expression, zone, base and policy; no text takes long to answer."""

import random
import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest
from cron_cases import EXPRESSIONS, POLICIES, ZONES, random_expression
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import IS_LONG, examples

from horai.time.cron import CronError, DstPolicy, next_fire, parse
from horai.time.cron.parser import LONGEST_EXPRESSION
from horai.time.cron.segments import segment_at
from horai.time.zones import zone

JANUARY = datetime(2026, 1, 1, tzinfo=UTC)
ALPHABET = "0123456789*/,-?LW#@ \t.+%JANFEBMONFRIsundailyé\0"
NOISE_ALLOWED = 0.25
"""Seconds that one call may take: fifty times what the dearest one takes alone, so that only a runaway is found."""

expressions = st.one_of(st.sampled_from(EXPRESSIONS), st.randoms(use_true_random=False).map(random_expression))
bases = st.datetimes(datetime(1900, 1, 1), datetime(2190, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@settings(max_examples=examples(300), deadline=None)
@given(expressions, st.sampled_from(sorted(ZONES)), bases, st.sampled_from(POLICIES))
def test_X15_every_fire_is_later_than_the_one_before(text: str, place: str, base: datetime, policy: DstPolicy):
    cron, where = parse(text), zone(place)
    fires = [base]
    for _ in range(20):
        fire = next_fire(cron, where, fires[-1], policy)
        if fire is None:
            may_always_be_lost = cron.is_wildcard or policy.gap == "skip"
            assert cron.years is not None or may_always_be_lost
            break
        fires.append(fire)

    assert all(earlier < later for earlier, later in pairwise(fires))
    assert all(fire.tzinfo is UTC and fire.microsecond == 0 for fire in fires[1:])


@settings(max_examples=examples(200), deadline=None)
@given(expressions, st.sampled_from(sorted(ZONES)), bases, st.integers(1, 10**7), st.sampled_from(POLICIES))
def test_no_fire_is_missed_by_asking_later(text: str, place: str, base: datetime, seconds: int, policy: DstPolicy):
    cron, where = parse(text), zone(place)
    fire = next_fire(cron, where, base, policy)
    between = base + timedelta(seconds=seconds)

    if fire is not None and between < fire:
        assert next_fire(cron, where, between, policy) == fire


@given(expressions)
def test_the_canonical_text_of_an_expression_is_the_same_value(text: str):
    cron = parse(text)

    assert parse(cron.expression) == cron
    assert parse(f"  {text.lower()}\t") == cron
    assert hash(parse(cron.expression)) == hash(cron)
    assert parse(text, cron.dialect) == cron


def field_soup(dice: random.Random) -> str:
    """Pieces of fields put together as they come: almost valid, mostly not."""
    pieces = [*"*?LW#,-/", "L-3", "15W", "FRI#2", "5L", "MON-FRI", "JAN", "*/5", "0", "7", "31", "60", "1970/9", "2199"]
    words = ["".join(dice.choices(pieces, k=dice.randint(1, 4))) for _ in range(dice.randint(4, 8))]
    return " ".join(words)


def answer(text: str, after: datetime) -> datetime | CronError | None:
    """The next fire in a zone with clock changes, or why there is none; in time."""
    began = time.perf_counter()
    try:
        return next_fire(parse(text), zone("America/New_York"), after, DstPolicy(gap="skip"))
    except CronError as refusal:
        return refusal
    finally:
        assert time.perf_counter() - began < NOISE_ALLOWED


@settings(max_examples=examples(500), deadline=None)
@given(st.one_of(st.text(ALPHABET, max_size=300), st.text(max_size=40), st.randoms().map(field_soup)))
def test_garbage_is_answered_with_a_position_and_a_hint_and_soon(text: str):
    match answer(text, JANUARY):
        case CronError() as refusal:
            assert 0 <= refusal.position <= len(text)
            assert refusal.hint
        case fire:
            assert fire is None or fire > JANUARY


HOSTILE = [
    *["0 0 29 2 */7", "0 0 0 29 2 ? 2196", "0 0 0 ? 2 6#5", "0 */20 2 ? 3 1#2", "0 */20 2 ? 3 1#2 1970/1"],
    *["0 0 0 31 2,4,6,9,11 ? 1970-2199", "0 0 30 2 *", "0 0 L-30 2 *", "* * * * * ? 2199", "59 59 23 31 12 ? 2199"],
    *[",".join(["*/7"] * 60) + " * * * *", "0 0 0 ? * * " + ",".join(["1970/1"] * 33), "@" * 256, "-" * 256],
    *["0 0 " + ",".join(["L-30W"] * 40) + " * *", "* * * * " + ",".join(["MON#1"] * 40), "9" * 246 + " * * * *"],
    *["*," * 123 + "* 1 1 1 1", "1-" * 120 + "1 * * * *", "0 0 0 ? * " + "L" * 240, "1/" * 120 + "1 * * * *"],
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("after", [JANUARY, datetime.min.replace(tzinfo=UTC), datetime(2088, 3, 1, tzinfo=UTC)])
def test_no_expression_is_dear(text: str, after: datetime):
    assert len(text) <= LONGEST_EXPRESSION
    answer(text, after)


SHORTEST = "Africa/Freetown"
"""A zone that kept an offset for four days in 1939."""


def test_the_segments_of_a_zone_have_the_offset_of_each_of_their_days():
    """A zone that kept an offset for less than a stride would show it here."""
    dice = random.Random(1939)
    for name in sorted(available_timezones()) if IS_LONG else [*dice.sample(sorted(ZONES), 12), SHORTEST]:
        where = ZoneInfo(name)
        begin, end = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (1930, 2100))
        for instant in range(begin, end, 86_400 * (1 if IS_LONG or name == SHORTEST else 5)):
            offset = datetime.fromtimestamp(instant, where).utcoffset()
            assert offset == timedelta(seconds=segment_at(where, instant).offset), f"{name} at {instant}"
