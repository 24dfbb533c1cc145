from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.core.calls import Call, HttpTarget, instance_key, millis, slot_key

NOON = datetime(2026, 3, 4, 12, 0, 0, 123_999, tzinfo=UTC)
CALL = Call(7, 3, "publish", "acme", "article:42", NOON, NOON, 1, 9, "3:1:7", None, HttpTarget("http://x"), None)


@pytest.mark.parametrize(
    ("instant", "expected"),
    [
        (datetime(1970, 1, 1, tzinfo=UTC), 0),
        (datetime(1970, 1, 1, 0, 0, 0, 999, tzinfo=UTC), 0),
        (datetime(1969, 12, 31, 23, 59, 59, 999_500, tzinfo=UTC), -1),
        (NOON, 1_772_625_600_123),
        (NOON.astimezone(timezone(timedelta(hours=8))), 1_772_625_600_123),
    ],
)
def test_milliseconds_are_whole_and_rounded_down(instant: datetime, expected: int):
    assert millis(instant) == expected


def test_a_slots_key_is_its_job_its_fire_time_and_its_generation():
    assert slot_key(3, NOON) == "3:1772625600123"
    assert slot_key(3, NOON, 2) == "3:1772625600123:2"


def test_every_other_instances_key_ends_with_its_id():
    assert instance_key(3, NOON, 7) == "3:1772625600123:7"


instants = st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
slots = st.tuples(st.integers(1, 10**6), instants, st.integers(0, 5))


@given(one=slots, other=slots)
def test_different_slots_have_different_keys(one: tuple[int, datetime, int], other: tuple[int, datetime, int]):
    is_same = (one[0], millis(one[1]), one[2]) == (other[0], millis(other[1]), other[2])

    assert (slot_key(*one) == slot_key(*other)) == is_same


def test_the_unit_is_the_same_for_every_instance_of_a_key():
    assert CALL.unit == "acme:publish:article:42"
    assert replace(CALL, instance_id=8, attempt=4, fence=10, idempotency_key="3:2:8").unit == CALL.unit


def test_without_a_key_the_unit_is_the_instances_own():
    assert replace(CALL, key=None).unit == "acme:publish:3:1:7"
    assert replace(CALL, key="").unit == "acme:publish:"
