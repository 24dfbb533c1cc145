"""Shares of a process's time: the busiest of several tenants waits, and one that uses little never does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.core.loop_shares import BURST, DEEPEST, LATELY, LONGEST_DEBT, MOST_LOAD, WINDOW, LoopShares, equal_part
from horai.operations.loop_time import LoopLoad


@pytest.mark.parametrize(
    ("rates", "share", "part"),
    [
        ([], 0.8, 0.8),
        ([0.1], 0.8, 0.8),
        ([0.5, 0.5], 0.8, 0.4),
        ([0.1, 0.7], 0.8, 0.7),
        ([0.1, 0.9], 0.8, 0.7),
        ([0.1, 0.2, 0.9], 0.8, 0.5),
        ([0.1, 0.1], 0.8, 0.7),
    ],
)
def test_C2b_time_that_a_tenant_does_not_need_is_for_the_others(rates: list[float], share: float, part: float):
    assert equal_part(rates, share) == pytest.approx(part)


@given(st.lists(st.floats(0.0, 1.0), min_size=1), st.floats(0.1, 1.0))
def test_no_tenant_gets_less_than_an_equal_part_and_all_together_get_the_share(rates: list[float], share: float):
    part = equal_part(rates, share)
    assert part >= share / len(rates) - 1e-9
    assert sum(min(rate, part) for rate in rates) <= share + 1e-9


class Process:
    """A process whose tenants take what they are given."""

    def __init__(self) -> None:
        self.now = 100.0
        self.worked = 0.0
        self.load = LoopLoad(lambda: self.now, lambda: self.worked)
        self.shares = LoopShares()

    def work(self, tenant: int, seconds: float) -> float:
        """Work for a tenant unless it has to wait. Return for how long it has to."""
        account = self.shares.account(tenant, self.now)
        wait = self.shares.wait(account, self.now, self.load())
        if not wait:
            account.begun += 1
            account.charge(seconds)
            self.worked += seconds
        return wait


def test_C2b_beside_another_tenant_the_busy_one_gets_its_share_of_the_time():
    process, used, quiet_waits = Process(), 0.0, 0.0
    for step in range(20_000):  # 20 s in steps of 1 ms
        process.now += 0.001
        if step % 100 == 0:
            quiet_waits += process.work(2, 0.001)
        if process.work(1, 0.001) == 0.0:
            used += 0.001
    assert quiet_waits == 0.0
    assert 0.5 * 20 <= used <= MOST_LOAD * 20 + BURST


def test_a_tenant_that_is_alone_never_waits():
    process = Process()
    assert not any(process.work(1, 0.01) for _ in range(1000))


def test_a_tenant_owes_nothing_for_the_time_in_which_it_was_alone():
    process = Process()
    for _ in range(1000):
        process.now += 0.001
        process.work(1, 0.01)
    process.work(2, 0.001)
    assert process.work(1, 0.01) == 0.0


def test_one_costly_request_does_not_keep_its_tenant_waiting_for_long():
    process = Process()
    process.work(2, 0.001)
    process.work(1, 10.0)
    process.now += 0.001
    assert 0.0 < process.work(1, 0.01) <= DEEPEST / (MOST_LOAD / 2)


def test_a_tenant_waits_for_a_second_at_most_beside_a_thousand_busy_tenants():
    process = Process()
    for _ in range(3):
        process.now += WINDOW
        for tenant in range(1000):
            process.work(tenant, 0.1)
    process.now += WINDOW
    waits = [process.work(tenant, 0.1) for tenant in range(1000)]
    assert 0.0 < max(waits) <= LONGEST_DEBT


def test_a_tenant_without_work_does_not_count_any_more():
    process = Process()
    process.work(2, 0.001)
    process.work(1, 10.0)
    assert process.work(1, 0.001) > 0.0
    process.now += LATELY + WINDOW
    process.shares.account(1, process.now)
    assert not process.shares.is_shared, "also in a process that asks for no waits"
    assert process.work(1, 0.001) == 0.0


def test_work_that_belongs_to_no_step_is_charged_by_the_number_of_requests_and_calls():
    shares = LoopShares()
    first, second = shares.account(1, 0.0), shares.account(2, 0.0)
    shares.wait(first, 0.0, 0.0)
    first.begun, second.begun = 3, 1
    first.charge(0.01)
    shares.wait(first, WINDOW, 0.9)  # 0.09 s of work, of which 0.01 s is known
    assert first.rate == pytest.approx((0.01 + 0.06) / WINDOW / 2)
    assert second.rate == pytest.approx(0.02 / WINDOW / 2)


def test_time_reserved_for_a_request_is_given_back_when_it_has_ended():
    account = LoopShares().account(1, 0.0)
    account.close(0.01, 0.0)
    level = account.level
    reserved = account.reserve()
    assert reserved > 0.0
    assert account.level == pytest.approx(level - reserved)
    account.close(0.0, reserved)
    assert account.level == pytest.approx(level)
