"""A claim that is no longer this node's own is not begun: another node may hold its row, and its slot, by now."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import make
from harness import LOOPBACK
from receiver import Answer, Receiver
from stages import workbench

from horai.core.addresses import AddressPolicy
from horai.core.calls import Call, HttpTarget
from horai.core.limits import SHARDS
from horai.core.outcome import NotSent, Succeeded
from horai.db import claim_lanes
from horai.engine.executors.http import HttpExecutor

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECRET = "whsec_c2VjcmV0"


async def test_a_claim_of_an_earlier_incarnation_is_not_begun_though_the_node_holds_a_lease_again(url: str) -> None:
    """A node that was frozen while it waited for the answer to its claim reads it as a new incarnation."""
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 1)
        on = bench.parts()
        on.scans.own(frozenset(range(SHARDS)))
        on.scans.learn(await claim_lanes.lanes(bench.connection))
        claimed = await on.claimer.claim(bench.connection, [(place, 1) for place in on.scans.all()])
        assert len(claimed.rows) == 1

        bench.executor.gate.set()
        bench.lease.incarnation = await make.node(bench.connection)
        await on.admission.start(bench.connection, claimed.rows, bench.clock.now())
        await bench.settle()

        assert bench.executor.calls == []


async def test_nothing_at_all_is_sent_for_a_claim_that_was_lost_on_the_way() -> None:
    received = asyncio.get_running_loop().create_future()

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.set_result(await reader.read())
        writer.close()

    server = await asyncio.start_server(receive, "127.0.0.1", 0)
    async with server, opened(is_held=lambda _: False) as http:
        port = server.sockets[0].getsockname()[1]

        assert await http.run(_call(1, f"http://127.0.0.1:{port}/hook")) == NotSent()
        assert await asyncio.wait_for(received, 30) == b""


async def test_a_call_that_stood_in_line_for_its_host_asks_again_before_it_is_sent() -> None:
    held = {1, 2, 3}
    async with Receiver() as receiver, opened(per_host=1, is_held=lambda call: call.instance_id in held) as http:
        receiver.on("/hook", Answer(200, delay=0.05), Answer(200))
        calls = [asyncio.create_task(http.run(_call(number, receiver.url("/hook")))) for number in (1, 2, 3)]
        await receiver.wait_for(1)
        held.remove(2)

        assert await asyncio.gather(*calls) == [Succeeded(), NotSent(), Succeeded()]
        assert [hit.json["instanceId"] for hit in receiver.hits] == ["1", "3"]


@asynccontextmanager
async def opened(**options: Any) -> AsyncGenerator[HttpExecutor]:
    http = HttpExecutor(AddressPolicy(LOOPBACK), **options)
    await http.open()
    try:
        yield http
    finally:
        await http.close()


def _call(number: int, url: str) -> Call:
    return Call(
        number, 1, "publish", "default", None, NOON, NOON, 1, 1, NOON, -number, None, HttpTarget(url), None, (SECRET,)
    )
