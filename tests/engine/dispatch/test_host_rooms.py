"""A node claims as many rows as hosts accept, and a full host delays the rows of no other one."""

import asyncio
from collections import Counter

import make
from failing_hosts import BAD, GOOD, job_to
from stages import Workbench, workbench

from horai.core.calls import Call, HttpTarget
from horai.core.outcome import Succeeded
from horai.engine.dispatch.dispatcher import Dispatcher
from horai.engine.dispatch.host_rooms import FIRST_ROWS, LONGEST_WAIT
from horai.engine.executors.bulkhead import HostRoom
from horai.engine.executors.origins import host_of

ACCEPTED = 128


class SlowHosts:
    """An executor whose calls end when the test opens `gate`. `most` is the highest load of a host."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.load: Counter[str] = Counter()
        self.most = 0
        self.gate = asyncio.Event()
        self.dispatcher: Dispatcher | None = None

    async def run(self, call: Call) -> Succeeded:
        host = host_of(call.target)
        self.calls.append(call)
        self.load[host] += 1
        self.most = max(self.most, self.load[host])
        await self.gate.wait()
        self.load[host] -= 1
        assert self.dispatcher is not None
        self.dispatcher.parts.attempts.host_rooms.ended(call.target)
        return Succeeded()

    def room(self, host: str) -> HostRoom:
        return HostRoom(ACCEPTED, self.load[host])


class StoppedClock:
    """A monotonic clock that only a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def dispatcher_of(bench: Workbench, hosts: SlowHosts) -> tuple[Dispatcher, StoppedClock]:
    made, clock = bench.dispatcher(**{"": hosts}), StoppedClock()
    made.parts.attempts.host_rooms.room_of = hosts.room
    made.parts.attempts.host_rooms.monotonic = clock
    hosts.dispatcher = made
    return made, clock


async def claimed(bench: Workbench) -> int:
    return await bench.connection.fetchval("select count(*) from horai.instance_live where fence > 0")


async def test_P2_no_more_rows_are_claimed_than_the_host_accepts_and_each_ends_at_attempt_1(url: str):
    async with workbench(url) as bench:
        hosts = SlowHosts()
        dispatcher, _ = dispatcher_of(bench, hosts)
        await job_to(bench, "bad", BAD)
        await make.many(bench.scope, 1000, job="bad")
        await bench.until_idle(dispatcher)
        while len(hosts.calls) < FIRST_ROWS:
            await asyncio.sleep(0)
        await bench.until_idle(dispatcher)

        assert ACCEPTED * 3 // 4 <= await claimed(bench) <= ACCEPTED, "a few free places are not worth a claim"
        hosts.gate.set()
        while (await bench.states()).get("SUCCESS") != 1000:
            await bench.until_idle(dispatcher)
            await bench.settle()
        assert hosts.most <= ACCEPTED
        assert Counter(call.attempt for call in hosts.calls) == {1: 1000}
        assert bench.health.totals.limit_waits.total > 0, "the wait for a host is no delay of the scheduler"


async def test_P2_rows_of_another_host_in_the_lane_of_a_full_host_wait_for_a_moment_only(url: str):
    async with workbench(url) as bench:
        hosts = SlowHosts()
        dispatcher, clock = dispatcher_of(bench, hosts)
        await job_to(bench, "bad", BAD)
        await job_to(bench, "good", GOOD)
        await make.many(bench.scope, 20, job="bad")
        await bench.until_idle(dispatcher)
        while len(hosts.calls) < 20:
            await asyncio.sleep(0)
        hosts.load[host_of(HttpTarget(BAD))] = ACCEPTED
        await make.many(bench.scope, 5, job="good")
        await bench.until_idle(dispatcher)
        assert await claimed(bench) == 20

        clock.now += LONGEST_WAIT
        await bench.until_idle(dispatcher)
        assert await claimed(bench) == 25
        hosts.gate.set()
        await bench.settle()
