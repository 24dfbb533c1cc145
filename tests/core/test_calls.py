from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.core.calls import Call, HttpTarget, instance_key, millis, slot_key

NOON = datetime(2026, 3, 4, 12, 0, 0, 123_999, tzinfo=UTC)
CALL = Call(7, 3, "publish", "acme", "article:42", NOON, NOON, 1, 9, NOON, -7, None, HttpTarget("http://x"), None)


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


def test_a_calls_key_is_that_of_its_slot_or_of_its_instance():
    assert CALL._replace(slot=0).idempotency_key == slot_key(3, NOON)
    assert CALL._replace(slot=2).idempotency_key == slot_key(3, NOON, 2)
    assert CALL.idempotency_key == instance_key(3, NOON, 7)


@pytest.mark.parametrize("slot", [0, 2, -7])
def test_B19_a_calls_key_is_the_same_whenever_and_however_often_it_is_tried(slot: int):
    call = CALL._replace(slot=slot)
    later = NOON + timedelta(hours=1)

    again = call._replace(fire_time=later, execute_time=later, attempt=4, fence=10, payload="{}")

    assert again.idempotency_key == call.idempotency_key
    assert again._replace(born_for=later).idempotency_key != call.idempotency_key


instants = st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
slots = st.tuples(st.integers(1, 10**6), instants, st.integers(0, 5))


@given(one=slots, other=slots)
def test_different_slots_have_different_keys(one: tuple[int, datetime, int], other: tuple[int, datetime, int]):
    is_same = (one[0], millis(one[1]), one[2]) == (other[0], millis(other[1]), other[2])

    assert (slot_key(*one) == slot_key(*other)) == is_same


def test_the_unit_is_the_same_for_every_instance_of_a_key():
    assert CALL.unit == "acme:publish:article:42"
    successor = CALL._replace(instance_id=8, attempt=4, fence=10, born_for=NOON + timedelta(hours=1), slot=-8)

    assert successor.idempotency_key != CALL.idempotency_key
    assert successor.unit == CALL.unit


def test_without_a_key_the_unit_is_the_instances_own():
    assert CALL._replace(key=None).unit == "acme:publish:3:1772625600123:7"
    assert CALL._replace(key="").unit == "acme:publish:"
