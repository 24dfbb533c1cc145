"""Cron: both dialects, refusals, and the fires of random expressions against two independent oracles."""

import os
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise, product, takewhile
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from horai.core.cron import CronError, DstPolicy, next_fire, parse
from horai.core.zones import zone

SEED = int(os.environ.get("HORAI_TEST_SEED", random.SystemRandom().randrange(10**9)))
JANUARY = datetime(2026, 1, 1, tzinfo=UTC)
UTC_ZONE = zone("UTC")
POLICIES = [DstPolicy(gap, overlap) for gap, overlap in product(("shift", "skip"), ("first", "last", "both"))]


def walk(
    expression: str, after: datetime = JANUARY, where: ZoneInfo = UTC_ZONE, policy: DstPolicy = POLICIES[0]
) -> Iterator[datetime]:
    """The fires of `expression`, one after the other."""
    cron = parse(expression)
    while (fire := next_fire(cron, where, after, policy)) is not None:
        yield fire
        after = fire


@pytest.mark.parametrize(
    ("vixie", "quartz"),
    [
        ("*/5 * * * *", "0 */5 * * * ?"),
        ("*/5 * * * *", "0 */5 * * * *"),
        ("*/5 * * * *", "0 */5 * ? * *"),
        ("0 9 * * 1-5", "0 0 9 ? * 2-6"),
        ("0 9 * * MON-FRI", "0 0 9 ? * mon-fri"),
        ("0 9 * * 0", "0 0 9 ? * 1"),
        ("0 9 * * 7", "0 0 9 * * SUN"),
        ("0 9 * * 5,6,0,1", "0 0 9 ? * FRI-MON"),
        ("0 22,23,0,1,2 * * *", "0 0 22-2 * * ?"),
        ("0 0,2,22 * * *", "0 0 22-2/2 * * ?"),
        ("0 0 1 11,12,1,2 *", "0 0 0 1 nov-feb ?"),
        ("5/20 3 1,15 * *", "0 5,25,45 3 1,15 * ?"),
        ("10-30/10 3 1-3 JAN *", "0 10,20,30 3 1,2,3 1 ?"),
        ("0 0 */10 * *", "0 0 0 1,11,21,31 * ?"),
        ("0 0 * * */2", "0 0 0 ? * 1,3,5,7"),
    ],
)
def test_C56_cron_parses_both_dialects(vixie: str, quartz: str):
    assert list(islice(walk(vixie), 40)) == list(islice(walk(quartz), 40))


def test_C56_the_seconds_of_the_six_field_form_come_first():
    assert next(walk("30 15 10 * * ?")) == datetime(2026, 1, 1, 10, 15, 30, tzinfo=UTC)


def test_two_restricted_day_fields_of_five_mean_either_of_them():
    assert [fire.day for fire in islice(walk("0 0 13 * FRI"), 4)] == [2, 9, 13, 16]


def test_a_day_field_that_starts_with_a_star_narrows_the_other_one():
    assert [fire.day for fire in islice(walk("0 0 */2 * MON"), 2)] == [5, 19]


def test_texts_that_differ_only_in_spaces_and_case_are_one_value():
    assert parse(" 0  9\t* * mon ") == parse("0 9 * * MON")
    assert len({parse("0 9 * * mon"), parse("0 9 * * MON")}) == 1


@pytest.mark.parametrize(
    ("expression", "position", "message"),
    [
        ("", 0, "cron has 0 fields"),
        ("* * * *", 7, "cron has 4 fields"),
        ("* * * * * * * *", 14, "cron has 8 fields"),
        ("60 * * * *", 0, "minute 60 is out of range"),
        ("0 24 * * *", 2, "hour 24 is out of range"),
        ("0 0 0 * *", 4, "day of month 0 is out of range"),
        ("0 0 1,32 * *", 6, "day of month 32 is out of range"),
        ("0 0 * 13 *", 6, "month 13 is out of range"),
        ("0 0 * * 8", 8, "day of week 8 is out of range"),
        ("0 0 0 ? * 0", 10, "day of week 0 is out of range"),
        ("60 0 0 * * ?", 0, "second 60 is out of range"),
        ("0 MON * * *", 2, "MON is no hour"),
        ("0 0 * FOO *", 6, "FOO is no month"),
        ("1,,2 * * * *", 2, "empty item"),
        ("5- * * * *", 2, "empty value"),
        ("1-2-3 * * * *", 0, "more than one dash"),
        ("1/2/3 * * * *", 3, "more than one step"),
        ("*/0 * * * *", 2, "step 0 of minute is out of range"),
        ("*/90 * * * *", 2, "step 90 of minute is out of range"),
        ("*/x * * * *", 2, "step 'X' of minute is not a number"),
        ("-5 * * * *", 0, "empty value"),
        ("0 22-2 * * *", 2, "runs backwards"),
        ("0 0 * * ?", 8, r"\? is no day of week"),
        ("0 ? 0 * * ?", 2, r"\? is no minute"),
        ("0 0 0 ?,1 * *", 6, r"\? is no day of month"),
        ("0 0 0 1 * MON", 10, "both restricted"),
        ("0 0 0 */2 * MON", 12, "both restricted"),
        ("0 0 9 * * ½", 10, "not printable ASCII"),
        ("0 0 * *\n*", 7, "not printable ASCII"),
        ("0 " * 200, 256, "longer than 256 characters"),
        ("0 0 30 2 *", 4, "cron has no next fire time"),
        ("0 0 0 31 2,4,6,9,11 ?", 6, "cron has no next fire time"),
        ("@hourly", 0, "@hourly is not supported yet"),
        ("0 0 0 1 1 ? 2027", 12, "year, is not supported yet"),
        ("0 0 L * *", 4, "L in the day of month field is not supported yet"),
        ("0 0 0 15W * ?", 6, "15W in the day of month field is not supported yet"),
        ("0 0 0 ? * FRI#2", 10, "FRI#2 in the day of week field is not supported yet"),
        ("0 0 0 ? * 6L", 10, "6L in the day of week field is not supported yet"),
    ],
)
def test_C46_what_is_no_cron_is_refused_at_its_position_with_a_hint(expression: str, position: int, message: str):
    with pytest.raises(CronError, match=message) as refusal:
        parse(expression)

    assert refusal.value.position == position
    assert refusal.value.hint


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="0123456789*/,-?LW#@ \tJANMONé", max_size=40))
def test_no_text_is_answered_with_anything_but_a_cron_or_a_cron_error(text: str):
    refused_at = 0
    try:
        parse(text)
    except CronError as refusal:
        refused_at = refusal.position
    assert 0 <= refused_at <= len(text)


CHANGES = [
    *[("Europe/Berlin", "2026-03-29"), ("Europe/Berlin", "2026-10-25"), ("Europe/Dublin", "2026-03-29")],
    *[("Europe/Dublin", "2026-10-25"), ("America/New_York", "2026-03-08"), ("America/New_York", "2026-11-01")],
    *[("Australia/Lord_Howe", "2026-04-05"), ("Australia/Lord_Howe", "2026-10-04"), ("Pacific/Apia", "2011-12-30")],
    *[("America/Sao_Paulo", "2017-10-15"), ("America/Sao_Paulo", "2018-02-18"), ("Africa/Cairo", "2024-04-26")],
    *[("Africa/Cairo", "2024-11-01"), ("Asia/Beirut", "2024-03-31"), ("Antarctica/Troll", "2026-03-29")],
    *[("Antarctica/Troll", "2026-10-25"), ("Europe/Moscow", "2014-10-26"), ("Asia/Pyongyang", "2018-05-05")],
    *[("Africa/Casablanca", "2026-02-15"), ("Africa/Casablanca", "2026-03-22"), ("Pacific/Kiritimati", "1995-01-01")],
    *[("Asia/Dhaka", "2010-01-01"), ("America/Caracas", "2016-05-01"), ("Asia/Shanghai", "2026-01-01")],
]
MINUTE = timedelta(minutes=1)
RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


def random_field(dice: random.Random, low: int, high: int) -> str:
    first, last = sorted(dice.sample(range(low, high), 2))
    step = dice.randint(1, max(2, (high - low) // 3))
    forms = ["*", "*", f"*/{step}", f"{first}", f"{first},{last}", f"{first}-{last}", f"{first}/{step}"]
    return dice.choice([*forms, f"{first}-{last}/{step}"])


def random_vixie(dice: random.Random) -> str:
    """Any five fields that fire: days stop at 28, so that each month has them."""
    day, weekday = dice.choice(["*", "*", random_field(dice, 1, 28)]), dice.choice(["*", "*", random_field(dice, 0, 7)])
    hour = dice.choice([random_field(dice, 0, 23), random_field(dice, 0, 4), "2", "*"])
    return f"{random_field(dice, 0, 59)} {hour} {day} {dice.choice(['*', '*', '*', '1-11'])} {weekday}"


def values(text: str, low: int, high: int) -> set[int]:
    """What a field of five allows, read the plain way."""
    allowed: set[int] = set()
    for item in text.split(","):
        span, _, step = item.partition("/")
        first, _, last = span.partition("-")
        begin = low if first == "*" else int(first)
        end = int(last) if last else (high if first == "*" or step else begin)
        allowed |= set(range(begin, end + 1, int(step or 1)))
    return allowed


class Scanner:
    """Walks each real minute of some days in a zone and keeps to the letter of the DST rule."""

    def __init__(self, where: ZoneInfo, begin: datetime, end: datetime) -> None:
        instants = (begin + MINUTE * number for number in range((end - begin) // MINUTE))
        self.walls = {instant: instant.astimezone(where).replace(tzinfo=None) for instant in instants}
        self.lost: dict[datetime, list[datetime]] = {}
        for (_, earlier), (instant, wall) in pairwise(self.walls.items()):
            self.lost[instant] = [earlier + MINUTE * number for number in range(1, (wall - earlier) // MINUTE)]

    def fires(self, expression: str) -> dict[DstPolicy, list[datetime]]:
        """What the expression does under each policy."""
        matches = matcher(expression)
        real = {instant: wall for instant, wall in self.walls.items() if matches(wall)}
        if any(field[0] == "*" for field in expression.split()[:2]):
            return {policy: list(real) for policy in POLICIES}
        occurrences: dict[datetime, list[datetime]] = defaultdict(list)
        for instant, wall in real.items():
            occurrences[wall].append(instant)
        after_gaps = {instant for instant, lost in self.lost.items() if any(map(matches, lost))}
        return {policy: self.kept(occurrences, after_gaps, policy) for policy in POLICIES}

    @staticmethod
    def kept(
        occurrences: dict[datetime, list[datetime]], after_gaps: set[datetime], policy: DstPolicy
    ) -> list[datetime]:
        which = {"first": slice(0, 1), "last": slice(-1, None), "both": slice(None)}[policy.overlap]
        found = {instant for instants in occurrences.values() for instant in instants[which]}
        return sorted(found | after_gaps if policy.gap == "shift" else found)


def matcher(expression: str) -> Callable[[datetime], bool]:
    minutes, hours, days, months, weekdays = (
        values(text, low, high) for text, (low, high) in zip(expression.split(), RANGES, strict=True)
    )
    _, _, day, _, weekday = expression.split()
    match_days = all if day[0] == "*" or weekday[0] == "*" else any

    def matches(wall: datetime) -> bool:
        if wall.minute not in minutes or wall.hour not in hours or wall.month not in months:
            return False
        return match_days([wall.day in days, bool({wall.isoweekday(), wall.isoweekday() % 7} & weekdays)])

    return matches


def test_cron_agrees_with_a_scan_of_each_real_minute_around_clock_changes():
    print(f"HORAI_TEST_SEED={SEED}")
    dice = random.Random(SEED)
    for place, day in CHANGES:
        where, middle = zone(place), datetime.fromisoformat(day).replace(tzinfo=UTC)
        begin, end = middle - timedelta(hours=18), middle + timedelta(hours=18)
        margin = timedelta(hours=30)  # at the edge of its walk a scanner sees only one side of a change
        scanner = Scanner(where, begin - margin, end + margin)
        for expression in [
            "30 2 * * *",
            "*/7 * * * *",
            "0 0 * * *",
            "0-59 0-23 * * *",
            *(random_vixie(dice) for _ in range(8)),
        ]:
            for policy, scanned in scanner.fires(expression).items():
                expected = [fire for fire in scanned if begin < fire < end]
                found = list(takewhile(end.__gt__, walk(expression, begin, where, policy)))
                assert found == expected, f"{expression} in {place} under {policy}, seed {SEED}"


def test_cron_agrees_with_cronsim_in_utc():
    print(f"HORAI_TEST_SEED={SEED}")
    dice = random.Random(SEED)
    for _ in range(300):
        expression = random_vixie(dice)
        after = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=dice.randrange(10_000_000))
        expected = list(islice(CronSim(expression, after), 12))
        assert list(islice(walk(expression, after), 12)) == expected, f"{expression}, seed {SEED}"


@settings(max_examples=200, deadline=None)
@given(
    st.randoms(use_true_random=False),
    st.sampled_from([place for place, _ in CHANGES]),
    st.integers(-120 * 365, 170 * 365).map(lambda days: JANUARY + timedelta(days=days, seconds=abs(days) * 7 % 86_400)),
    st.sampled_from(POLICIES),
)
def test_fires_always_come_and_each_is_later_than_the_one_before(
    dice: random.Random, place: str, after: datetime, policy: DstPolicy
):
    fires = list(islice(walk(random_vixie(dice), after, zone(place), policy), 5))

    assert len(fires) == 5
    assert all(earlier < later for earlier, later in pairwise([after, *fires]))
