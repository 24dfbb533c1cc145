"""The rule for reads from a replica: positions of the primary, and the last writes of callers."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from horai.core.replica_reads import LastWrites, PositionLog, PrimaryPosition, ReplayedPosition

START = datetime(2026, 1, 1, tzinfo=UTC)
REACH = 5.0


def taken(at: float, lsn: int, timeline: str | None = "00000001", lease: int = 0, node: int = 7) -> PrimaryPosition:
    return PrimaryPosition(at, lsn, timeline, node, START + timedelta(seconds=lease))


def replayed(lsn: int, lease: int = 0, node: int = 7) -> ReplayedPosition:
    return ReplayedPosition(lsn, node, START + timedelta(seconds=lease))


def log_of(*positions: PrimaryPosition) -> PositionLog:
    made = PositionLog(REACH)
    for position in positions:
        made.add(position)
    return made


def test_the_newest_replayed_position_tells_how_far_a_replica_is():
    log = log_of(taken(10, 100), taken(11, 200), taken(12, 300))

    assert log.covered(replayed(99), 12) is None
    assert log.covered(replayed(100), 12) == taken(10, 100)
    assert log.covered(replayed(299), 12) == taken(11, 200)
    assert log.covered(replayed(10_000), 12) == taken(12, 300)


def test_a_position_older_than_the_accepted_lag_does_not_count():
    log = log_of(taken(10, 100))

    assert log.covered(replayed(100), 15) is not None
    assert log.covered(replayed(100), 15.1) is None


def test_positions_are_forgotten_when_they_are_older_than_the_accepted_lag():
    log = log_of(taken(10, 100), taken(14, 200), taken(16, 300))

    assert log.covered(replayed(150), 15) is None


def test_a_replica_of_another_timeline_with_a_longer_log_is_not_covered_by_its_length():
    log = log_of(taken(10, 100, lease=8))

    assert log.covered(replayed(10_000, lease=7), 10) is None
    assert log.covered(ReplayedPosition(10_000, 7, None), 10) is None
    assert log.covered(replayed(10_000, lease=8, node=6), 10) is None


def test_after_a_change_of_the_timeline_positions_count_once_the_lease_was_renewed_on_it():
    log = log_of(taken(10, 100, lease=1))

    log.add(taken(11, 90, "00000002", lease=1))
    assert log.newest is None
    assert log.covered(replayed(10_000, lease=1), 11) is None

    log.add(taken(12, 91, "00000002", lease=1))
    assert log.newest is None

    log.add(taken(13, 95, "00000002", lease=3))
    assert log.covered(replayed(10_000, lease=1), 13) is None
    assert log.covered(replayed(95, lease=3), 13) == taken(13, 95, "00000002", lease=3)


def test_a_service_that_hides_its_timeline_has_positions():
    log = log_of(taken(10, 100, None), taken(11, 200, None))

    assert log.newest == replace(taken(11, 200), timeline=None)


def test_the_last_write_of_each_caller_is_kept_as_long_as_a_replica_may_lag():
    writes = LastWrites(REACH)
    writes.note("a", 1.0)
    writes.note("b", 2.0)
    writes.note("a", 3.0)

    assert (writes.of("a"), writes.of("b"), writes.of("c")) == (3.0, 2.0, 0.0)

    writes.note("c", 7.5)
    assert (writes.of("a"), writes.of("b"), writes.of("c")) == (3.0, 0.0, 7.5)
