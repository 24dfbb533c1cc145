"""The decisions of a reconciler on a key, and on a row."""

from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from horai.core.job import JobStatus
from horai.core.masking import shown_database_url
from horai.core.states import FINAL, CancelReason, State
from horai.features.reconcile.definition import changed_document, job_document
from horai.features.reconcile.rules import (
    MOST_EXAMPLES,
    DesiredInstance,
    EndedKey,
    Faulty,
    ReconcileCounts,
    SourceChoice,
    choose,
    read_row,
    sort_rows,
    tally_of,
)

AT = datetime(2026, 1, 1, tzinfo=UTC)
WANTED = DesiredInstance("a", AT)
ENDINGS = [
    (state, reason) for state in sorted(FINAL) for reason in (CancelReason if state is State.CANCELLED else (None,))
]
VANISHED = (State.CANCELLED, CancelReason.SUPERSEDED)


def test_B16_an_unknown_key_is_created_and_a_live_key_is_kept() -> None:
    assert choose(WANTED, is_live=False, ended=None) is SourceChoice.create
    assert choose(WANTED, is_live=True, ended=None) is SourceChoice.keep
    assert choose(WANTED, is_live=True, ended=EndedKey(True, State.SUCCESS, None)) is SourceChoice.keep


@pytest.mark.parametrize(("state", "reason"), ENDINGS)
def test_B16_of_all_ends_only_a_vanished_successor_is_made_again(state: State, reason: CancelReason | None) -> None:
    choice = choose(WANTED, is_live=False, ended=EndedKey(state is State.SUCCESS, state, reason))

    assert choice is (SourceChoice.create if (state, reason) == VANISHED else SourceChoice.leave)


@pytest.mark.parametrize(("state", "reason"), ENDINGS)
def test_B16_a_key_that_has_ever_succeeded_is_never_created_again(state: State, reason: CancelReason | None) -> None:
    assert choose(WANTED, is_live=False, ended=EndedKey(True, state, reason)) is SourceChoice.leave


def test_B16_a_version_lower_than_the_accepted_one_says_nothing_new() -> None:
    vanished = EndedKey(False, *VANISHED, version=5)

    assert choose(DesiredInstance("a", AT, version=4), is_live=False, ended=vanished) is SourceChoice.leave
    assert choose(DesiredInstance("a", AT, version=5), is_live=False, ended=vanished) is SourceChoice.create


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.datetimes(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(["key", "executeTime", "payload", "version", "other"]), json_values))
def test_B16_no_row_makes_the_reader_fail(row: dict[str, object]) -> None:
    assert isinstance(read_row(row), DesiredInstance | Faulty)


def test_B16_an_invalid_row_with_a_readable_key_keeps_its_key() -> None:
    assert read_row({"key": "a", "executeTime": 3}) == Faulty("a", "executeTime: must be an instant, not int")
    assert read_row({"key": 12, "executeTime": AT}) == DesiredInstance("12", AT)
    assert read_row({"key": "a\x00", "executeTime": AT}) == Faulty(None, "key: contains a NUL character")


def test_B16_counts_add_up_and_examples_are_the_first_few() -> None:
    rows = [DesiredInstance(f"{number:03}", AT) for number in range(50)]
    page = sort_rows([*rows, rows[0], Faulty(None, "x")])
    tally = tally_of(page, dict.fromkeys(page.wanted, SourceChoice.create), 49)

    both = ReconcileCounts(found=1, left_alone=1, missing_keys=("first",)).plus(tally)

    assert (tally.found, tally.missing, tally.created, tally.faulty) == (52, 50, 49, 2)
    assert (both.found, both.left_alone, len(both.missing_keys)) == (53, 1, MOST_EXAMPLES)
    assert both.missing_keys[0] == "first"


def test_a_reconciler_without_a_schedule_has_no_policies_about_slots() -> None:
    assert "overlap" not in job_document("a", {})
    assert job_document("a", {"every": "5m"})["overlap"] == "skip"


def test_a_changed_schedule_brings_its_policies_and_takes_them_along() -> None:
    on_demand = job_document("a", {})

    scheduled = changed_document(on_demand, JobStatus.PAUSED, {"every": "5m"})
    by_cron = changed_document(scheduled, JobStatus.PAUSED, {"cron": "0 3 * * *", "timezone": "Asia/Shanghai"})

    assert scheduled == {**job_document("a", {"every": "5m"}), "status": "PAUSED"}
    assert by_cron == {**job_document("a", {"cron": "0 3 * * *", "timezone": "Asia/Shanghai"}), "status": "PAUSED"}
    assert changed_document(by_cron, JobStatus.ACTIVE, {"cron": None}) == {**on_demand, "status": "ACTIVE"}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:p@h:1/d", "postgresql://u:***@h:1/d"),
        ("postgresql://u:p%40x@h/d", "postgresql://u:***@h/d"),
        ("postgresql://u@h/d?password=p&sslmode=require", "postgresql://u@h/d?password=***&sslmode=require"),
        ("postgresql://h/d", "postgresql://h/d"),
    ],
)
def test_a_database_is_shown_without_its_password(url: str, shown: str) -> None:
    assert shown_database_url(url) == shown
