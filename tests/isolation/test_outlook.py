"""A call that finds no room is sent away until those before it are done, as far as that can be foreseen."""

import pytest

from horai.isolation.outlook import FIRST_GUESS, LONGEST, SHORTEST, RoomOutlook


def busy(lasting: float, *, places: int = 2, calls: int = 50) -> RoomOutlook:
    """One whose calls have lasted so long, and the last of which has just begun at 100."""
    outlook = RoomOutlook(places)
    for _ in range(calls):
        outlook.ended(100.0, 100.0 - lasting)
    outlook.begun(100.0)
    outlook.present = places
    return outlook


def sent_away(outlook: RoomOutlook, now: float = 100.0, ahead: int = 0, **known: bool) -> float:
    outlook.arrived()
    return outlook.turn(now, ahead, **known).total_seconds()


def test_the_first_is_sent_away_until_those_in_line_are_done():
    assert sent_away(busy(1.0), ahead=9) == pytest.approx(5.0)
    assert sent_away(busy(1.0, places=10), ahead=9) == pytest.approx(1.0)


def test_each_further_one_is_given_a_turn_of_its_own():
    outlook = busy(1.0)
    turns = [outlook.turn(100.0, 9).total_seconds() for _ in range(3)]

    assert turns == pytest.approx([5.0, 5.5, 6.0])


def test_one_that_comes_back_makes_room_for_another():
    outlook = busy(1.0)
    outlook.turn(100.0, 9)

    assert sent_away(outlook, ahead=9) == pytest.approx(5.0)


def test_a_call_that_arrives_alone_resets_the_count_of_calls_that_were_sent_away():
    outlook = busy(1.0)
    for _ in range(50):
        outlook.turn(100.0, 9)
    outlook.present = 0
    outlook.arrived()
    outlook.present = 2

    assert outlook.turn(100.0, 9).total_seconds() == pytest.approx(5.0)


def test_before_any_call_has_ended_those_that_run_tell_how_long_it_takes():
    outlook = RoomOutlook(1)
    outlook.begun(100.0)
    outlook.present = 1

    assert sent_away(outlook, ahead=9) == pytest.approx(10 * FIRST_GUESS)
    assert sent_away(outlook, now=101.0, ahead=9) == pytest.approx(10.0)


def test_a_delay_that_is_known_is_not_taken_for_slowness():
    assert sent_away(busy(0.1), now=102.0, ahead=9, is_delayed=True) == pytest.approx(0.5)


def test_the_shortest_delay_doubles_with_each_attempt_up_to_a_limit():
    outlook = busy(0.0)
    turns = [outlook.turn(100.0, 0, attempt).total_seconds() for attempt in (1, 2, 3, 7, 8, 1_000)]

    assert turns == pytest.approx([0.02, 0.04, 0.08, 1.28, 1.28, 1.28])


def test_a_delay_is_never_below_the_shortest_or_above_the_longest():
    assert sent_away(busy(0.0)) == SHORTEST
    assert sent_away(busy(3_600.0), ahead=64) == LONGEST


def test_the_first_that_ends_counts_for_all_and_later_ones_for_less():
    outlook = busy(1.0, places=1, calls=1)
    assert sent_away(outlook) == pytest.approx(1.0)

    outlook.ended(100.0, 98.0)
    outlook.arrived()
    assert sent_away(outlook) == pytest.approx(1.5)
