from datetime import timedelta
from typing import get_args

import pytest

from horai.core.outcome import (
    NODE_LOST,
    PROCESS_DIED,
    TIMEOUT,
    Accepted,
    Bury,
    Complete,
    Decision,
    FailedRetryable,
    FailedUnrecoverable,
    Lost,
    NotSent,
    Outcome,
    Postponed,
    Release,
    RetryAt,
    Succeeded,
    plan,
    plan_loss,
    tags_of,
)
from horai.core.retry import RetryPolicy

POLICY = RetryPolicy()


def lowest(low: float, high: float) -> float:
    return low


def test_B9_an_attempt_completes_by_exactly_three_verbs():
    no_completions = {NotSent, Postponed}

    assert set(get_args(Outcome)) - no_completions == {Succeeded, FailedRetryable, FailedUnrecoverable}
    assert not {Accepted, Lost} & set(get_args(Outcome))
    assert set(get_args(Decision)) == {Complete, RetryAt, Bury, Release}


@pytest.mark.parametrize("failures_before", [0, 5, 900])
def test_B9_a_success_completes_the_instance_after_any_number_of_failures(failures_before: int):
    assert plan(POLICY, failures_before, Succeeded('{"a": 1}'), lowest) == Complete('{"a": 1}')
    assert plan(POLICY, failures_before, Succeeded(), lowest) == Complete(None)


def test_B9_a_retryable_failure_waits_longer_each_time_and_dies_at_the_sixth():
    failed = FailedRetryable("HTTP_503", "busy")

    decisions = [plan(POLICY, before, failed, lowest) for before in range(6)]

    waits = [d.delay.total_seconds() for d in decisions if isinstance(d, RetryAt)]
    assert waits == [1.1, 2.1, 4.1, 8.1, 16.1]
    assert decisions[5] == Bury("HTTP_503", "busy", ("transient_error",))


def test_B9_an_unrecoverable_failure_is_buried_at_once():
    assert plan(POLICY, 0, FailedUnrecoverable("HTTP_404", "gone"), lowest) == Bury(
        "HTTP_404", "gone", ("unrecoverable", "http_4xx")
    )


@pytest.mark.parametrize(("asked", "waited"), [(0.2, 1.1), (30.0, 30.0), (None, 1.1)])
def test_the_longer_of_backoff_and_the_targets_wish_holds(asked: float | None, waited: float):
    wish = None if asked is None else timedelta(seconds=asked)

    decision = plan(POLICY, 0, FailedRetryable("HTTP_429", "slow down", wish), lowest)

    assert decision == RetryAt(timedelta(seconds=waited), "HTTP_429", "slow down")


def test_a_wish_does_not_bring_a_spent_instance_back():
    assert isinstance(plan(POLICY, 5, FailedRetryable("X", "x", timedelta(hours=1)), lowest), Bury)


def test_a_call_that_was_not_sent_or_was_postponed_does_not_count_as_a_failure():
    later = timedelta(seconds=7)

    assert plan(POLICY, 5, NotSent(), lowest) == Release()
    assert plan(POLICY, 5, NotSent(later), lowest) == Release(later)
    assert plan(POLICY, 5, Postponed(later), lowest) == Release(later, postponed=True)


def test_a_failure_brings_tags_of_its_own_after_ours():
    failed = FailedUnrecoverable("HTTP_410", "gone", ("closed-account", "http_4xx"))

    assert plan(POLICY, 0, failed, lowest) == Bury("HTTP_410", "gone", ("unrecoverable", "http_4xx", "closed-account"))


@pytest.mark.parametrize(
    ("code", "spent", "tags"),
    [
        ("HTTP_503", True, ("transient_error",)),
        ("HTTP_503", False, ("unrecoverable",)),
        (TIMEOUT, True, ("transient_error", "timeout")),
        (NODE_LOST, True, ("transient_error", "crash_loop")),
        (PROCESS_DIED, True, ("transient_error", "crash_loop")),
        ("HTTP_429", True, ("transient_error", "http_4xx")),
        ("HTTP_410", False, ("unrecoverable", "http_4xx")),
    ],
)
def test_a_dead_letters_tags_say_why(code: str, spent: bool, tags: tuple[str, ...]):
    assert tags_of(code, spent=spent) == tags


def test_B17_a_lost_instance_is_retried_and_dies_after_max_lost_losses_regardless_of_max_retry():
    policy = RetryPolicy(max_retry=0, max_lost=2)

    decisions = [plan_loss(policy, before, "gone", lowest) for before in range(3)]

    assert decisions == [
        RetryAt(timedelta(seconds=2), NODE_LOST, "gone", is_loss=True),
        RetryAt(timedelta(seconds=4), NODE_LOST, "gone", is_loss=True),
        Bury(NODE_LOST, "gone", ("transient_error", "crash_loop"), is_loss=True),
    ]


def test_a_lost_attempt_counts_as_a_loss_and_not_as_a_failure():
    lost = plan(POLICY, 5, Lost("gone"), lowest, 3)

    assert isinstance(lost, RetryAt)
    assert lost.is_loss
    assert lost.code == "NODE_LOST"
    assert isinstance(buried := plan(POLICY, 0, Lost("gone"), lowest, 20), Bury)
    assert buried.is_loss


def test_a_process_that_ran_one_attempt_and_died_again_and_again_is_a_failure():
    crash = Lost("gone", is_crash=True)

    decisions = [plan(POLICY, 5, crash, lowest, lost) for lost in range(3)]

    assert [isinstance(each, RetryAt) and each.is_loss for each in decisions] == [True, True, False]
    assert decisions[2] == Bury("PROCESS_DIED", "gone", ("transient_error", "crash_loop"))
