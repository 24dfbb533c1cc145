"""Turns of requests: beside other tenants, the requests of a busy one wait for its share of the server's time."""

import asyncio
from dataclasses import dataclass, field

import pytest
from harness import FAST, node

from api import given
from horai.api.request_turns import LONGEST_WAIT, RequestMeter, RequestTurns
from horai.core import loop_shares
from horai.core.errors import RetryLimited
from horai.core.loop_shares import DEEPEST, MOST_LOAD
from horai.operations.loop_time import LoopTime

BUSY, QUIET = 1, 2


@dataclass
class Server:
    """A busy server whose clock moves when a request sleeps."""

    now: float = 100.0
    slept: list[float] = field(default_factory=list[float])

    def __post_init__(self) -> None:
        self.time = LoopTime(lambda: self.now, lambda: 1.0)
        self.turns = RequestTurns(self.time, self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    async def request(self, tenant: int, seconds: float) -> None:
        meter = RequestMeter()
        await self.turns.enter(tenant, meter)
        meter.charge(seconds)
        meter.close()


@pytest.fixture
def server() -> Server:
    return Server()


async def test_C2b_a_tenant_that_has_used_its_share_waits_and_another_one_does_not(server: Server):
    await server.request(QUIET, 0.001)
    await server.request(BUSY, DEEPEST)
    assert server.slept == []

    await server.request(QUIET, 0.001)
    assert server.slept == []
    await server.request(BUSY, 0.001)
    assert sum(server.slept) > 0.1


async def test_a_tenant_that_is_alone_does_not_wait(server: Server):
    for _ in range(10):
        await server.request(BUSY, DEEPEST)
    assert server.slept == []


async def test_waiting_requests_keep_their_order(server: Server):
    await server.request(QUIET, 0.001)
    await server.request(BUSY, DEEPEST)
    order: list[int] = []

    async def numbered(number: int) -> None:
        await server.request(BUSY, 0.001)
        order.append(number)

    await asyncio.gather(*(numbered(number) for number in range(5)))
    assert order == [0, 1, 2, 3, 4]
    assert not server.turns._waiting
    assert not server.turns._heads


async def test_C2b_a_request_that_would_wait_for_too_long_is_refused_and_told_when_to_come_back(server: Server):
    await server.request(QUIET, 0.001)
    server.time.account(BUSY).mean = 0.1
    server.turns._waiting[BUSY] = int(LONGEST_WAIT * MOST_LOAD / 0.1) + 1

    with pytest.raises(RetryLimited) as refused:
        await server.turns.enter(BUSY, RequestMeter())

    assert refused.value.code == "SCH_429_RETRY_LIMITED"
    assert refused.value.extra["retryAfter"] == "5"


async def test_C2b_a_server_charges_each_request_to_its_tenant(url: str, monkeypatch: pytest.MonkeyPatch):
    seen: list[RequestTurns] = []
    real = RequestTurns.enter

    async def noted(self: RequestTurns, tenant: int | None, meter: RequestMeter) -> None:
        seen.append(self)
        await real(self, tenant, meter)

    monkeypatch.setattr(RequestTurns, "enter", noted)
    monkeypatch.setattr(loop_shares, "LATELY", 3600.0)  # no account is dropped on a slow machine
    async with node(url, FAST) as api:
        root = await given.holder(api, "platform-admin")
        for tenant in ("busy", "quiet"):
            assert (await root("POST", "/api/v1/tenants", {"name": tenant})).status == 201
        busy, quiet = await given.holder(root, "viewer", "busy"), await given.holder(root, "viewer", "quiet")
        for client in [busy] * 20 + [quiet]:
            assert (await client("GET", "/api/v1/jobs")).status == 200
        accounts = seen[-1]._time.shares._accounts

        assert len(accounts) == 4, "keyless, the platform and two tenants"
        assert all(account.mean > 0.0 for account in accounts.values())
