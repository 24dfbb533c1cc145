"""Our rules lead to no harm in any reachable state; each rule left out leads to the harm it is there for."""

import pytest

from model.lifecycle import Node, Row, Rules, Stage, World, explore, mirrored, moves_of


def test_A12_our_rules_lead_to_no_violation_in_any_reachable_state() -> None:
    explored = explore(Rules())

    assert explored.violations == {}
    assert explored.states > 10_000


def test_A12_deciding_again_is_as_safe_as_the_lock() -> None:
    assert explore(Rules(reschedule="re-decide")).violations == {}


@pytest.mark.parametrize(
    ("rules", "violations"),
    [
        (Rules(has_fence=False), {"I2 a stale outcome was accepted"}),
        (Rules(has_rescue=False), {"I5 stuck in RUNNING"}),
        (Rules(reschedule="swallow"), {"I3 an acknowledged reschedule was swallowed"}),
        (Rules(reschedule="blind"), {"I1 what was final has changed"}),
        (Rules(unit_key=False), {"I6 the receiver cannot tell that both calls are for one unit"}),
        (Rules(claim_locks_node=False), {"I5 stuck in RUNNING"}),
        (Rules(claim_asks_fenced=False), {"I5 stuck in RUNNING"}),
        (Rules(gives_back_lost=False), {"I5 stuck in RUNNING"}),
    ],
    ids=[
        "seed 001: no fence",
        "seed 003: no rescue",
        "seed 000: zero rows are the end",
        "seed 000: a blind cancel",
        "seed 002: key of job and fire time",
        "a claim does not hold its node's row",
        "a fenced node may claim",
        "a row that was born running is forgotten",
    ],
)
def test_a_rule_left_out_leads_to_the_harm_it_is_there_for(rules: Rules, violations: set[str]) -> None:
    explored = explore(rules)

    assert set(explored.violations) == violations
    for way in explored.violations.values():
        assert 0 < len(way) <= 12


def test_the_way_to_a_stuck_row_is_a_claim_that_outlives_its_rescue() -> None:
    way = explore(Rules(claim_locks_node=False)).violations["I5 stuck in RUNNING"]

    claiming = next(step for step in way if "may claim" in step)
    claimed = next(step for step in way if " claims " in step and "nothing" not in step)
    rescued = next(step for step in way if "is rescued" in step)
    assert way.index(claiming) < way.index(rescued) < way.index(claimed)


def test_a_claim_at_birth_whose_answer_is_lost_is_stuck_unless_its_node_gives_it_back() -> None:
    way = explore(Rules(gives_back_lost=False)).violations["I5 stuck in RUNNING"]

    assert any("claims at birth, unanswered" in step for step in way)


def test_a_node_that_is_fenced_before_its_insert_commits_bears_no_running_row() -> None:
    """The lock on the row of the node holds for a claim at birth: a fence waits for the commit, and so the rescue sees it."""
    bearing = World(nodes=(Node(1, "bearing", claim_incarnation=1), Node(2)))

    assert "node 0 is fenced" not in [name for name, _ in moves_of(bearing, Rules())]
    assert "node 0 is fenced" in [name for name, _ in moves_of(bearing, Rules(claim_locks_node=False))]


@pytest.mark.parametrize("rules", [Rules(), Rules(has_fence=False, claim_locks_node=False, reschedule="blind")])
def test_a_mirror_image_leads_to_the_mirror_images_of_what_its_original_leads_to(rules: Rules) -> None:
    """By this the model need not visit both: shown for every state within five moves of two busy nodes."""
    held = Row(Stage.RUNNING, 1, owner=3)
    worlds = {World(), World((held,), (Node(3, "holding", 0, 1, 3), Node(2, "claiming", claim_incarnation=2)))}
    for _ in range(5):
        for world in worlds:
            following = {after for _, after in moves_of(world, rules)}
            assert {mirrored(after) for after in following} == {after for _, after in moves_of(mirrored(world), rules)}
            assert mirrored(mirrored(world)) == world
        worlds = {after for world in worlds for _, after in moves_of(world, rules)}
    assert len(worlds) > 1_000
