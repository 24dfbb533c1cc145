"""The bus on which wakes travel inside a process."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horai.core.settings import SHARDS
from horai.core.wakes import (
    ENTRIES,
    CatchupWake,
    EverywhereWake,
    LaneWake,
    MoveWaitingWake,
    NodesWake,
    OutcomeWake,
    QueueWake,
    ScheduleWake,
    Wake,
)
from horai.db.claims import Claimable
from horai.db.wakeups import Wakeups

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
KINDS: list[Wake] = [
    LaneWake(3, 7, NOON),
    ScheduleWake(9, NOON),
    OutcomeWake(5, 2),
    QueueWake(4),
    MoveWaitingWake(),
    CatchupWake(),
    NodesWake(),
    EverywhereWake(),
]


class Bus:
    """Wakeups with a listener on every kind, which note what they hear, and a herald."""

    def __init__(self) -> None:
        self.wakeups = Wakeups()
        self.heard: list[tuple[Any, ...]] = []
        self.passed_on: list[Wake] = []
        self.wakeups.listen(lambda *wake: self.heard.append(("lane", *wake)))
        self.wakeups.listen_to_schedules(lambda *wake: self.heard.append(("schedule", *wake)))
        self.wakeups.listen_to_outcomes(lambda *wake: self.heard.append(("outcome", *wake)))
        self.wakeups.listen_to_queues(lambda *wake: self.heard.append(("queue", *wake)))
        self.wakeups.listen_to_relanes(lambda: self.heard.append(("relane",)))
        self.wakeups.listen_to_catchups(lambda: self.heard.append(("catchups",)))
        self.wakeups.listen_to_nodes(lambda: self.heard.append(("nodes",)))
        self.wakeups.listen_to_everything(lambda: self.heard.append(("everything",)))
        self.wakeups.pass_on_to(self.passed_on.append)


def send_each_kind(wakeups: Wakeups) -> None:
    wakeups.wake(7, NOON, 3)
    wakeups.wake_schedule(9, NOON)
    wakeups.claim_ended(5, 2)
    wakeups.queue_changed(4)
    wakeups.relane_asked()
    wakeups.catchups_asked()
    wakeups.nodes_changed()
    wakeups.rescan_all()


EACH_KIND = [
    ("lane", 3, 7, NOON),
    ("schedule", 9, NOON),
    ("outcome", 5, 2),
    ("queue", 4),
    ("relane",),
    ("catchups",),
    ("nodes",),
    ("everything",),
    ("relane",),
    ("catchups",),
    ("nodes",),
]


def test_each_kind_of_wake_reaches_its_listeners_at_once_and_the_herald():
    bus = Bus()

    send_each_kind(bus.wakeups)

    assert bus.heard == EACH_KIND
    assert bus.passed_on == KINDS


def test_what_is_heard_from_others_is_not_passed_on():
    bus = Bus()

    for wake in KINDS:
        bus.wakeups.hear(wake)

    assert bus.heard == EACH_KIND
    assert bus.passed_on == []


def test_several_listeners_hear_the_same_wake():
    wakeups, heard = Wakeups(), list[int]()
    for number in range(3):
        wakeups.listen(lambda *_, number=number: heard.append(number))

    wakeups.wake(7, NOON)

    assert heard == [0, 1, 2]


def test_E9_rows_of_one_place_are_one_wake_for_the_earliest():
    bus = Bus()

    bus.wakeups.announce(Claimable(3 + number * SHARDS, 7, NOON - number * SECOND) for number in range(5))

    assert bus.heard == [("lane", 3, 7, NOON - 4 * SECOND)]


def test_rows_of_several_places_are_told_apart():
    bus = Bus()

    bus.wakeups.announce([Claimable(1, 7, NOON), Claimable(2, 7, NOON), Claimable(1 + SHARDS, 8, NOON)])

    assert bus.heard == [("lane", 1, 7, NOON), ("lane", 2, 7, NOON), ("lane", 1, 8, NOON)]


@pytest.mark.parametrize(("places", "wakes"), [(ENTRIES, ENTRIES), (ENTRIES + 1, 1)])
def test_many_places_of_a_lane_are_one_wake_for_the_lane(places: int, wakes: int):
    bus = Bus()

    bus.wakeups.announce(Claimable(number, 7, NOON + number * SECOND) for number in range(places))

    assert len(bus.heard) == wakes
    if wakes == 1:
        assert bus.heard == [("lane", None, 7, NOON)]


def test_the_parking_lane_concerns_nobody():
    bus = Bus()

    bus.wakeups.wake(0, NOON)
    bus.wakeups.announce([Claimable(1, 0, NOON)])

    assert bus.heard == []
    assert bus.passed_on == []
