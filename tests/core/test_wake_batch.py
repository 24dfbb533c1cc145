"""Many wakes, said in few words: never wrongly, at most too broadly."""

from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.core.wake_batch import OUTCOMES_KEPT, WakeBatch
from horai.core.wakes import (
    ENTRIES,
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
)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def bundle(*wakes: Wake) -> WakeBatch:
    made = WakeBatch()
    for wake in wakes:
        made.add(wake)
    return made


def test_E4_twenty_wakes_of_one_place_are_one_for_the_earliest_time():
    wakes = [LaneWake(3, 17, NOON + second * SECOND) for second in range(20)]

    assert bundle(*reversed(wakes)).take() == [LaneWake(3, 17, NOON)]


def test_few_wakes_keep_their_names():
    wakes = [
        LaneWake(3, 17, NOON),
        LaneWake(4, 17, NOON),
        ScheduleWake(9, NOON),
        QueueWake(2),
        MoveWaitingWake(),
        CatchupWake(),
        NodesWake(),
        KeysWake(),
        DataKeysWake(),
        AuditWake(),
        OutcomeWake(5, 1),
    ]

    assert bundle(*wakes, *wakes).take() == wakes


def test_wakes_that_were_taken_are_not_sent_again():
    told = bundle(LaneWake(3, 17, NOON), MoveWaitingWake())
    told.take()

    assert told.is_empty
    assert told.wakes == 0


def test_a_wake_of_any_shard_takes_in_those_of_single_ones():
    one, any_shard, another = LaneWake(1, 7, NOON), LaneWake(None, 7, NOON + SECOND), LaneWake(2, 7, NOON - SECOND)

    assert bundle(one, any_shard).take() == [LaneWake(None, 7, NOON)]
    assert bundle(any_shard, another).take() == [LaneWake(None, 7, NOON - SECOND)]


def test_too_many_places_are_said_lane_by_lane():
    wakes = [LaneWake(shard, 7, NOON + shard * SECOND) for shard in range(ENTRIES)]

    assert bundle(*wakes, LaneWake(1, 8, NOON)).take() == [LaneWake(None, 7, NOON), LaneWake(None, 8, NOON)]


def test_too_many_lanes_are_said_at_once():
    wakes = [LaneWake(0, lane, NOON) for lane in range(1, ENTRIES + 2)]

    assert bundle(*wakes).take() == [EverywhereWake()]


def test_outcome_wakes_over_the_entry_limit_wait_for_the_next_batch_and_cause_no_rescan():
    outcomes = [OutcomeWake(number, 1) for number in range(1, ENTRIES * 2 + 1)]
    told = bundle(*outcomes, LaneWake(1, 7, NOON))

    first, second, third = told.take(), told.take(), told.take()

    assert first == [LaneWake(1, 7, NOON), *outcomes[: ENTRIES - 1]]
    assert second == outcomes[ENTRIES - 1 : 2 * ENTRIES - 1]
    assert third == outcomes[-1:]


def test_crowded_lanes_leave_room_for_outcomes():
    wakes = [LaneWake(0, lane, NOON) for lane in range(1, ENTRIES + 1)]

    told = bundle(*wakes, *[OutcomeWake(number, 1) for number in range(1, 100)]).take()

    assert sum(isinstance(wake, OutcomeWake) for wake in told) >= ENTRIES // 2


def test_however_many_come_only_so_many_are_remembered():
    told = bundle(*[OutcomeWake(number, 1) for number in range(1, OUTCOMES_KEPT + 11)])

    assert told.outcomes_dropped == 10


KINDS: st.SearchStrategy[Wake] = st.one_of(
    st.builds(
        LaneWake, st.none() | st.integers(0, 31), st.integers(1, 25), st.integers(0, 5).map(lambda n: NOON + n * SECOND)
    ),
    st.builds(ScheduleWake, st.integers(1, 9), st.just(NOON)),
    st.builds(OutcomeWake, st.integers(1, 30), st.just(1)),
    st.builds(QueueWake, st.integers(1, 9)),
    st.sampled_from([MoveWaitingWake(), CatchupWake(), NodesWake(), KeysWake(), DataKeysWake()]),
)


def covers(said: Wake, meant: Wake) -> bool:
    """Return true if a listener that hears `said` looks where and when `meant` asks for."""
    match said, meant:
        case LaneWake(), LaneWake():
            return said.lane == meant.lane and said.shard in {None, meant.shard} and said.due <= meant.due
        case EverywhereWake(), _:
            return not isinstance(meant, OutcomeWake)
        case _:
            return said == meant


@given(st.lists(KINDS, max_size=80))
def test_every_wake_is_covered_by_what_is_said(wakes: list[Wake]):
    told, said = bundle(*wakes), list[Wake]()
    while not told.is_empty:
        payload = told.take()
        assert 0 < len(payload) <= ENTRIES
        said += payload

    assert all(any(covers(one, wake) for one in said) for wake in wakes)


@pytest.mark.parametrize("kind", [kind for kind in get_args(Wake) if not fields(kind)])
def test_a_wake_without_a_name_is_sent(kind: Any):
    assert bundle(kind()).take() == [kind()]
