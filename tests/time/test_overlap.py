from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horai.time.overlap import MOST_QUEUED, Overlap, OverlapDecision, Row, decide

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


def row(number: int, *, held: bool = True, slot: bool = True, begun: bool = False, minute: int | None = None) -> Row:
    """A row of a job; slots come in the order of their numbers unless a minute is given."""
    return Row(number, NOON + timedelta(minutes=number if minute is None else minute), held, slot, begun)


def held(*numbers: int) -> list[Row]:
    return [row(number) for number in numbers]


AT_WORK, BY_HAND = row(1, held=False), row(1, held=False, slot=False)


def decided(overlap: Overlap, rows: Iterable[Row]) -> tuple[set[int], set[int]]:
    verdict = decide(overlap, [*rows])
    return set(verdict.released), set(verdict.cancelled)


# One slot meets nothing, an earlier slot, or a run by hand


@pytest.mark.parametrize("overlap", Overlap)
def test_a_slot_that_overlaps_no_other_is_released(overlap: Overlap):
    assert decide(overlap, held(1)) == OverlapDecision(released=(1,))


@pytest.mark.parametrize("overlap", Overlap)
def test_without_a_slot_that_waits_nothing_is_decided(overlap: Overlap):
    assert decide(overlap, []) == decide(overlap, [AT_WORK, BY_HAND]) == OverlapDecision()


@pytest.mark.parametrize(
    ("overlap", "verdict"),
    [
        (Overlap.allow, OverlapDecision(released=(2,))),
        (Overlap.skip, OverlapDecision(cancelled=(2,))),
        (Overlap.queue, OverlapDecision()),
        (Overlap.replace, OverlapDecision(released=(2,), cancelled=(1,))),
    ],
)
def test_a_slot_that_meets_an_earlier_one_runs_beside_it_or_is_cancelled_or_waits_or_takes_its_place(
    overlap: Overlap, verdict: OverlapDecision
):
    assert decide(overlap, [AT_WORK, row(2)]) == verdict


@pytest.mark.parametrize(
    ("overlap", "verdict"),
    [
        (Overlap.allow, OverlapDecision(released=(2,))),
        (Overlap.skip, OverlapDecision(cancelled=(2,))),
        (Overlap.queue, OverlapDecision()),
        (Overlap.replace, OverlapDecision()),
    ],
)
def test_a_run_by_hand_is_yielded_to_and_never_replaced(overlap: Overlap, verdict: OverlapDecision):
    assert decide(overlap, [BY_HAND, row(2)]) == verdict


def test_a_run_by_hand_that_is_held_is_no_work_and_none_of_the_gates():
    waiting = row(1, slot=False)
    for overlap in Overlap:
        assert decide(overlap, [waiting, row(2)]) == OverlapDecision(released=(2,))


# Several slots at once: late ones, or after a pause


def test_allow_releases_all_of_several_slots():
    assert decide(Overlap.allow, [AT_WORK, *held(2, 3, 4)]) == OverlapDecision(released=(2, 3, 4))


def test_of_several_slots_skip_lets_the_oldest_go_and_cancels_the_others():
    assert decide(Overlap.skip, held(4, 2, 3)) == OverlapDecision(released=(2,), cancelled=(3, 4))
    assert decide(Overlap.skip, [AT_WORK, *held(4, 2, 3)]) == OverlapDecision(cancelled=(2, 3, 4))


def test_of_several_slots_queue_lets_the_oldest_go_and_the_others_wait():
    assert decide(Overlap.queue, held(4, 2, 3)) == OverlapDecision(released=(2,))


def test_of_several_slots_replace_keeps_the_newest():
    assert decided(Overlap.replace, [AT_WORK, *held(4, 2, 3)]) == ({4}, {1, 2, 3})


def test_while_a_run_by_hand_lasts_replace_keeps_the_newest_waiting():
    assert decided(Overlap.replace, [BY_HAND, *held(4, 2, 3)]) == (set(), {2, 3})


def test_a_slot_that_was_made_late_does_not_replace_a_newer_one_at_work():
    """With misfire all, slots of the downtime are made while those of now go on."""
    fresh, late = row(1, held=False, minute=60), row(2, minute=0)

    assert decide(Overlap.replace, [fresh, late]) == OverlapDecision(cancelled=(2,))


def test_a_slot_that_began_before_a_pause_is_released_first():
    begun = row(3, begun=True)
    for overlap in (Overlap.skip, Overlap.queue):
        assert decide(overlap, [*held(1, 2), begun]).released == (3,)


def test_a_queue_is_so_long_and_no_longer():
    waiting = held(*range(2, MOST_QUEUED + 3))

    assert decide(Overlap.queue, [AT_WORK, *waiting]) == OverlapDecision(cancelled=(MOST_QUEUED + 2,))
    assert decide(Overlap.queue, waiting) == OverlapDecision(released=(2,))


# What holds for any rows

rows_of_a_job = st.lists(
    st.builds(
        Row, st.integers(), st.integers(0, 9).map(lambda minute: NOON + timedelta(minutes=minute)), *[st.booleans()] * 3
    ),
    max_size=12,
).map(lambda rows: [replace(row, id=number) for number, row in enumerate(rows)])


def after(verdict: OverlapDecision, rows: list[Row]) -> list[Row]:
    left = [row for row in rows if row.id not in verdict.cancelled]
    return [replace(row, is_held=row.is_held and row.id not in verdict.released) for row in left]


@settings(deadline=None)
@given(st.sampled_from(Overlap), rows_of_a_job)
def test_decisions_concern_only_slots_and_release_only_slots_that_are_held(overlap: Overlap, rows: list[Row]):
    verdict = decide(overlap, rows)
    by_id = {row.id: row for row in rows}

    assert not {*verdict.released} & {*verdict.cancelled}
    assert all(by_id[number].is_slot for number in (*verdict.released, *verdict.cancelled))
    assert all(by_id[number].is_held for number in verdict.released)
    if overlap is not Overlap.replace:
        assert all(by_id[number].is_held for number in verdict.cancelled)


@settings(deadline=None)
@given(st.sampled_from(Overlap), rows_of_a_job)
def test_a_second_decision_after_the_first_one_changes_nothing(overlap: Overlap, rows: list[Row]):
    assert decide(overlap, after(decide(overlap, rows), rows)) == OverlapDecision()


@settings(deadline=None)
@given(st.sampled_from([Overlap.skip, Overlap.queue, Overlap.replace]), rows_of_a_job)
def test_no_slot_joins_another_at_work_and_none_waits_for_nothing(overlap: Overlap, rows: list[Row]):
    left = after(decide(overlap, rows), rows)

    let_go = [row for row in left if not row.is_held and row.id in {held.id for held in rows if held.is_held}]
    at_work = [row for row in left if not row.is_held]
    assert not let_go or at_work == let_go, "a released slot runs alone"
    assert at_work or not any(row.is_held and row.is_slot for row in left), "with nothing at work no slot waits"


@settings(deadline=None)
@given(rows_of_a_job.filter(lambda rows: any(row.is_held and row.is_slot for row in rows)))
def test_replace_leaves_the_newest_slot_of_all(rows: list[Row]):
    newest = max((row for row in rows if row.is_slot), key=lambda row: (row.fire_time, row.id))

    assert [row.id for row in after(decide(Overlap.replace, rows), rows) if row.is_slot] == [newest.id]
