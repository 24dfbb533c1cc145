"""The claimer's memory: which places are ours, when each is due, where each goes on."""

from datetime import UTC, datetime, timedelta

import pytest

from horai.core.job import Priority
from horai.core.limits import SHARDS
from horai.core.queue import QueueSettings, parse_rate
from horai.db.claim_lanes import Lane
from horai.db.claims import Claim, ClaimedRow, Position
from horai.engine.dispatch.scans import BEFORE_ALL, LONGEST_COMING, START, Scan, Scans

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
FREE = QueueSettings()
EVERYWHERE = range(SHARDS)


def lane(lane_id: int, handler: str = "", limits: QueueSettings = FREE, queue_id: int = 1) -> Lane:
    return Lane(lane_id, 1, "q", Priority.normal, handler, queue_id, 1, limits)


def lanes(*known: Lane, shards: int = 2) -> Scans:
    """One that runs HTTP in the first shards and the handler `h` everywhere, with nothing left to ask."""
    made = Scans(frozenset({"", "h"}), NOW)
    made.own(frozenset(range(shards)))
    made.learn(known)
    made.unknown.clear()
    return made


def claimed(lane_id: int, due: datetime, instance_id: int) -> ClaimedRow:
    held = Claim(instance_id, 1, 1, 1, 1, 0)
    return ClaimedRow(held, lane_id, due, -instance_id, None, due, due, due, None, None)


# What is ours


def test_the_places_of_a_new_lane_are_unknown_ground_once():
    known = Scans(frozenset({""}), NOW)
    known.own(frozenset({3, 5}))

    known.learn([lane(1)])
    assert set(known.unknown) == {Scan(3, 1), Scan(5, 1)}
    assert known.take_due(NOW + SECOND) == [], "and no claim is made without a due time"
    known.unknown.clear()
    known.learn([lane(1)])
    assert not known.unknown, "nor are they when they are read again"


def test_lanes_of_other_handlers_are_known_and_left_alone():
    known = lanes(lane(1, "elsewhere"))

    assert known.knows(1)
    assert not known.wake(None, 1, NOW)
    assert list(known.all()) == []
    assert known.next_at() is None


def test_a_lane_is_known_by_itself_and_not_by_a_younger_one():
    known = lanes(lane(5))

    assert not known.knows(4)
    known.learn([lane(4), lane(5)])
    assert known.knows(4)


def test_http_is_ours_in_the_leased_shards_and_a_handler_everywhere():
    known = lanes(lane(1), lane(2, "h"))

    assert set(known.all()) == {Scan(0, 1), Scan(1, 1)} | {Scan(shard, 2) for shard in EVERYWHERE}
    assert known.is_ours(Scan(1, 1))
    assert not known.is_ours(Scan(2, 1))
    assert known.is_ours(Scan(2, 2))
    assert not known.is_ours(Scan(0, 3))


def test_a_shard_that_is_gained_is_asked_about_and_one_that_is_lost_is_forgotten():
    known = lanes(lane(1), lane(2, "h"))
    known.wake(None, 1, NOW + SECOND)
    known.advance([claimed(1, NOW, SHARDS), claimed(1, NOW, SHARDS + 1)])

    lost = known.own(frozenset({1, 2}))

    assert lost == [Scan(0, 1)]
    assert set(known.unknown) == {Scan(2, 1)}
    assert known.position(Scan(0, 1)) == Position(0, 1, START, BEFORE_ALL)
    assert known.position(Scan(1, 1)) == Position(1, 1, NOW, SHARDS + 1), "what stays goes on where it was"
    assert known.take_due(NOW + SECOND) == [Scan(1, 1)]


def test_a_shard_that_is_lost_before_it_was_asked_about_is_not_asked_about():
    known = lanes(lane(1))
    known.own(frozenset({0, 1, 7}))

    known.own(frozenset({0, 1}))

    assert not known.unknown


def test_the_same_shards_again_change_nothing():
    known = lanes(lane(1))

    assert known.own(frozenset({0, 1})) == []
    assert not known.unknown


def test_the_places_of_a_queue_are_those_of_its_lanes():
    known = lanes(lane(1, queue_id=1), lane(2, queue_id=2), lane(3, queue_id=2))

    assert set(known.of_queue(2)) == {Scan(s, n) for s in (0, 1) for n in (2, 3)}


CHANGES = {
    "a limit": QueueSettings(max_concurrency=5),
    "a rate": QueueSettings(rate=parse_rate("5/s")),
    "a pause": QueueSettings(paused=True),
}


@pytest.mark.parametrize("limits", CHANGES.values(), ids=CHANGES.keys())
def test_a_lane_whose_queue_allows_something_else_is_unknown_ground_again(limits: QueueSettings):
    known = lanes(lane(1), lane(2))

    known.learn([lane(1, limits=limits), lane(2)])

    assert set(known.unknown) == {Scan(0, 1), Scan(1, 1)}
    assert known[1].limits == limits
    known.unknown.clear()
    known.learn([lane(1), lane(2)])
    assert set(known.unknown) == {Scan(0, 1), Scan(1, 1)}, "and so it is when it is free again"


def test_a_first_limit_is_noticed_and_a_changed_one_is_not():
    """Running instances are given slots that their settlements do not know of."""
    five, six = (lane(1, limits=QueueSettings(max_concurrency=n)) for n in (5, 6))
    known = lanes(five)
    known.learn([six])
    assert not known.has_new_limit, "nor one that was there from the beginning"
    known.learn([lane(1)])
    assert not known.has_new_limit

    known.learn([five])

    assert known.has_new_limit


# When


def test_only_an_earlier_wake_is_news():
    known = lanes(lane(1), shards=1)

    assert known.wake(0, 1, NOW + 10 * SECOND)
    assert not known.wake(0, 1, NOW + 20 * SECOND)
    assert not known.wake(0, 1, NOW + 10 * SECOND)
    assert known.wake(0, 1, NOW + 5 * SECOND)
    assert known.next_at() == NOW + 5 * SECOND
    assert known.take_due(NOW + 4 * SECOND) == []
    assert known.take_due(NOW + 5 * SECOND) == [Scan(0, 1)]
    assert known.take_due(NOW + 20 * SECOND) == [], "its timer has gone off; it is armed again afterwards"


def test_E12_a_wake_concerns_its_own_lane():
    known = lanes(lane(1), lane(2), shards=1)

    known.wake(0, 1, NOW)

    assert known.take_due(NOW) == [Scan(0, 1)]


def test_a_wake_without_a_shard_concerns_all_of_ours():
    known = lanes(lane(1), lane(2, "h"))

    assert known.wake(None, 1, NOW)
    assert known.wake(None, 2, NOW)

    assert set(known.take_due(NOW)) == set(known.all())


def test_a_wake_for_a_shard_of_another_node_or_an_unknown_lane_is_ignored():
    known = lanes(lane(1))

    assert not known.wake(7, 1, NOW)
    assert not known.wake(0, 99, NOW)
    assert known.next_at() is None


def test_a_place_is_armed_for_the_earlier_of_two_times_and_only_if_it_is_ours():
    known = lanes(lane(1))

    assert known.set_timer(Scan(0, 1), NOW + SECOND)
    assert not known.set_timer(Scan(0, 1), NOW + 2 * SECOND)
    assert not known.set_timer(Scan(9, 1), NOW)
    assert known.next_at() == NOW + SECOND


def test_a_timer_is_neither_early_nor_late_by_a_microsecond():
    known = lanes(lane(1))
    due = NOW + timedelta(microseconds=10_401)
    known.wake(0, 1, due)

    assert known.next_at() == due
    assert known.take_due(due - timedelta(microseconds=1)) == []
    assert known.take_due(due) == [Scan(0, 1)]


# Where


def test_a_cursor_moves_on_with_what_was_claimed():
    known = lanes(lane(1))
    assert known.position(Scan(0, 1)) == Position(0, 1, START, BEFORE_ALL)

    found = known.advance(
        [claimed(1, NOW + SECOND, SHARDS), claimed(1, NOW, 2 * SHARDS), claimed(1, NOW, 3 * SHARDS + 1)]
    )

    assert found == {Scan(0, 1): 2, Scan(1, 1): 1}
    assert known.position(Scan(0, 1)) == Position(0, 1, NOW + SECOND, SHARDS)
    assert known.position(Scan(1, 1)) == Position(1, 1, NOW, 3 * SHARDS + 1)


def test_of_one_due_the_highest_id_counts():
    known = lanes(lane(1))

    known.advance([claimed(1, NOW, 2 * SHARDS), claimed(1, NOW, SHARDS)])

    assert known.position(Scan(0, 1)) == Position(0, 1, NOW, 2 * SHARDS)


def test_a_cursor_does_not_go_back_by_what_was_claimed():
    known = lanes(lane(1))
    known.advance([claimed(1, NOW + SECOND, SHARDS)])

    known.advance([claimed(1, NOW, 2 * SHARDS)])

    assert known.position(Scan(0, 1)) == Position(0, 1, NOW + SECOND, SHARDS)


def test_a_wake_behind_the_cursor_moves_it_back():
    known = lanes(lane(1), lane(2), shards=1)
    known.advance([claimed(1, NOW + SECOND, SHARDS), claimed(2, NOW + SECOND, SHARDS)])

    known.wake(0, 1, NOW)

    assert known.position(Scan(0, 1)) == Position(0, 1, NOW, BEFORE_ALL)
    assert known.position(Scan(0, 2)) == Position(0, 2, NOW + SECOND, SHARDS)


def test_a_wake_at_the_cursors_own_due_moves_it_before_all_ids():
    """Ids do not come in order: a lower one may commit later with the same due."""
    known = lanes(lane(1))
    known.advance([claimed(1, NOW, SHARDS)])

    known.wake(0, 1, NOW)

    assert known.position(Scan(0, 1)) == Position(0, 1, NOW, BEFORE_ALL)


def test_a_wake_after_the_cursor_leaves_it():
    known = lanes(lane(1))
    known.advance([claimed(1, NOW, SHARDS)])

    known.wake(0, 1, NOW + SECOND)

    assert known.position(Scan(0, 1)) == Position(0, 1, NOW, SHARDS)


def test_E11_no_claim_moves_a_cursor_over_a_row_that_became_claimable_while_it_was_under_way():
    """Its statement may have looked before that row was committed."""
    known = lanes(lane(1))
    (start,) = known.starts([Scan(0, 1)])
    assert start == Position(0, 1, START, BEFORE_ALL)
    known.wake(0, 1, NOW + 2 * SECOND)
    known.wake(0, 1, NOW)

    known.advance([claimed(1, NOW + SECOND, SHARDS)])

    assert known.position(Scan(0, 1)) == Position(0, 1, NOW, BEFORE_ALL)
    known.starts([Scan(0, 1)])
    known.advance([claimed(1, NOW + SECOND, SHARDS)])
    assert known.position(Scan(0, 1)) == Position(0, 1, NOW + SECOND, SHARDS), "a wake counts for one claim"


def test_a_row_that_was_seen_ahead_of_the_cursor_leaves_it_and_one_behind_it_moves_it_to_that_very_row():
    """A group of one due may have a hundred thousand rows behind the cursor.

    The dispatcher does not go over them again for nothing.
    """
    known = lanes(lane(1))
    known.advance([claimed(1, NOW, 5 * SHARDS)])

    assert known.wake(0, 1, NOW, 6 * SHARDS - 1)
    assert known.position(Scan(0, 1)) == Position(0, 1, NOW, 5 * SHARDS)
    known.wake(0, 1, NOW, 3 * SHARDS - 1)

    assert known.position(Scan(0, 1)) == Position(0, 1, NOW, 3 * SHARDS - 1)


# The due times that are known ahead


def ahead(known: Scans, scan: Scan, *seconds: float) -> None:
    """Let a look find rows that are due after these seconds."""
    known.begin_look([scan])
    known.expect(scan, [NOW + each * SECOND for each in seconds])


def test_after_a_claim_the_next_known_due_time_is_behind_its_last_row():
    known, scan = lanes(lane(1)), Scan(0, 1)
    ahead(known, scan, 0, 0.2, 0.2, 0.5)

    known.advance([claimed(1, NOW, SHARDS)])
    assert known.next_expected(scan) == NOW + 0.2 * SECOND
    known.advance([claimed(1, NOW + 0.2 * SECOND, 2 * SHARDS)])
    assert known.next_expected(scan) == NOW + 0.5 * SECOND
    known.advance([claimed(1, NOW + 0.5 * SECOND, 3 * SHARDS)])
    assert known.next_expected(scan) is None, "and then it is asked for"


def test_a_row_that_is_added_between_known_due_times_is_not_passed_over():
    known, scan = lanes(lane(1)), Scan(0, 1)
    ahead(known, scan, 0, 0.5)

    known.wake(0, 1, NOW + 0.3 * SECOND)

    known.advance([claimed(1, NOW, SHARDS)])
    assert known.next_expected(scan) == NOW + 0.3 * SECOND


def test_a_row_that_is_added_after_the_known_due_times_hides_none_between():
    """More rows may follow the last known one: the new one is not the next."""
    known, scan = lanes(lane(1)), Scan(0, 1)
    ahead(known, scan, 0, 0.5)

    known.wake(0, 1, NOW + 0.9 * SECOND)

    known.advance([claimed(1, NOW + 0.5 * SECOND, SHARDS)])
    assert known.next_expected(scan) is None


def test_a_look_that_was_overtaken_by_a_wake_or_a_loss_tells_nothing_ahead():
    known, woken, lost = lanes(lane(1)), Scan(0, 1), Scan(1, 1)
    known.begin_look([woken, lost])
    known.wake(0, 1, NOW + 0.3 * SECOND)
    known.mark_unknown([lost])

    for scan in (woken, lost):
        known.expect(scan, [NOW, NOW + 0.5 * SECOND])

    known.advance([claimed(1, NOW, SHARDS), claimed(1, NOW, SHARDS + 1)])
    assert (known.next_expected(woken), known.next_expected(lost)) == (None, None)


def test_due_times_known_ahead_are_forgotten_with_lost_wakes_and_lost_shards():
    known, scan = lanes(lane(1)), Scan(0, 1)
    for forget in (known.forget_coming, lambda: known.mark_unknown([scan]), lambda: known.own(frozenset({1}))):
        known.own(frozenset({0, 1}))
        known.unknown.clear()
        ahead(known, scan, 0, 0.5)
        forget()
        known.advance([claimed(1, NOW, SHARDS)])
        assert known.next_expected(scan) is None


def test_many_wakes_between_known_due_times_are_remembered_in_part_and_asked_for_later():
    known, scan = lanes(lane(1)), Scan(0, 1)
    ahead(known, scan, 0, 0.9)

    for n in range(2 * LONGEST_COMING):
        known.wake(0, 1, NOW + 0.001 * (n + 1) * SECOND)

    last = NOW + 0.001 * (LONGEST_COMING - 1) * SECOND
    known.starts([scan])
    known.advance([claimed(1, last, SHARDS)])
    assert known.next_expected(scan) is None, "the later ones are asked for"
