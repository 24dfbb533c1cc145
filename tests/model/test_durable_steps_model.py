"""Our rules of records, suspension and signals lead to no harm; each rule left out leads to the harm it is there for."""

import pytest

from model.durable_steps import StepRules, explore

ZOMBIE = "a zombie's record was written"
AGAIN = "a finished step ran again"
ASLEEP = "a signal did not wake the instance"
UNHEARD = "the end of a child did not wake its caller"


def test_the_rules_of_durable_steps_lead_to_no_violation_in_any_reachable_state() -> None:
    explored = explore(StepRules())

    assert explored.violations == {}
    assert explored.states > 5_000


@pytest.mark.parametrize(
    ("rules", "violations"),
    [
        (StepRules(record_has_fence=False), {ZOMBIE, AGAIN}),
        (StepRules(record_locks_row=False), {ZOMBIE, AGAIN}),
        (StepRules(suspension_has_fence=False), {"a zombie suspended another claim", UNHEARD}),
        (StepRules(loads_records=False), {AGAIN, UNHEARD}),
        (StepRules(suspension_looks_again=False), {ASLEEP}),
        (StepRules(signal_locks_row=False), {ASLEEP}),
        (StepRules(call_is_recorded_with_child=False), {"a call has two children"}),
        (StepRules(sweep_wakes_callers=False), {UNHEARD}),
        (StepRules(wake_needs_suspension=False), {UNHEARD}),
        (StepRules(sweep_ends_orphans=False), {"a child outlived its caller"}),
    ],
    ids=lambda value: str(value)[:80] if isinstance(value, StepRules) else None,
)
def test_a_rule_of_durable_steps_left_out_leads_to_its_harm(rules: StepRules, violations: set[str]) -> None:
    explored = explore(rules)

    assert set(explored.violations) == violations
    for way in explored.violations.values():
        assert 0 < len(way) <= 20
