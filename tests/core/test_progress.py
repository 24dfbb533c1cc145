"""Progress: notes of attempts are kept within bounds, and the last note is never lost to the first."""

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.core.calls import Call, WorkerTarget
from horai.core.progress import (
    ATTEMPTS,
    LINES,
    MESSAGE_BYTES,
    MORE,
    STEP,
    STEPS,
    WAITING,
    ProgressNote,
    ProgressNotes,
    message_text,
)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ALL = 10**9


def call(instance_id: int = 5, fence: int = 2) -> Call:
    target = WorkerTarget("publish")
    return Call(instance_id, 1, "publish", "default", None, NOON, NOON, 3, fence, NOON, 0, None, target, None, (), 7)


def said(notebook: ProgressNotes) -> list[tuple[float | None, str | None]]:
    return [(note.progress, note.message) for note in notebook.take(ALL)]


def test_a_note_says_whose_it_is_and_when():
    notebook = ProgressNotes()

    notebook.add(call(), NOON, 0.5, "half")

    assert notebook.take(ALL) == [ProgressNote(5, 2, 1, NOON, 7, 3, 0.5, "half", "default")]
    assert len(notebook) == 0


def test_of_steps_that_wait_the_last_is_kept():
    notebook = ProgressNotes()

    for percent in range(101):
        notebook.add(call(), NOON + timedelta(seconds=percent), percent / 100, None)

    (note,) = notebook.take(ALL)
    assert (note.progress, note.at) == (1.0, NOON + timedelta(seconds=100))


def test_a_step_replaces_a_step_and_no_line():
    notebook = ProgressNotes()

    notebook.add(call(), NOON, 0.1, "begun")
    notebook.add(call(), NOON, 0.2, None)
    notebook.add(call(), NOON, None, "a line")
    notebook.add(call(), NOON, 0.3, None)
    notebook.add(call(fence=3), NOON, 0.9, None)

    in_order = sorted(notebook.take(ALL), key=lambda note: note.n)
    assert [(note.fence, note.progress, note.message) for note in in_order] == [
        (2, 0.1, "begun"),
        (2, None, "a line"),
        (2, 0.3, None),
        (3, 0.9, None),
    ]


def test_a_note_that_was_taken_is_not_replaced_by_a_later_step():
    notebook = ProgressNotes()
    notebook.add(call(), NOON, 0.1, None)
    taken = notebook.take(ALL)

    notebook.add(call(), NOON, 0.2, None)

    assert [note.progress for note in taken] == [0.1]
    assert said(notebook) == [(0.2, None)]


def test_invisibly_small_progress_steps_are_dropped_except_the_last_one():
    notebook = ProgressNotes()
    kept: list[float | None] = []
    for progress in (0.5, 0.5, 0.5 + STEP / 2, 0.5 + STEP * 1.5, 1 - STEP / 2, 1.0, 1.0):
        notebook.add(call(), NOON, progress, None)
        kept += [progress for progress, _ in said(notebook)]

    assert kept == [0.5, 0.5 + STEP * 1.5, 1 - STEP / 2, 1.0]
    assert notebook.dropped == 0


def test_the_lines_of_an_attempt_are_bounded_and_one_says_that_there_was_more():
    notebook = ProgressNotes()

    for number in range(LINES + 50):
        notebook.add(call(), NOON, None, str(number))

    found = said(notebook)
    assert len(found) == LINES + 1
    assert found[-2:] == [(None, str(LINES - 1)), (None, MORE)]
    assert notebook.dropped == 0


def test_an_attempt_over_its_line_limit_still_reports_progress():
    notebook = ProgressNotes()
    for number in range(LINES + 1):
        notebook.add(call(), NOON, None, str(number))
    notebook.take(ALL)

    notebook.add(call(), NOON, 0.25, "a quarter")
    notebook.add(call(), NOON, None, "nobody reads this")

    assert said(notebook) == [(0.25, None)]


def test_steps_to_and_fro_are_bounded_too():
    notebook = ProgressNotes()
    kept = 0
    for progress in itertools.islice(itertools.cycle((0.2, 0.4, 1.0)), 5 * STEPS):
        notebook.add(call(), NOON, progress, None)
        kept += len(said(notebook))

    assert kept <= STEPS + 1


def test_one_attempt_cannot_take_the_place_of_all_others():
    notebook = ProgressNotes()
    for number in range(20 * WAITING):
        notebook.add(call(), NOON, number / (20 * WAITING), "x")

    notebook.add(call(instance_id=6), NOON, None, "heard")

    assert said(notebook)[-1] == (None, "heard")
    assert notebook.dropped == 0


def test_notes_without_room_are_dropped_and_counted():
    notebook = ProgressNotes()
    for instance_id in range(WAITING + 3):
        notebook.add(call(instance_id), NOON, 0.5, None)

    assert (len(notebook), notebook.dropped) == (WAITING, 3)
    notebook.take(ALL)
    notebook.add(call(WAITING + 1), NOON, 0.5, None)
    assert said(notebook) == [(0.5, None)], "a step that was dropped does not count as told"


def test_notes_that_are_put_back_come_first_and_the_newest_notes_are_dropped():
    notebook = ProgressNotes()
    for instance_id in range(WAITING):
        notebook.add(call(instance_id), NOON, None, "old")
    taken = notebook.take(1_000)
    for instance_id in range(500):
        notebook.add(call(WAITING + instance_id), NOON, None, "new")

    notebook.put_back(taken)

    waiting = notebook.take(ALL)
    assert waiting[:1_000] == taken
    assert [note.message for note in waiting].count("new") == 0
    assert (len(waiting), notebook.dropped) == (WAITING, 500)


def test_a_step_after_others_were_put_back_is_a_note_of_its_own():
    notebook = ProgressNotes()
    notebook.add(call(), NOON, 0.1, None)
    taken = notebook.take(ALL)
    notebook.add(call(), NOON, 0.2, None)
    notebook.put_back(taken)

    notebook.add(call(), NOON, 0.3, None)

    assert [progress for progress, _ in said(notebook)] == [0.1, 0.2, 0.3]


def test_attempts_that_said_nothing_for_long_are_forgotten():
    notebook = ProgressNotes()
    for instance_id in range(ATTEMPTS + 100):
        notebook.add(call(instance_id), NOON, None, "x")
        notebook.add(call(10**6), NOON, None, "always there")
        notebook.take(ALL)

    assert len(notebook._said) == ATTEMPTS
    assert (10**6, 2) in notebook._said


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("", ""),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("a\x00b\ud800c\udfffd", "a\ufffdb\ufffdc\ufffdd"),
        ("x" * MESSAGE_BYTES, "x" * MESSAGE_BYTES),
        ("x" * (MESSAGE_BYTES + 1), "x" * (MESSAGE_BYTES - 3) + "…"),
        ("é" * MESSAGE_BYTES, "é" * ((MESSAGE_BYTES - 3) // 2) + "…"),
    ],
)
def test_a_message_is_kept_as_far_as_a_column_can_hold_it(text: str, kept: str):
    assert message_text(text) == kept


@given(st.text(st.characters(categories=["L", "Cs", "Cc", "S"]), max_size=3 * MESSAGE_BYTES))
def test_any_message_can_be_stored(text: str):
    kept = message_text(text)

    assert len(kept.encode()) <= MESSAGE_BYTES
    assert "\x00" not in kept
