"""The bus on which wakes travel inside a process."""

from datetime import UTC, datetime, timedelta

import pytest

from horai.core.limits import SHARDS
from horai.core.wakes import (
    ENTRIES,
    AlertsWake,
    AuditWake,
    CatchupWake,
    DataKeysWake,
    EverywhereWake,
    KeysWake,
    LaneWake,
    LocalWake,
    MoveWaitingWake,
    NodesWake,
    OutcomeWake,
    OverlapWake,
    QueueWake,
    RunsWake,
    ScheduleWake,
    Wake,
)
from horai.db.claims import Claimable
from horai.db.wakeups import HeldWakeups, Wakeups

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
LOCAL: list[LocalWake] = [OverlapWake([7]), RunsWake([5, 6])]
KINDS: list[Wake] = [
    LaneWake(3, 7, NOON),
    ScheduleWake(9, NOON),
    OutcomeWake(5, 2),
    QueueWake(4),
    MoveWaitingWake(),
    CatchupWake(),
    NodesWake(),
    KeysWake(),
    DataKeysWake(),
    AuditWake(),
    AlertsWake(),
    EverywhereWake(),
]


NAMELESS: list[Wake] = [MoveWaitingWake(), CatchupWake(), NodesWake(), AuditWake(), AlertsWake()]
DELIVERED = [*KINDS, *NAMELESS]
"""A wake for everything is delivered to the listeners of the nameless kinds as well."""


class Bus:
    """Wakeups with a listener for each kind and a notifier; both record their wakes."""

    def __init__(self) -> None:
        self.wakeups = Wakeups()
        self.heard: list[Wake | LocalWake] = []
        self.passed_on: list[Wake] = []
        for wake in (*KINDS, *LOCAL):
            self.wakeups.subscribe(type(wake), self.heard.append)
        self.wakeups.pass_on_to(self.passed_on.append)


def test_each_kind_of_wake_reaches_its_listeners_at_once_and_the_notifier():
    bus = Bus()

    for wake in KINDS:
        bus.wakeups.publish(wake)

    assert bus.heard == DELIVERED
    assert bus.passed_on == KINDS


def test_wakes_received_from_other_processes_are_not_forwarded():
    bus = Bus()

    for wake in KINDS:
        bus.wakeups.deliver(wake)

    assert bus.heard == DELIVERED
    assert bus.passed_on == []


def test_a_local_wake_reaches_its_listeners_and_no_notifier():
    bus = Bus()

    for wake in LOCAL:
        bus.wakeups.publish(wake)

    assert bus.heard == LOCAL
    assert bus.passed_on == []


def test_held_wakes_of_each_kind_are_published_in_order_after_the_commit():
    bus = Bus()
    held = HeldWakeups(bus.wakeups)

    for wake in (*LOCAL, *KINDS):
        held.publish(wake)
    before = [*bus.heard]
    held.release()
    held.release()

    assert before == []
    assert bus.heard == [*LOCAL, *DELIVERED]
    assert bus.passed_on == KINDS


def test_several_listeners_hear_the_same_wake():
    wakeups, heard = Wakeups(), list[int]()
    for number in range(3):
        wakeups.subscribe(LaneWake, lambda _, number=number: heard.append(number))

    wakeups.publish(LaneWake(None, 7, NOON))

    assert heard == [0, 1, 2]


def test_E9_rows_of_one_place_are_one_wake_for_the_earliest():
    bus = Bus()

    bus.wakeups.announce(Claimable(3 + number * SHARDS, 7, NOON - number * SECOND) for number in range(5))

    assert bus.heard == [LaneWake(3, 7, NOON - 4 * SECOND)]


def test_rows_of_several_places_are_told_apart():
    bus = Bus()

    bus.wakeups.announce([Claimable(1, 7, NOON), Claimable(2, 7, NOON), Claimable(1 + SHARDS, 8, NOON)])

    assert bus.heard == [LaneWake(1, 7, NOON), LaneWake(2, 7, NOON), LaneWake(1, 8, NOON)]


@pytest.mark.parametrize(("places", "wakes"), [(ENTRIES, ENTRIES), (ENTRIES + 1, 1)])
def test_many_places_of_a_lane_are_one_wake_for_the_lane(places: int, wakes: int):
    bus = Bus()

    bus.wakeups.announce(Claimable(number, 7, NOON + number * SECOND) for number in range(places))

    assert len(bus.heard) == wakes
    if wakes == 1:
        assert bus.heard == [LaneWake(None, 7, NOON)]


def test_no_listener_hears_of_rows_in_the_parking_lane():
    bus = Bus()

    bus.wakeups.publish(LaneWake(None, 0, NOON))
    bus.wakeups.announce([Claimable(1, 0, NOON)])

    assert bus.heard == []
    assert bus.passed_on == []
