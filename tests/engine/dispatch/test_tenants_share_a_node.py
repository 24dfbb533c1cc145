"""One tenant with a long backlog, and another one whose instance is due: the second one's call begins among the first ones."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import make
import pytest
from failing_hosts import open_breaker, run, with_bad_and_good
from stages import Workbench, workbench

from horai.core.calls import Call
from horai.core.limits import SHARDS
from horai.core.outcome import Outcome, Succeeded
from horai.db import claim_lanes, claims
from horai.engine.dispatch.claimer import Claimer
from horai.operations.loop_time import LoopTime
from horai.operations.scope import Scope


@dataclass
class InOrder:
    """An executor that never waits, and the tenants that it was called for."""

    tenants: list[str] = field(default_factory=list[str])

    async def run(self, call: Call) -> Outcome:
        self.tenants.append(call.tenant)
        return Succeeded()


async def second_tenant(bench: Workbench) -> Scope:
    tenant = await bench.connection.fetchval("insert into horai.tenant (name) values ('second') returning id")
    other = make.of_tenant(bench.scope, tenant, "second")
    await make.job(other)
    return other


async def test_C2b_a_tenant_with_thousands_of_calls_under_way_leaves_slots_for_another(url: str):
    async with workbench(url, in_flight=40) as bench:
        await make.job(bench.scope)
        other = await second_tenant(bench)
        await make.many(bench.scope, 100)
        dispatcher = bench.dispatcher()
        await bench.until_idle(dispatcher)
        assert len(await bench.called(30)) == len(bench.in_flight) == 30

        await make.many(other, 3)
        dispatcher.rescan_all()
        await bench.until_idle(dispatcher)

        assert [call.tenant for call in (await bench.called(33))[30:]] == ["second"] * 3
        bench.executor.gate.set()
        async with asyncio.timeout(60):
            while (await bench.states()).get("SUCCESS") != 103:
                await bench.settle()
                await bench.until_idle(dispatcher)


async def test_C2b_a_dispatcher_without_room_for_a_tenant_is_woken_when_one_of_its_calls_ends(url: str):
    async with workbench(url, in_flight=4) as bench:
        await make.job(bench.scope)
        await second_tenant(bench)
        await make.many(bench.scope, 5)
        dispatcher = bench.dispatcher()
        await bench.until_idle(dispatcher)
        assert len(await bench.called(3)) == len(bench.in_flight) == 3
        dispatcher.signal.clear()

        bench.executor.gate.set()
        await bench.settle()

        assert dispatcher.signal.is_set()
        await bench.until_idle(dispatcher)
        await bench.called(5)


async def test_C2b_claimed_rows_of_two_tenants_begin_in_turns(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        other = await second_tenant(bench)
        await make.many(bench.scope, 20)
        await make.many(other, 5)
        executor = InOrder()
        executors: dict[str, Any] = {"": executor}
        on = bench.parts(**executors)
        on.scans.own(frozenset(range(SHARDS)))
        on.scans.learn(await claim_lanes.lanes(bench.connection))
        claimed = await on.claimer.claim(bench.connection, [(place, 100) for place in on.scans.all()])
        by_tenant = sorted(claimed.rows, key=lambda row: row[1])

        await on.admission.start(bench.connection, by_tenant, bench.clock.now())
        await bench.settle()

        assert executor.tenants[:10] == ["default", "second"] * 5
        assert executor.tenants[10:] == ["default"] * 15


async def test_C2b_few_rows_of_one_of_two_tenants_wait_for_their_calls_to_begin(url: str):
    async with workbench(url, shared_batch=8) as bench:
        await make.job(bench.scope)
        other = await second_tenant(bench)
        await make.many(bench.scope, 100)
        await make.many(other, 1)
        dispatcher = bench.dispatcher()
        attempts = dispatcher.parts.attempts
        attempts._is_relieved = True  # no runner begins: claimed rows wait
        tenant = bench.scope.tenant_id

        for _ in range(5):
            await dispatcher.step(bench.clock.now())

        assert attempts._waiting.length(tenant) == 8
        assert attempts.room_of(tenant, 8) == 0
        dispatcher.signal.clear()
        attempts._is_relieved = False
        attempts._relieve()
        async with asyncio.timeout(30):
            await dispatcher.signal.wait()
        assert attempts.room_of(tenant, 8) > 0


async def test_C2b_rows_of_a_tenant_that_has_used_its_share_of_the_time_are_claimed_when_it_has_some_again(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        other = await second_tenant(bench)
        bench.executor.gate.set()
        dispatcher = bench.dispatcher()
        now = 0.0
        time = dispatcher.parts.attempts.loop_time = LoopTime(lambda: now, lambda: 1.0)
        time.account(other.tenant_id)
        time.account(bench.scope.tenant_id).charge(1.0)
        await make.many(bench.scope, 3)
        await make.many(other, 3)

        await bench.until_idle(dispatcher)
        assert {call.tenant for call in await bench.called(3)} == {"second"}
        dispatcher.signal.clear()
        now = 1.0
        async with asyncio.timeout(30):
            await dispatcher.signal.wait()
        await bench.until_idle(dispatcher)

        assert [call.tenant for call in (await bench.called(6))[3:]] == ["default"] * 3


async def test_C2b_rows_behind_those_of_a_shut_host_come_after_all_others(url: str, monkeypatch: pytest.MonkeyPatch):
    async with workbench(url) as bench:
        _, _, dispatcher = await with_bad_and_good(bench, retry={"base": "1h"})
        other = await second_tenant(bench)
        await open_breaker(bench, dispatcher)
        await make.many(bench.scope, 2000, job="bad")
        await run(bench, dispatcher)
        await make.many(bench.scope, 1, job="good")
        await make.many(other, 1)
        steps: list[str] = []
        read, claim = claims.shut_rows_ahead, Claimer.claim

        async def note_read(*arguments: Any) -> Any:
            steps.append("read")
            return await read(*arguments)

        async def note_claim(self: Claimer, connection: Any, *arguments: Any) -> Any:
            claimed = await claim(self, connection, *arguments)
            steps.extend(sorted({str(row.held.job_id) for row in claimed.rows}))
            return claimed

        monkeypatch.setattr("horai.db.claims.shut_rows_ahead", note_read)
        monkeypatch.setattr(Claimer, "claim", note_claim)
        jobs = {
            row["name"]: row["id"] for row in await bench.connection.fetch("select name, id::text as id from horai.job")
        }
        dispatcher.rescan_all()
        await run(bench, dispatcher)

        assert steps.index(jobs["publish"]) < steps.index("read") < steps.index(jobs["good"])
