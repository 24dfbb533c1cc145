import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.core.put import Intent, Past, Verdict, decide_live, decide_past, is_outdated
from horai.core.states import FINAL, LIVE, State

versions = st.none() | st.integers(-3, 3)


@pytest.mark.parametrize("state", [State.INIT, State.FAIL, State.BLOCKED])
def test_A5_A6_what_has_not_started_is_moved(state: State):
    assert decide_live(state, None, Intent()) is Verdict.UPDATED


def test_A9_A12_what_runs_is_superseded():
    assert decide_live(State.RUNNING, None, Intent()) is Verdict.SUPERSEDED


def test_A10_A12_what_has_succeeded_is_ignored():
    assert decide_past(Past(succeeded=True), Intent()) is Verdict.IGNORED


def test_A12_what_was_cancelled_or_never_was_is_inserted():
    assert decide_past(Past(), Intent()) is Verdict.INSERTED
    assert decide_past(Past(succeeded=False, version=3), Intent()) is Verdict.INSERTED


def test_again_runs_a_key_once_more_after_its_success():
    assert decide_past(Past(succeeded=True), Intent(again=True)) is Verdict.INSERTED


def test_again_does_not_excuse_an_old_version():
    assert decide_past(Past(succeeded=True, version=5), Intent(version=4, again=True)) is Verdict.IGNORED


@pytest.mark.parametrize("state", sorted(FINAL))
def test_no_live_instance_is_in_a_final_state(state: State):
    with pytest.raises(ValueError, match="final"):
        decide_live(state, None, Intent())


@pytest.mark.parametrize(
    ("wanted", "accepted", "outdated"),
    [
        (None, None, False),
        (None, 7, False),
        (7, None, False),
        (6, 7, True),
        (7, 7, False),
        (8, 7, False),
        (-1, 0, True),
    ],
)
def test_only_a_lower_version_is_outdated(wanted: int | None, accepted: int | None, outdated: bool):
    assert is_outdated(Intent(version=wanted), accepted) is outdated


@given(state=st.sampled_from(sorted(LIVE)), accepted=versions, version=versions, again=st.booleans())
def test_an_outdated_intent_changes_nothing_whatever_the_state(
    state: State, accepted: int | None, version: int | None, again: bool
):
    intent = Intent(version, again)

    assert (decide_live(state, accepted, intent) is Verdict.IGNORED) == is_outdated(intent, accepted)
