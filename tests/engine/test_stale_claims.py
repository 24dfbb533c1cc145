"""A claim that is no longer this node's own is not begun: its row, and its slot, may be somebody else's by now."""

import asyncio
from datetime import UTC, datetime

import make
from harness import LOOPBACK
from horai.core.addresses import AddressPolicy
from horai.core.calls import Call, HttpTarget
from horai.core.settings import SHARDS
from horai.core.settlement import NotSent, Succeeded
from horai.db import jobs
from horai.engine.executors.http import HttpExecutor
from receiver import Answer, Receiver
from stages import workbench

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


async def test_a_claim_of_an_earlier_incarnation_is_not_begun_though_the_node_holds_a_lease_again(url: str) -> None:
    """A node that was frozen while it waited for the answer to its claim reads it as a new incarnation."""
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 1)
        on = bench.bench()
        on.lanes.own(frozenset(range(SHARDS)))
        on.lanes.learn(await jobs.lanes(bench.connection))
        harvest = await on.claimer.claim(bench.connection, [(place, 1) for place in on.lanes.places()])
        assert len(harvest.rows) == 1

        bench.executor.gate.set()
        bench.keeper.incarnation = await make.node(bench.connection)
        await on.handout.start(bench.connection, harvest.rows, bench.clock.now())
        await bench.settle()

        assert bench.executor.calls == []


async def test_a_call_that_stood_in_line_for_its_host_asks_again_before_it_is_sent() -> None:
    held = {1, 2, 3}
    async with Receiver() as receiver:
        receiver.on("/hook", Answer(200, delay=0.05), Answer(200))
        http = HttpExecutor(AddressPolicy(LOOPBACK), per_host=1, is_held=lambda call: call.instance_id in held)
        await http.open()
        try:
            calls = [asyncio.create_task(http.run(_call(number, receiver.url("/hook")))) for number in (1, 2, 3)]
            await receiver.wait_for(1)
            held.remove(2)

            assert await asyncio.gather(*calls) == [Succeeded(), NotSent(), Succeeded()]
        finally:
            await http.close()
        assert [hit.json["instanceId"] for hit in receiver.hits] == ["1", "3"]


def _call(number: int, url: str) -> Call:
    return Call(number, 1, "publish", "default", None, NOON, NOON, 1, 1, NOON, -number, None, HttpTarget(url), None)
