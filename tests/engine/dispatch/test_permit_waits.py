"""The scans of a limited queue that are read together with the picks of a claim, and their urgency."""

from datetime import UTC, datetime

from horai.core.fairness import AGEING_SECONDS
from horai.core.job import Priority
from horai.core.queue import QueueSettings
from horai.db.claim_lanes import Lane
from horai.engine.dispatch.permit_waits import PermitWaits
from horai.engine.dispatch.scans import Scan, Scans

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
CORE, NORMAL, LOW, ELSEWHERE = Scan(0, 1), Scan(0, 2), Scan(0, 3), Scan(0, 4)


def waits() -> PermitWaits:
    """Of a queue with a lane of each of three priorities, and another queue."""
    one = QueueSettings(max_concurrency=1)
    scans = Scans(frozenset({""}), NOW)
    scans.own(frozenset({0}))
    scans.learn(
        [
            Lane(CORE.lane, 1, "q", Priority.core, "", 1, 1, one),
            Lane(NORMAL.lane, 1, "q", Priority.normal, "", 1, 1, one),
            Lane(LOW.lane, 1, "q", Priority.low, "", 1, 1, one),
            Lane(ELSEWHERE.lane, 1, "r", Priority.core, "", 2, 1, one),
        ]
    )
    return PermitWaits(scans)


def may_start(_: Scan) -> bool:
    return True


def test_C3a_a_less_urgent_claim_reads_the_more_urgent_scans_of_its_queue_that_are_short_of_permits():
    known = waits()
    known.note([(CORE, 2), (NORMAL, 2), (LOW, 2), (ELSEWHERE, 2)], {NORMAL: 2, CORE: 1}, 0.0)

    assert known.ahead_of([(LOW, 1)], may_start, 1.0) == {1: [CORE]}, "NORMAL gave all that it was asked for"
    assert known.ahead_of([(CORE, 1)], may_start, 1.0) == {1: []}
    assert known.ahead_of([(LOW, 1)], lambda scan: scan != CORE, 1.0) == {1: []}
    known.note_dry([CORE])
    assert known.ahead_of([(LOW, 1)], may_start, 1.0) == {1: []}
    assert known.ahead_of([(ELSEWHERE, 1)], may_start, 1.0) == {2: []}


def test_C3a_a_scan_that_waits_for_permits_becomes_more_urgent_until_it_gives_a_row():
    known = waits()
    known.note([(LOW, 1)], {}, 0.0)
    known.note([(LOW, 1)], {}, 2 * AGEING_SECONDS)

    assert known.urgency(LOW, AGEING_SECONDS - 1) == Priority.low
    assert known.urgency(LOW, AGEING_SECONDS) == Priority.normal
    assert known.ahead_of([(NORMAL, 1)], may_start, AGEING_SECONDS) == {1: [LOW]}, (
        "the longest due of the two comes first"
    )
    assert known.urgency(LOW, 9 * AGEING_SECONDS) == Priority.core
    assert known.ahead_of([(CORE, 1)], may_start, 9 * AGEING_SECONDS) == {1: [LOW]}
    known.note([(LOW, 2)], {LOW: 1}, 9 * AGEING_SECONDS)
    assert known.urgency(LOW, 9 * AGEING_SECONDS) == Priority.low
    assert known.ahead_of([(CORE, 1)], may_start, 9 * AGEING_SECONDS) == {1: []}
