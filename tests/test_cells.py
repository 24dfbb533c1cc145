"""The simulation of cells: its rules, and the table of docs/capacity.md that it writes."""

import random
from dataclasses import replace

import pytest
from tools import cells
from tools.cell_load import Fleet, loads_of
from tools.cells import CALM, HOT, LARGE, POLICIES, Cluster, MoveRate, Policy, simulate, two_choices

SMALL_FLEET = Fleet(cells=10, tenants=300, days=10, hot_per_day=3)
MOVING = Policy("moves", two_choices, moves_per_day=3)
OWN = replace(MOVING, has_own_cells=True, moves_per_day=100)


def cluster(loads: list[float], policy: Policy = MOVING, count: int = 3) -> Cluster:
    """Tenants of these loads, not yet in the cells that a test wants."""
    return Cluster(Fleet(cells=count, tenants=len(loads)), policy, loads, random.Random(1))


def placed(loads: list[float], places: list[int], policy: Policy = MOVING, count: int = 3) -> Cluster:
    """Tenants of these loads in these cells."""
    made = cluster(loads, policy, count)
    made.owned.clear()
    made.cell_of = [*places]
    made.next_day(loads)
    return made


def test_the_published_table_is_that_of_the_simulation() -> None:
    page = cells.PAGE.read_text("utf-8")

    assert cells.page_with(cells.table(), page) == page, "run `make docs`"


def test_a_seed_gives_the_same_tenants_again() -> None:
    assert loads_of(SMALL_FLEET, 1) == loads_of(SMALL_FLEET, 1) != loads_of(SMALL_FLEET, 2)


def test_the_first_day_uses_the_given_part_of_all_cells_and_few_tenants_have_most_of_it() -> None:
    fleet = Fleet()
    first, last = loads_of(fleet)[0], loads_of(fleet)[-1]

    assert sum(first) == pytest.approx(fleet.cells * fleet.used)
    assert max(*first, *last) == fleet.most, "the quota of a tenant bounds its load"
    assert sum(sorted(first)[-len(first) // 100 :]) > 0.2 * sum(first), (
        "one tenant of a hundred has a fifth of the load"
    )
    assert sum(last) > sum(first)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_every_tenant_is_in_one_cell_and_a_cell_has_the_load_of_its_tenants(policy: Policy) -> None:
    loads = loads_of(SMALL_FLEET)
    made = Cluster(SMALL_FLEET, policy, loads[0], random.Random(1))
    for today in loads:
        made.next_day(today)
        made.rebalance(policy.moves_per_day)

    assert len(made.cell_of) == SMALL_FLEET.tenants
    for cell, load in enumerate(made.cells):
        own = sum(loads[-1][tenant] for tenant, place in enumerate(made.cell_of) if place == cell)
        assert load == pytest.approx(own)


def test_a_hot_cell_is_relieved_until_it_is_calm_and_no_other_becomes_hot() -> None:
    made = placed([0.04] * 23 + [0.6], [0] * 23 + [1])

    moved = made.rebalance(100)

    assert len(moved) == 6, "from 0.92 to 0.68"
    assert all(load <= CALM for load in made.cells)


def test_a_cell_below_the_mark_loses_no_tenant() -> None:
    made = placed([0.04] * 19, [0] * 19)

    assert CALM < made.cells[0] <= HOT
    assert made.rebalance(100) == []


def test_moves_of_a_day_are_bounded() -> None:
    assert len(placed([0.04] * 25, [0] * 25).rebalance(2)) == 2
    assert placed([0.04] * 25, [0] * 25).rebalance(0) == []


def test_a_tenant_for_which_no_cell_has_room_stays() -> None:
    made = placed([0.05] * 18 + [0.68, 0.68], [0] * 18 + [1, 2])

    assert made.rebalance(100) == []
    assert made.cells[0] == pytest.approx(0.9)


def test_large_tenants_leave_first_only_where_the_policy_says_so() -> None:
    loads, places = [0.41] + [0.05] * 9, [0] * 10

    assert placed(loads, places, replace(MOVING, is_largest_first=True)).rebalance(100) == [0.41]
    assert placed(loads, places).rebalance(100) == [0.05] * 4


def test_a_large_tenant_has_a_cell_of_its_own_from_the_start() -> None:
    made = cluster([0.01] * 40 + [LARGE], OWN)

    assert [made.cell_of.count(cell) for cell in made.owned] == [1]
    assert made.cell_of[40] in made.owned


def test_a_tenant_that_grew_large_stays_and_its_cell_takes_no_other() -> None:
    made = placed([0.5] + [0.04] * 10, [0] * 11, OWN)

    moved = made.rebalance(100)

    assert made.cell_of[0] == 0
    assert set(moved) == {0.04}
    assert made.owned == {0}
    assert made.target_for(1) != 0


def test_the_loss_of_a_cell_takes_its_tenants_and_their_fires() -> None:
    fleet = Fleet(cells=2, tenants=4, days=0)

    outcome = simulate(Policy("all in the first", lambda *_: 0), fleet, [[0.1, 0.2, 0.3, 0.2]])

    assert outcome.lost_tenants == outcome.lost_fires == (0.5, 1.0)
    assert outcome.fullest == pytest.approx(0.8)


def test_fires_count_as_overloaded_in_a_cell_above_its_capacity_only() -> None:
    fleet = Fleet(cells=2, tenants=3, days=0)

    outcome = simulate(Policy("first", lambda *_: 0), fleet, [[0.5, 0.6, 0.1]])

    assert (outcome.overloaded, outcome.unsolved) == (1.0, 1)
    assert simulate(Policy("first", lambda *_: 0), fleet, [[0.5, 0.4, 0.1]]).overloaded == 0


def test_a_move_takes_as_long_as_its_definitions_at_the_measured_rates() -> None:
    rate = MoveRate(exported=1_000.0, imported=100.0)

    assert rate.seconds(0.01) == pytest.approx(10_000 / 1_000 + 10_000 / 100)
