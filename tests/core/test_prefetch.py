"""The number of instances that a worker claims ahead."""

import pytest

from horai.core.prefetch import MOMENT, Prefetch


def after(spans: int, per_span: int, seconds: float) -> Prefetch:
    pace = Prefetch(0.0)
    for span in range(1, spans + 1):
        pace.note(span * seconds, per_span)
    return pace


def test_nothing_is_held_in_advance_before_anything_has_ended():
    assert Prefetch(0.0).ahead(1.0) == 0


def test_short_calls_are_held_in_advance_by_the_thousand():
    assert after(20, 1_000, 0.025).ahead(0.5) == pytest.approx(40_000 * MOMENT, abs=1)


def test_long_calls_are_left_to_others():
    assert after(20, 2, 1.0).ahead(20.0) == 0


def test_many_notes_within_a_moment_count_as_one_span():
    pace = Prefetch(0.0)
    for step in range(1, 101):
        pace.note(step * 0.001, 10)
    assert 500 <= pace.ahead(0.1) / (MOMENT / 0.1) <= 1_000


def test_a_calm_is_soon_forgotten():
    pace = after(20, 1_000, 0.025)
    for second in range(1, 12):
        pace.note(0.5 + second, 1)
    assert pace.ahead(11.5) <= 4


def test_calls_that_stop_ending_are_not_held_in_advance():
    pace = after(20, 1_000, 0.025)
    assert pace.ahead(0.5 + MOMENT) < 2_000
    assert pace.ahead(1_000.0) == 0


def test_the_first_span_counts_in_full():
    assert after(1, 1_000, 0.025).ahead(0.025) == pytest.approx(40_000 * MOMENT, abs=1)


def test_the_time_without_calls_to_make_does_not_lower_the_rate_of_those_that_follow():
    pace = Prefetch(0.0)
    pace.resume(60.0)
    pace.note(60.025, 1_000)
    assert pace.ahead(60.025) == pytest.approx(40_000 * MOMENT, abs=1)


def test_a_rate_from_before_a_long_pause_is_not_believed_after_it():
    pace = after(20, 1_000, 0.025)
    pace.resume(60.0)
    assert pace.ahead(60.0) <= 4


def test_long_calls_that_end_together_are_not_taken_for_short_ones():
    pace = Prefetch(0.0)
    pace.resume(0.0)
    pace.note(600.0, 1)
    pace.note(600.001, 99)
    assert pace.ahead(600.001) == 0
