"""The figures and promises of a drill, from records that are made up."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horai.cli.drills.outcome import Acknowledgement, DrillLimits, DrillRecord, counted, promises

FAILED = datetime(2026, 11, 17, 12, tzinfo=UTC)
PROMISED = DrillLimits(timedelta(seconds=15), timedelta(0))


def at(seconds: float) -> datetime:
    return FAILED + timedelta(seconds=seconds)


GOOD = DrillRecord(
    failed_at=FAILED,
    ended_at=at(10),
    acknowledged=[
        Acknowledgement(1, at(-2)),
        Acknowledgement(2, at(-1)),
        Acknowledgement(3, at(4)),
        Acknowledgement(4, at(9)),
    ],
    refused=7,
    calls={1: [1], 2: [1, 2], 3: [1], 4: [1]},
    ended={1: ("SUCCESS", at(-1.5)), 2: ("SUCCESS", at(6)), 3: ("SUCCESS", at(5)), 4: ("SUCCESS", at(20))},
    losses={2: 1},
    letters={90, 91},
    letters_after={90, 91, 92},
    violations=[],
)


def broken(record: DrillRecord, limits: DrillLimits = PROMISED) -> set[str]:
    return {promise.text for promise in promises(counted(record), limits) if not promise.is_kept}


def with_call(instance: int, fences: list[int]) -> DrillRecord:
    return replace(GOOD, calls={**GOOD.calls, instance: fences})


def test_a_good_record_keeps_every_promise() -> None:
    counts = counted(GOOD)

    assert broken(GOOD) == set()
    assert (counts.acknowledged, counts.refused, counts.calls, counts.repeated_in_flight) == (4, 7, 5, 1)


def test_the_recovery_time_is_the_longer_of_the_pause_of_writes_and_the_delay_of_work() -> None:
    counts = counted(GOOD)

    assert counts.writes_paused == timedelta(seconds=5), "between the writes at 4 s and 9 s"
    assert counts.work_delayed == timedelta(seconds=6), "work that was acknowledged later does not count"
    assert counts.rto == timedelta(seconds=6)


def test_writes_that_never_resume_pause_until_the_end() -> None:
    assert counted(replace(GOOD, acknowledged=GOOD.acknowledged[:2])).writes_paused == timedelta(seconds=10)


def test_the_recovery_point_is_the_age_of_the_oldest_lost_write() -> None:
    lost = replace(GOOD, ended={4: GOOD.ended[4]})
    counts = counted(lost)

    assert counts.lost == (1, 2, 3)
    assert counts.rpo == timedelta(seconds=2)
    assert broken(lost) == {"recovery point (RPO)", "acknowledged instances lost"}
    assert broken(lost, replace(PROMISED, rpo=timedelta(seconds=60), may_lose=True)) == set()
    assert broken(lost, replace(PROMISED, rpo=timedelta(seconds=1), may_lose=True)) == {"recovery point (RPO)"}


@pytest.mark.parametrize(
    "record",
    [
        replace(GOOD, ended={**GOOD.ended, 3: ("DEAD", at(5))}),
        replace(GOOD, calls={1: [1], 2: [1, 2], 4: [1]}),
    ],
    ids=["ended badly", "never called"],
)
def test_an_acknowledged_instance_is_lost_if_its_work_was_not_done(record: DrillRecord) -> None:
    assert counted(record).lost == (3,)
    assert broken(record) == {"acknowledged instances lost"}


@pytest.mark.parametrize(
    ("instance", "fences"), [(1, [1, 2]), (2, [1, 2, 3]), (2, [2, 2])], ids=["no loss", "one loss", "one claim"]
)
def test_a_call_that_no_loss_explains_is_a_repeat(instance: int, fences: list[int]) -> None:
    record = with_call(instance, fences)

    assert counted(record).repeated == (instance,)
    assert broken(record) == {"repeated calls outside work in flight"}


@pytest.mark.parametrize(
    ("change", "promise"),
    [
        ({"letters_after": {90}}, "dead letters lost"),
        ({"violations": ["I4: key a has 2 live instances"]}, "violated invariants"),
        ({"ended": {**GOOD.ended, 2: ("SUCCESS", at(16))}}, "recovery time (RTO)"),
    ],
)
def test_each_other_promise_can_be_broken(change: dict[str, Any], promise: str) -> None:
    assert broken(replace(GOOD, **change)) == {promise}
