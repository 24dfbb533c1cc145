"""The text in which processes pass wakes on."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.core.limits import SHARDS
from horai.core.wakes import (
    ENTRIES,
    PAYLOAD_LIMIT,
    AlertsWake,
    AuditWake,
    CatchupWake,
    DataKeysWake,
    EverywhereWake,
    KeysWake,
    LaneWake,
    MoveWaitingWake,
    NodesWake,
    OutcomeWake,
    QueueWake,
    ScheduleWake,
    Wake,
    beat_text,
    from_text,
    is_beat,
    to_text,
)

NOON = datetime(2026, 3, 1, 12, 0, 0, 123_456, tzinfo=UTC)
IDS = st.integers(1, 2**63 - 1)
MOMENTS = st.datetimes(datetime(1970, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
WAKES: st.SearchStrategy[Wake] = st.one_of(
    st.builds(LaneWake, st.none() | st.integers(0, SHARDS - 1), st.integers(1, 2**31 - 1), MOMENTS),
    st.builds(ScheduleWake, IDS, MOMENTS),
    st.builds(OutcomeWake, IDS, st.integers(0, 2**63 - 1)),
    st.builds(QueueWake, IDS),
    st.sampled_from(
        [
            MoveWaitingWake(),
            CatchupWake(),
            NodesWake(),
            KeysWake(),
            DataKeysWake(),
            AuditWake(),
            AlertsWake(),
            EverywhereWake(),
        ]
    ),
)


@given(st.lists(WAKES, min_size=1, max_size=ENTRIES))
def test_wakes_are_read_back_as_they_were_written(wakes: list[Wake]):
    assert from_text(to_text(wakes)) == wakes


@given(st.lists(WAKES, max_size=ENTRIES))
def test_no_payload_is_longer_than_its_limit(wakes: list[Wake]):
    assert len(to_text(wakes).encode()) < PAYLOAD_LIMIT


def test_the_longest_wakes_there_can_be_fit_a_payload():
    latest, largest = datetime.max.replace(tzinfo=UTC), 2**63 - 1
    for longest in (LaneWake(31, 2**31 - 1, latest), ScheduleWake(largest, latest), OutcomeWake(largest, largest)):
        assert from_text(to_text([longest] * ENTRIES)) == [longest] * ENTRIES


def test_a_wake_keeps_its_microseconds():
    """A cursor goes back to it: a rounded one would leave the row behind."""
    assert from_text(to_text([LaneWake(3, 17, NOON)])) == [LaneWake(3, 17, NOON)]


@given(st.text(max_size=200) | st.text("wsoqrn*:0123456789 -+_", max_size=200))
def test_hostile_text_is_read_without_harm(payload: str):
    for wake in from_text(payload):
        assert from_text(to_text([wake])) == [wake]


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "w",
        "w:1:2",
        "w:1:2:3:4",
        "w:32:1:1",
        "w:-1:1:1",
        "w:1:0:1",
        "w:1:2147483648:1",
        "w:1:1:253402300800000000",
        "w:1:1:99999999999999999999999999",
        "w:1:+1:1",
        "w:1:1_0:1",
        "w:١:1:1",
        "w: 1:1:1",
        "s:0:1",
        "s:9223372036854775808:1",
        "o:1:-1",
        "o:1",
        "q:",
        "q:1:1",
        "r:1",
        "**",
        "W:1:1:1",
        "select 1",
        "\x00",
    ],
)
def test_an_invalid_wake_entry_is_ignored(entry: str):
    assert from_text(entry) == []


def test_an_unknown_wake_entry_does_not_affect_the_other_entries():
    assert from_text("r z:9 n") == [MoveWaitingWake(), NodesWake()]


def test_a_payload_with_too_much_in_it_says_nothing():
    assert from_text(" ".join(["r"] * (ENTRIES + 1))) == []
    assert from_text("r" + " " * PAYLOAD_LIMIT) == []


def test_a_heartbeat_is_no_wake():
    assert is_beat(beat_text(7))
    assert from_text(beat_text(7)) == []
