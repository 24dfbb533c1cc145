"""Levels of log lines: each message comes back as it was, with its level."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.core.log_levels import LEVELS, MARK, LevelName, level_named, line_of, stored_line
from horai.core.progress import MESSAGE_BYTES, message_text


@given(st.text(), st.sampled_from(LEVELS))
def test_a_message_comes_back_with_its_level(message: str, level: LevelName) -> None:
    assert line_of(stored_line(message, level)) == (level, message)


@given(st.text(), st.sampled_from(LEVELS))
def test_a_message_that_looks_like_a_stored_one_is_still_a_message(message: str, level: LevelName) -> None:
    disguised = stored_line(message, level)

    assert line_of(stored_line(disguised)) == ("INFO", disguised)


def test_a_line_without_a_level_is_stored_as_it_is_and_read_as_info() -> None:
    assert stored_line("opened") == "opened"
    assert line_of("opened") == ("INFO", "opened")
    assert line_of(f"{MARK}NOTICE opened") == ("INFO", f"{MARK}NOTICE opened")


def test_a_long_message_keeps_its_level_when_it_is_cut() -> None:
    level, message = line_of(message_text(stored_line("x" * 2 * MESSAGE_BYTES, "ERROR")))

    assert (level, message[:3], message[-1]) == ("ERROR", "xxx", "…")


@pytest.mark.parametrize(
    ("given_level", "level"),
    [
        ("warning", "WARNING"), ("Error", "ERROR"), (logging.DEBUG, "DEBUG"), (logging.INFO, "INFO"),
        (logging.WARNING, "WARNING"), (35, "WARNING"), (logging.ERROR, "ERROR"), (logging.CRITICAL, "CRITICAL"),
        (5, "DEBUG"), (0, "DEBUG"), (-10, "DEBUG"), (90, "CRITICAL"),
    ],
)  # fmt: skip
def test_levels_have_names_in_any_case_and_the_numbers_of_logging(given_level: str | int, level: str) -> None:
    assert level_named(given_level) == level


def test_an_unknown_level_is_refused_with_the_levels_there_are() -> None:
    with pytest.raises(ValueError, match=r"'loud' is not one of DEBUG, INFO, WARNING, ERROR, CRITICAL"):
        level_named("loud")
