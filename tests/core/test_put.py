import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.core.put import Past, PutDecision, PutOptions, decide_live, decide_past, is_outdated
from horai.core.states import FINAL, LIVE, State

versions = st.none() | st.integers(-3, 3)


@pytest.mark.parametrize("state", [State.INIT, State.FAIL, State.BLOCKED])
def test_A5_A6_a_put_moves_an_instance_that_does_not_run(state: State):
    assert decide_live(state, None, PutOptions()) is PutDecision.UPDATED


def test_A9_A12_a_put_supersedes_a_running_instance():
    assert decide_live(State.RUNNING, None, PutOptions()) is PutDecision.SUPERSEDED


def test_A10_A12_a_put_is_ignored_after_a_success():
    assert decide_past(Past(succeeded=True), PutOptions()) is PutDecision.IGNORED


def test_A12_a_put_inserts_an_instance_for_a_new_or_cancelled_key():
    assert decide_past(Past(), PutOptions()) is PutDecision.INSERTED
    assert decide_past(Past(succeeded=False, version=3), PutOptions()) is PutDecision.INSERTED


def test_again_runs_a_key_once_more_after_its_success():
    assert decide_past(Past(succeeded=True), PutOptions(again=True)) is PutDecision.INSERTED


def test_again_does_not_excuse_an_old_version():
    assert decide_past(Past(succeeded=True, version=5), PutOptions(version=4, again=True)) is PutDecision.IGNORED


@pytest.mark.parametrize("state", sorted(FINAL))
def test_no_live_instance_is_in_a_final_state(state: State):
    with pytest.raises(ValueError, match="final"):
        decide_live(state, None, PutOptions())


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
    assert is_outdated(PutOptions(version=wanted), accepted) is outdated


@given(state=st.sampled_from(sorted(LIVE)), accepted=versions, version=versions, again=st.booleans())
def test_a_put_with_an_outdated_version_is_ignored_in_every_live_state(
    state: State, accepted: int | None, version: int | None, again: bool
):
    intent = PutOptions(version, again)

    assert (decide_live(state, accepted, intent) is PutDecision.IGNORED) == is_outdated(intent, accepted)
