"""Tags that a function gives its dead letter."""

import pytest

from horai import Unrecoverable
from horai.core.outcome import FailedUnrecoverable
from horai.isolation import frames
from horai.sdk.function_outcomes import outcome_of_error


def buried(error: Exception) -> FailedUnrecoverable:
    outcome = outcome_of_error(error)
    assert isinstance(outcome, FailedUnrecoverable)
    return outcome


def test_an_unrecoverable_failure_carries_its_tags():
    failed = buried(Unrecoverable("no such account", tags=["closed", "eu"]))

    assert (failed.code, failed.tags) == ("Unrecoverable", ("closed", "eu"))
    assert "no such account" in failed.message


@pytest.mark.parametrize("error", [Unrecoverable(), Unrecoverable("x"), Unrecoverable("x", 5)])
def test_tags_are_nobodys_duty(error: Unrecoverable):
    assert buried(error).tags == ()
    assert "tags" not in buried(error).message


def test_a_word_alone_is_one_tag():
    assert buried(Unrecoverable("x", tags="closed")).tags == ("closed",)


def test_a_tag_that_is_none_is_left_out_and_said_in_the_letter():
    failed = buried(Unrecoverable("x", tags=["closed", "not a tag"]))

    assert failed.tags == ("closed",)
    assert failed.message.startswith("Not all of its tags were kept: ('closed', 'not a tag').")


def test_tags_come_over_from_a_functions_own_process():
    failed = FailedUnrecoverable("X", "x", ("closed", "eu"))

    assert frames.outcome_of(frames.ended(failed)) == failed
