"""Slots and turns of tenants: a tenant that takes all it can leaves room for the others."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.core.tenant_shares import TIMES_THE_FREE, TenantLines, TenantSlots


def slots(count: int) -> TenantSlots:
    made = TenantSlots(count)
    made.is_shared = True
    return made


def fill(held: TenantSlots, tenants: int) -> list[int]:
    """Let tenants take slots in turns until none of them has room. Return how many each holds."""
    taken = [0] * tenants
    while any(held.room(tenant) for tenant in range(tenants)):
        for tenant in range(tenants):
            if held.room(tenant):
                held.begin(tenant, 1)
                taken[tenant] += 1
    return taken


@pytest.mark.parametrize(("tenants", "each"), [(1, 3000), (2, 1714), (3, 1200)])
def test_C2b_busy_tenants_leave_slots_for_one_that_holds_none(tenants: int, each: int):
    held = slots(4000)
    assert fill(held, tenants) == [each] * tenants
    assert held.room(tenants) >= 100


def test_a_tenant_takes_all_its_room_at_once():
    held = slots(4000)
    held.begin(1, held.room(1))
    assert held.room(1) == 0
    assert held.room(2) == TIMES_THE_FREE * 1000 // (TIMES_THE_FREE + 1)


def test_the_only_tenant_of_a_process_has_every_slot():
    assert TenantSlots(4000).room(1) == 4000


def test_a_single_slot_goes_to_a_tenant_that_holds_none():
    held = slots(1)
    assert held.room(1) == 1
    held.begin(1, 1)
    assert (held.room(1), held.room(2)) == (0, 0)
    held.end(1, 1)
    assert held.room(2) == 1


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=200), st.integers(1, 50))
def test_no_order_of_begins_and_ends_exceeds_the_slots_or_locks_a_tenant_out(steps: list[tuple[int, bool]], count: int):
    held, taken = slots(count), Counter[int]()
    for tenant, begins in steps:
        if begins and held.room(tenant):
            held.begin(tenant, 1)
            taken[tenant] += 1
        elif not begins and taken[tenant]:
            held.end(tenant, 1)
            taken[tenant] -= 1
        assert taken.total() <= count
        assert held.room(9) >= min(count - taken.total(), 1)


def test_C2b_tenants_take_turns_and_each_keeps_its_order():
    lines = TenantLines[str]()
    lines.add(1, ["a1", "a2", "a3"])
    lines.add(2, ["b1", "b2"])
    lines.add(3, [])
    lines.add(1, ["a4"])
    assert (lines.length(1), lines.length(2), lines.length(3)) == (4, 2, 0)
    taken = [lines.take() for _ in range(6)]
    assert taken == ["a1", "b1", "a2", "b2", "a3", "a4"]
    assert not lines


def test_a_tenant_that_comes_back_joins_at_the_end():
    lines = TenantLines[int]()
    lines.add(1, [1])
    lines.add(2, [2, 3])
    assert lines.take() == 1
    lines.add(1, [4])
    assert [lines.take() for _ in range(3)] == [2, 4, 3]
