"""Slots that handlers share: what hangs leaves room for the others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.core.shares import Shares


def filled(shares: Shares, handler: str) -> int:
    """Begin calls of a handler until it has no room; how many it runs."""
    while (room := shares.room(handler)) > 0:
        shares.begin(handler, room)
    return shares.running(handler)


@pytest.mark.parametrize(
    ("slots", "handlers", "most"), [(4, 2, 3), (4, 10, 3), (2, 2, 1), (100, 2, 99), (100, 20, 81), (100, 50, 75)]
)
def test_F2b_a_handler_leaves_slots_for_those_that_run_nothing(slots: int, handlers: int, most: int):
    shares = Shares(slots, [f"h{n}" for n in range(handlers)])
    assert filled(shares, "h0") == most
    assert shares.room("h1") >= 1


@pytest.mark.parametrize(("slots", "handlers"), [(4, ["a"]), (1, ["a", "b", "c"])])
def test_a_lone_handler_and_a_single_slot_keep_nothing_free(slots: int, handlers: list[str]):
    assert filled(Shares(slots, handlers), "a") == slots


def test_F2b_two_handlers_that_hang_leave_a_slot_for_the_third():
    shares = Shares(8, "abc")
    assert (filled(shares, "a"), filled(shares, "b"), filled(shares, "c")) == (6, 1, 1)
    assert shares.free == 0


def test_a_slot_that_was_given_back_goes_to_a_handler_that_runs_nothing():
    shares = Shares(4, "ab")
    filled(shares, "a")
    shares.begin("b")
    assert (shares.room("a"), shares.room("b")) == (0, 0)
    shares.end("b")
    assert (shares.room("a"), shares.room("b")) == (0, 1)
    shares.end("a", 3)
    assert (shares.room("a"), shares.room("b")) == (3, 3)


def test_a_cap_bounds_its_handler_alone():
    shares = Shares(10, "ab", {"a": 2})
    assert filled(shares, "a") == 2
    assert filled(shares, "b") == 8


def test_a_handler_that_was_not_known_has_the_same_rights():
    shares = Shares(4, "a")
    assert filled(shares, "new") == 3
    shares.end("new", 3)
    assert filled(shares, "a") == 3


@given(st.integers(1, 9), st.dictionaries(st.sampled_from("abc"), st.integers(1, 3)), st.lists(st.sampled_from("abc")))
def test_a_call_may_begin_exactly_while_there_is_room(slots: int, caps: dict[str, int], calls: list[str]) -> None:
    shares = Shares(slots, "abc", caps)
    for handler in calls:
        assert all(shares.may_begin(name) == (shares.room(name) > 0) for name in "abc")
        if shares.may_begin(handler):
            shares.begin(handler)


def test_a_suspended_handler_has_no_room_and_gets_its_limit_back():
    shares = Shares(8, ["a", "b"], {"a": 2})
    shares.begin("a")
    for handler in ("a", "b"):
        shares.suspend(handler)
        shares.suspend(handler)

    assert [shares.may_begin(handler) for handler in ("a", "b", "c")] == [False, False, True]
    assert shares.room("a") < -1_000
    for handler in ("a", "b"):
        shares.resume(handler)
        shares.resume(handler)

    assert (shares.room("a"), shares.may_begin("b")) == (1, True)
