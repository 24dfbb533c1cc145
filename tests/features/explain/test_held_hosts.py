"""Why an instance waits for its host: the circuit breaker or the retry budget, as far as they concern it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from horai.core.health import HeldHost
from horai.core.host_gate import GateState
from horai.core.states import State
from horai.core.timing import Timing
from horai.features.explain import Facts, Hindrance, InstanceFact, JobFacts, Verdict, holds_of, story_of

NOW = datetime(2026, 11, 16, 9, tzinfo=UTC)
SECOND = timedelta(seconds=1)
HELD = HeldHost("default", "http://shop.test", GateState.OPEN, NOW - 20 * SECOND, NOW + 7 * SECOND)
DUE = InstanceFact(5, State.INIT, False, NOW - 60 * SECOND, due=NOW - 60 * SECOND)
GIVEN_BACK = replace(DUE, due=NOW + 9 * SECOND)
PLANNED = replace(DUE, execute_time=NOW + 3600 * SECOND, due=NOW + 3600 * SECOND)
BACKING_OFF = replace(DUE, state=State.FAIL, due=NOW + 9 * SECOND, retry_count=1)
RETRY_DUE = replace(DUE, state=State.FAIL, retry_count=1)
RETRY_GIVEN_BACK = replace(GIVEN_BACK, retry_count=1)


def facts(state: GateState | None) -> Facts:
    held = None if state is None else replace(HELD, state=state)
    return Facts(NOW, JobFacts(7, Timing(), NOW, NOW), held_host=held)


def kinds(state: GateState | None, run: InstanceFact) -> list[Hindrance]:
    found = [hold.kind for hold in holds_of(facts(state), run)]
    return [kind for kind in found if kind in {Hindrance.BREAKER, Hindrance.RETRY_BUDGET, Hindrance.HOST_FULL}]


@pytest.mark.parametrize("state", [GateState.OPEN, GateState.HALF_OPEN, GateState.RAMPING])
@pytest.mark.parametrize(
    ("run", "is_held"),
    [
        (DUE, True),
        (GIVEN_BACK, True),
        (RETRY_DUE, True),
        (RETRY_GIVEN_BACK, True),
        (PLANNED, False),
        (BACKING_OFF, False),
    ],
)
def test_C60_a_breaker_holds_due_instances_and_those_given_back(state: GateState, run: InstanceFact, is_held: bool):
    assert kinds(state, run) == ([Hindrance.BREAKER] if is_held else [])
    assert story_of(facts(state), run, run.execute_time).verdict is (Verdict.HELD if is_held else Verdict.WAITING)


@pytest.mark.parametrize(
    ("state", "run", "found"),
    [
        (GateState.RECOVERING, GIVEN_BACK, [Hindrance.BREAKER]),
        (GateState.RECOVERING, DUE, []),
        (GateState.RETRIES_HELD, RETRY_GIVEN_BACK, [Hindrance.RETRY_BUDGET]),
        (GateState.RETRIES_HELD, RETRY_DUE, [Hindrance.RETRY_BUDGET]),
        (GateState.RETRIES_HELD, BACKING_OFF, []),
        (GateState.FULL, DUE, [Hindrance.HOST_FULL]),
        (GateState.FULL, GIVEN_BACK, [Hindrance.HOST_FULL]),
        (GateState.FULL, PLANNED, []),
        (GateState.RETRIES_HELD, DUE, []),
        (None, DUE, []),
    ],
)
def test_C60_a_closed_breaker_a_spent_budget_and_a_full_host_hold_only_some(
    state: GateState | None, run: InstanceFact, found: list[Hindrance]
):
    assert kinds(state, run) == found


def test_C60_the_sentence_names_the_host_since_when_and_the_next_probe():
    why = story_of(facts(GateState.OPEN), DUE, DUE.execute_time).why.sentence()
    assert why == (
        "Instance 5 is held: the circuit breaker of http://shop.test is open since 2026-11-16T08:59:40+00:00, "
        "because its calls failed; the next probe is due at 2026-11-16T09:00:07+00:00."
    )


def test_an_instance_that_runs_or_has_ended_waits_for_no_host():
    for state in (State.RUNNING, State.SUCCESS, State.DEAD, State.CANCELLED):
        assert holds_of(facts(GateState.OPEN), replace(DUE, state=state)) == []
