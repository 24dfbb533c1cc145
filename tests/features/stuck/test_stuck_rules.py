"""The rules of stuck runs, clogged queues and root causes, as pure functions."""

from datetime import UTC, datetime, timedelta

from horai.core.root_cause import blocked_by
from horai.core.stuck import (
    FACTOR,
    LEAST,
    LEAST_OF_FEW,
    SAMPLES,
    UNKNOWN,
    LongRun,
    StuckRun,
    UsualRun,
    clogged_at,
    judged,
    samples_from,
)

BEGAN = datetime(2026, 3, 2, 9, tzinfo=UTC)
RUN = LongRun(1, 1, "publish", "default", None, 1, "node-1", BEGAN)
SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)


def stuck(at: datetime) -> StuckRun:
    return StuckRun(RUN, enough(SECOND), at)


def enough(p95: timedelta) -> UsualRun:
    """A job with just enough successes for a p95: one of them took a day."""
    return UsualRun(SAMPLES, p95, DAY)


def few(longest: timedelta) -> UsualRun:
    """A job that lacks one success for a p95."""
    return UsualRun(SAMPLES - 1, SECOND, longest)


def test_a_run_is_stuck_only_after_three_times_the_p95_of_its_job() -> None:
    usual = enough(timedelta(minutes=10))

    assert judged(RUN, usual, BEGAN + timedelta(minutes=30)) is None
    found = judged(RUN, usual, BEGAN + timedelta(minutes=30) + SECOND)

    assert FACTOR == 3
    assert found == StuckRun(RUN, usual, BEGAN + timedelta(minutes=30))
    assert found is not None
    assert (found.p95, found.p95_ms, found.longest, found.longest_ms) == (timedelta(minutes=10), 600_000, None, None)


def test_a_short_run_is_stuck_only_after_a_minute() -> None:
    usual = enough(timedelta(milliseconds=5))

    assert judged(RUN, usual, BEGAN + LEAST) is None
    assert judged(RUN, usual, BEGAN + LEAST + SECOND) is not None


def test_with_few_successes_a_run_is_stuck_after_three_times_the_longest_of_them() -> None:
    usual = few(timedelta(minutes=10))

    assert judged(RUN, usual, BEGAN + timedelta(minutes=30)) is None
    found = judged(RUN, usual, BEGAN + timedelta(minutes=30) + SECOND)

    assert found == StuckRun(RUN, usual, BEGAN + timedelta(minutes=30))
    assert found is not None
    assert (found.p95, found.p95_ms, found.longest, found.longest_ms) == (None, None, timedelta(minutes=10), 600_000)


def test_with_few_short_successes_a_run_is_stuck_only_after_ten_minutes() -> None:
    assert timedelta(minutes=10) == LEAST_OF_FEW
    assert judged(RUN, few(SECOND), BEGAN + LEAST_OF_FEW) is None
    assert judged(RUN, few(SECOND), BEGAN + LEAST_OF_FEW + SECOND) is not None


def test_without_a_success_a_run_is_stuck_after_half_an_hour_and_has_no_usual_duration() -> None:
    assert timedelta(minutes=30) == UNKNOWN
    assert judged(RUN, None, BEGAN + UNKNOWN) is None
    found = judged(RUN, None, BEGAN + UNKNOWN + SECOND)

    assert found == StuckRun(RUN, None, BEGAN + UNKNOWN)
    assert found is not None
    assert (found.p95, found.p95_ms, found.longest, found.longest_ms) == (None, None, None, None)


def test_a_queue_is_clogged_since_its_last_slot_was_held_too_long() -> None:
    holders = [stuck(BEGAN + 3 * SECOND), stuck(BEGAN), stuck(BEGAN + 7 * SECOND)]

    assert clogged_at(4, holders) is None
    assert clogged_at(3, holders) == BEGAN + 7 * SECOND
    assert clogged_at(1, holders) == BEGAN


def test_samples_are_of_whole_days_in_utc() -> None:
    local = datetime(2026, 3, 2, 1, 30, tzinfo=UTC) + timedelta(hours=5)

    assert samples_from(local) == datetime(2026, 2, 23, tzinfo=UTC)


DIAMOND = {"load": [], "left": ["load"], "right": ["load"], "report": ["left", "right"], "mail": ["report"]}


def test_the_nodes_below_a_dead_one_go_back_to_it_through_others() -> None:
    assert blocked_by(DIAMOND, ["left"], ["report", "mail"]) == {"left": ("mail", "report")}


def test_two_dead_branches_of_a_diamond_are_both_root_causes() -> None:
    assert blocked_by(DIAMOND, ["right", "left"], ["report", "mail"]) == {
        "left": ("mail", "report"),
        "right": ("mail", "report"),
    }


def test_a_dead_node_below_another_one_is_not_a_root_cause() -> None:
    assert blocked_by(DIAMOND, ["report", "load"], ["left", "right", "mail"]) == {"load": ("left", "mail", "right")}


def test_a_dead_leaf_is_a_root_cause_that_blocks_no_node() -> None:
    assert blocked_by(DIAMOND, ["mail"], []) == {"mail": ()}
