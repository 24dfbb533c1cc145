"""The rules of stuck runs, clogged queues and root causes, as pure functions."""

from datetime import UTC, datetime, timedelta

from horai.core.root_cause import blocked_by
from horai.core.stuck import FACTOR, LEAST, SAMPLES, LongRun, StuckRun, UsualRun, clogged_at, judged, samples_from

BEGAN = datetime(2026, 3, 2, 9, tzinfo=UTC)
RUN = LongRun(1, 1, "publish", "default", None, 1, "node-1", BEGAN)
SECOND = timedelta(seconds=1)


def stuck(at: datetime) -> StuckRun:
    return StuckRun(RUN, SECOND, at)


def test_a_run_is_stuck_only_after_three_times_the_p95_of_its_job() -> None:
    usual = UsualRun(SAMPLES, timedelta(minutes=10))

    assert judged(RUN, usual, BEGAN + timedelta(minutes=30)) is None
    found = judged(RUN, usual, BEGAN + timedelta(minutes=30) + SECOND)

    assert FACTOR == 3
    assert found == StuckRun(RUN, timedelta(minutes=10), BEGAN + timedelta(minutes=30))


def test_a_short_run_is_stuck_only_after_a_minute() -> None:
    usual = UsualRun(SAMPLES, timedelta(milliseconds=5))

    assert judged(RUN, usual, BEGAN + LEAST) is None
    assert judged(RUN, usual, BEGAN + LEAST + SECOND) is not None


def test_too_few_successes_say_nothing() -> None:
    much_later = BEGAN + timedelta(days=1)

    assert judged(RUN, None, much_later) is None
    assert judged(RUN, UsualRun(SAMPLES - 1, SECOND), much_later) is None
    assert judged(RUN, UsualRun(SAMPLES, SECOND), much_later) is not None


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
