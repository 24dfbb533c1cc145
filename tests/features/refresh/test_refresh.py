"""The entities that a tick is after, and the time of each run within it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.core.errors import Invalid
from horai.core.job import checked, document_of, refuse_builtin
from horai.core.refresh import (
    DEFAULT_LIMIT,
    SLOWEST,
    Due,
    RefreshPace,
    RefreshRule,
    is_due,
    ticks_document,
    until_begun,
    until_ended,
)
from horai.core.timing import Timing

TICK = datetime(2023, 6, 4, 2, tzinfo=UTC)
DAY = timedelta(days=1)
WINDOW = 10 * DAY

spans = st.timedeltas(min_value=timedelta(seconds=1), max_value=40 * DAY)


def job(**fields: Any) -> dict[str, Any]:
    return {"name": "refresh_stock", "cron": "0 2 * * *", "refresh": {"window": "10d"}, **fields}


def test_D3_tick_and_window_are_settings_of_their_own():
    definition = checked(job(cron="0 2 * * 1", refresh={"window": "30d", "limit": 50, "runOnAdd": True}))

    assert definition.refresh == RefreshRule(30 * DAY, 50, run_on_add=True)
    assert definition.timing.next_after(TICK) == datetime(2023, 6, 5, 2, tzinfo=UTC)


def test_D7_a_load_is_of_a_thousand_unless_the_job_says_otherwise():
    definition = checked(job())

    assert DEFAULT_LIMIT == 1_000
    assert document_of(definition, job())["refresh"] == {"window": "10d", "limit": 1_000, "runOnAdd": False}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"refresh": {}}, "refresh.window"),
        ({"refresh": {"window": "soon"}}, "refresh.window"),
        ({"refresh": {"window": "10ms"}}, "refresh.window"),
        ({"refresh": {"window": "10d", "limit": 0}}, "refresh.limit"),
        ({"refresh": {"window": "10d", "limit": 10_001}}, "refresh.limit"),
        ({"cron": None}, "refresh"),
        ({"cron": None, "every": "1d", "everyFrom": "finish"}, "everyFrom"),
    ],
)
def test_invalid_refresh_options_are_refused_at_their_field(fields: dict[str, Any], field: str):
    with pytest.raises(Invalid) as refused:
        checked(job(**fields))

    assert field in [error.field for error in refused.value.errors]


def test_the_ticks_have_the_schedule_and_the_job_itself_has_none():
    definition = checked(job(priority="high", jitter="1m"))
    ticks = checked(ticks_document(document_of(definition, job(priority="high", jitter="1m"))))

    assert definition.own_timing == Timing()
    assert ticks.timing == definition.timing
    assert ticks.own_timing == definition.timing
    assert (ticks.handler, ticks.priority, ticks.refresh) == ("horai:refresh", definition.priority, None)


def test_a_job_that_names_a_builtin_handler_is_refused():
    own = {"name": "sly", "target": {"type": "worker", "handler": "horai:refresh"}}

    with pytest.raises(Invalid, match="belongs to Horai itself"):
        refuse_builtin(own)


@pytest.mark.parametrize(
    ("finished", "due"),
    [(TICK - WINDOW, True), (TICK - WINDOW + timedelta(microseconds=1), False), (TICK - 30 * DAY, True)],
)
def test_D4_D6_an_entity_is_due_when_it_ended_at_least_a_window_before_the_tick(finished: datetime, due: bool):
    assert is_due(Due("a", finished), TICK - 90 * DAY, TICK, WINDOW) is due


def test_D10_an_entity_added_after_the_tick_waits_for_the_next_tick():
    assert is_due(Due("a", None), TICK, TICK, WINDOW)
    assert not is_due(Due("a", None), TICK + timedelta(seconds=1), TICK, WINDOW)


@given(period=spans, window=spans, count=st.integers(1, 5_000_000), position=st.floats(0, 1), overdue=st.floats(0, 1))
def test_D16_no_run_begins_later_than_a_window_and_a_tick_after_the_last(
    period: timedelta, window: timedelta, count: int, position: float, overdue: float
):
    pace = RefreshPace(TICK, period, window, count)
    finished = TICK - window - overdue * period

    at = pace.wanted(int(position * (count - 1)), finished)

    assert TICK <= at <= max(TICK, finished + window + period)


@given(period=spans, count=st.integers(1, 5_000_000))
def test_runs_are_evenly_apart_and_all_begin_in_the_first_half_of_the_time_until_the_next_tick(
    period: timedelta, count: int
):
    pace = RefreshPace(TICK, period, WINDOW, count)

    assert timedelta(0) <= pace.apart <= SLOWEST
    assert pace.wanted(count - 1, None) - TICK <= period / 2 + timedelta(microseconds=count)


def test_a_handful_is_done_at_once_and_not_over_half_a_day():
    pace = RefreshPace(TICK, DAY, WINDOW, 10)

    assert [(at - TICK).total_seconds() for at in pace.spread(0, [Due(str(n), None) for n in range(10)])] == [
        *range(10)
    ]


def test_a_load_goes_on_where_the_last_one_ended():
    pace = RefreshPace(TICK, DAY, WINDOW, 86_400)
    some = [Due(str(n), None) for n in range(3)]

    assert pace.spread(1_000, some)[0] - TICK == 1_000 * timedelta(milliseconds=500)


def test_a_tick_looks_less_and_less_often():
    waits = (timedelta(0), timedelta(seconds=40), timedelta(minutes=10), DAY)

    seconds = [until_ended(TICK, TICK + waited).total_seconds() for waited in waits]
    assert seconds == [0.2, 10, 150, 300]
    seconds = [until_begun(TICK, TICK + waited).total_seconds() for waited in waits]
    assert seconds == [1, 1, 6, 10]
