from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.time.durations import LONGEST, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("500ms", timedelta(milliseconds=500)),
        ("5s", timedelta(seconds=5)),
        ("10m", timedelta(minutes=10)),
        ("24h", timedelta(hours=24)),
        ("10d", timedelta(days=10)),
        ("1h30m", timedelta(minutes=90)),
        ("1.5s", timedelta(milliseconds=1500)),
        ("0.5d", timedelta(hours=12)),
        ("1d2h3m4s5ms", timedelta(days=1, hours=2, minutes=3, seconds=4, milliseconds=5)),
        ("0s", timedelta(0)),
        ("3653d", LONGEST),
    ],
)
def test_a_duration_is_read_as_people_write_it(text: str, duration: timedelta):
    assert parse_duration(text) == duration


@pytest.mark.parametrize(
    "text",
    [
        *["", " ", "5", "s", "-5s", "+5s", "5 s", " 5s", "5s\n", "5S", "5sec", "30m1h", "1s1s", ".5s", "1.s", "1e3s"],
        *["٥s", "5m5", "5w", "inf", "1,5s", "9" * 65 + "s"],
    ],
)
def test_an_invalid_duration_is_refused_with_the_accepted_forms(text: str):
    with pytest.raises(ValueError, match=r"is not a duration: .*500ms, 5s, 10m, 24h, 10d"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["1.5ms", "0.0001s", "3654d", "99999999999999999999d"])
def test_a_duration_that_is_too_fine_or_too_long_is_refused(text: str):
    with pytest.raises(ValueError, match=r"finer than a millisecond|longer than 3653d"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "canonical"), [("90m", "1h30m"), ("24h", "1d"), ("1.5s", "1s500ms"), ("0ms", "0s"), ("3600s", "1h")]
)
def test_equal_durations_have_one_canonical_text(text: str, canonical: str):
    assert format_duration(parse_duration(text)) == canonical


@given(st.integers(0, LONGEST // timedelta(milliseconds=1)))
def test_every_duration_of_whole_milliseconds_survives_the_round_trip(milliseconds: int):
    duration = timedelta(milliseconds=milliseconds)

    assert parse_duration(format_duration(duration)) == duration


@pytest.mark.parametrize("duration", [timedelta(microseconds=1), timedelta(seconds=-1), LONGEST + timedelta(days=1)])
def test_a_duration_without_canonical_text_is_refused(duration: timedelta):
    with pytest.raises(ValueError, match="no duration of whole milliseconds"):
        format_duration(duration)
