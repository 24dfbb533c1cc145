from datetime import UTC, datetime, timedelta

from horai.core.definition import Priority
from horai.db.claims import Claimed, Held, Position
from horai.db.jobs import Lane
from horai.engine.lanes import BEFORE_ALL, START, Lanes, to_millis

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def lane(lane_id: int, priority: Priority = Priority.normal, handler: str = "") -> Lane:
    return Lane(lane_id, 1, "q", priority, handler)


def lanes(*known: Lane) -> Lanes:
    made = Lanes(range(2), frozenset({""}), NOW)
    made.learn(known, NOW)
    return made


def claimed(lane_id: int, due: datetime, instance_id: int, shard: int = 0) -> Claimed:
    held = Held(instance_id, 1, 1, 1, 1, 1, 0)
    return Claimed(held, shard, lane_id, due, None, due, due, due, -instance_id, None)


def test_new_lanes_are_looked_at_once():
    known = lanes(lane(1), lane(2))

    assert known.take_due(NOW) == [[1, 2]]
    assert known.take_due(NOW + SECOND) == []
    known.learn([lane(1), lane(2)], NOW + SECOND)
    assert known.take_due(NOW + SECOND) == [], "nor are they when they are read again"


def test_the_most_urgent_band_comes_first():
    known = lanes(lane(1, Priority.low), lane(2, Priority.core), lane(3, Priority.normal), lane(4, Priority.core))

    assert known.take_due(NOW) == [[2, 4], [3], [1]]


def test_lanes_of_other_handlers_are_known_and_left_alone():
    known = lanes(lane(1, handler="h"))

    assert known.knows(1)
    assert known.take_due(NOW) == []
    assert not known.wake(1, NOW)
    assert known.next_at() is None


def test_a_lane_is_known_by_itself_and_not_by_a_younger_one():
    known = lanes(lane(5))

    assert not known.knows(4)
    known.learn([lane(4), lane(5)], NOW)
    assert known.knows(4)


def test_only_an_earlier_wake_is_news():
    known = lanes(lane(1))
    known.take_due(NOW)

    assert known.wake(1, NOW + 10 * SECOND)
    assert not known.wake(1, NOW + 20 * SECOND)
    assert not known.wake(1, NOW + 10 * SECOND)
    assert known.wake(1, NOW + 5 * SECOND)
    assert known.next_at() == NOW + 5 * SECOND
    assert known.take_due(NOW + 4 * SECOND) == []
    assert known.take_due(NOW + 5 * SECOND) == [[1]]


def test_a_cursor_moves_on_with_what_was_claimed():
    known = lanes(lane(1))
    assert known.position(0, 1) == Position(0, 1, START, BEFORE_ALL)

    known.advance([claimed(1, NOW + SECOND, 8), claimed(1, NOW, 9)])

    assert known.position(0, 1) == Position(0, 1, NOW + SECOND, 8)
    assert known.position(1, 1) == Position(1, 1, START, BEFORE_ALL)
    assert known.positions([1]) == [known.position(0, 1), known.position(1, 1)]


def test_a_wake_behind_the_cursor_moves_it_back():
    known = lanes(lane(1), lane(2))
    known.advance([claimed(1, NOW + SECOND, 8), claimed(2, NOW + SECOND, 9)])

    known.wake(1, NOW)

    assert known.position(0, 1) == Position(0, 1, NOW, BEFORE_ALL)
    assert known.position(0, 2) == Position(0, 2, NOW + SECOND, 9)


def test_a_wake_at_the_cursors_own_due_moves_it_before_all_ids():
    """Ids do not come in order: a lower one may commit later with the same due."""
    known = lanes(lane(1))
    known.advance([claimed(1, NOW, 8)])

    known.wake(1, NOW)

    assert known.position(0, 1) == Position(0, 1, NOW, BEFORE_ALL)


def test_a_wake_after_the_cursor_leaves_it():
    known = lanes(lane(1))
    known.advance([claimed(1, NOW, 8)])

    known.wake(1, NOW + SECOND)

    assert known.position(0, 1) == Position(0, 1, NOW, 8)


def test_a_pass_looks_at_every_lane_again_from_its_beginning():
    known = lanes(lane(1), lane(2))
    known.take_due(NOW)
    known.advance([claimed(1, NOW, 8)])

    known.back_to_all(NOW - 10 * SECOND, NOW)

    assert known.take_due(NOW) == [[1, 2]]
    assert known.position(0, 1) == Position(0, 1, NOW - 10 * SECOND, BEFORE_ALL)
    assert known.position(0, 2) == Position(0, 2, START, BEFORE_ALL)


def test_a_timer_does_not_go_off_early():
    assert to_millis(NOW + timedelta(microseconds=1)) == to_millis(NOW) + 1
    assert to_millis(NOW) * timedelta(milliseconds=1) + START == NOW
