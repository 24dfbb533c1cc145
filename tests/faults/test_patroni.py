"""Patroni hands the lead over, loses its primary to kill -9, and has it cut off from the network, under load.

The cluster is that of deploy/patroni: two PostgreSQL, one etcd, synchronous mode, `primary_start_timeout: 0`.
"""

import asyncio
import json
import math
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from forked import HORAI
from harness import NodeProcess
from machines import why_not
from sizes import IS_LONG

from faults.cluster import cluster
from faults.load import Load, load
from faults.outside import BUSY, ReceiverProcess, receiving, until
from faults.patroni import PatroniCluster, Pulse, patroni, require_patroni
from faults.reckoning import Reckoning, reckon

ROUNDS = 10 if IS_LONG else 1
RATE = 200 if IS_LONG else 100
CALM = 3.0 if IS_LONG else 1.0
LEASE = 8.0
KILLED, CUT_OFF = 15.0, 35.0
"""Promised seconds until writes resume, as clients see it: after a kill of the postmaster, and after the loss of a host."""
WRITER = Path(__file__).with_name("isolated_writer.py")


@asynccontextmanager
async def under_load(
    place: Path, doors: Mapping[str, str], receiver: ReceiverProcess
) -> AsyncGenerator[tuple[Load, Pulse]]:
    async with load(doors, RATE, receiver.url("/hook?delay=0.1")) as running:
        pulse = Pulse(running)
        try:
            yield running, pulse
        finally:
            pulse.end()


async def rounds(
    database: PatroniCluster, running: Load, pulse: Pulse, strike: Callable[[str], Awaitable[None]]
) -> list[float]:
    """Strike the primary so many times; return the pauses of writes that clients saw."""
    pauses: list[float] = []
    for number in range(ROUNDS):
        leader = await database.leader()
        await running.until_more(CALM)
        began = asyncio.get_running_loop().time()
        await strike(leader)

        async def has_moved(old: str = leader) -> bool:
            return "leader" in {role for name, role in (await database.roles()).items() if name != old}

        await until(has_moved, 60, f"another member leads than {leader}")
        await running.until_more(CALM)
        pauses.append(pulse.pause_since(began))
        print(f"round {number + 1}: {strike.__name__} of {leader}: writes paused {pauses[-1]:.2f} s", flush=True)
    return pauses


def p95(values: Sequence[float]) -> float:
    return sorted(values)[math.ceil(0.95 * len(values)) - 1]


async def reckoned(database: PatroniCluster, receiver: ReceiverProcess, acknowledged: set[int]) -> Reckoning:
    await database.leader()
    connection = await database.connect()
    try:
        return await reckon(connection, receiver, acknowledged, within=120)
    finally:
        await connection.close()


@pytest.mark.timeout(3600 if IS_LONG else 300)
async def test_C39_switchovers_and_killed_primaries_of_a_patroni_cluster_lose_and_double_nothing(
    short_place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORAI_STATE_DIR", str(tmp_path))
    async with patroni(short_place) as database:

        async def switchover(leader: str) -> None:
            await database.switch_over(leader)

        async def kill(leader: str) -> None:
            database.kill_postmaster(leader)

        with receiving(tmp_path / "patroni.hits") as receiver:
            async with cluster(short_place, database.url, "one", "two", lease=LEASE) as nodes:
                async with under_load(short_place, nodes.doors, receiver) as (running, pulse):
                    switched = await rounds(database, running, pulse, switchover)
                    killed = await rounds(database, running, pulse, kill)
                ended = await reckoned(database, receiver, running.acknowledged)
    print(
        f"{RATE}/s: {ROUNDS} switchovers, writes paused p95 {p95(switched):.2f} s; {ROUNDS} kills, p95 {p95(killed):.2f} s;"
        f" {running.refused} refused; {ended}",
        flush=True,
    )
    assert ended.problems + ended.stale == []
    assert p95(switched) <= KILLED + BUSY
    assert p95(killed) <= KILLED + BUSY


def inside(node: NodeProcess, namespace: str) -> NodeProcess:
    """The same node, in a network namespace."""

    def launch(arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> "subprocess.Popen[str]":
        command = ["ip", "netns", "exec", namespace, HORAI, *arguments]
        with log.open("a") as errors:
            return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)

    node.launch = launch
    return node


@asynccontextmanager
async def isolated_writer(namespace: str, base: str) -> AsyncGenerator[list[int]]:
    """A client on the machine of the primary, which writes through the node there. Yields the ids acknowledged so far."""
    acknowledged: list[int] = []
    process = await asyncio.create_subprocess_exec(
        "ip", "netns", "exec", namespace, sys.executable, WRITER, base, stdout=asyncio.subprocess.PIPE
    )

    async def read() -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            acknowledged.append(int(json.loads(line)["id"]))

    reading = asyncio.create_task(read())
    try:
        yield acknowledged
    finally:
        process.kill()
        await process.wait()
        await reading


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
@pytest.mark.timeout(600)
async def test_a_primary_that_is_cut_off_accepts_no_write_that_is_lost_and_the_other_side_goes_on(
    short_place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORAI_STATE_DIR", str(tmp_path / "outside"))
    require_patroni()
    async with patroni(short_place, "--namespaces") as database:
        leader = database.members[await database.leader()]
        flags = ("--roles", "api", "--lease-ttl", f"{LEASE:g}s")
        state = str(tmp_path / "inside")
        home = short_place / f"cut-off-{leader['name']}"
        node = inside(NodeProcess(home, database.url, *flags, HORAI_STATE_DIR=state), leader["namespace"])
        with receiving(tmp_path / "cut.hits") as receiver:
            async with cluster(short_place, database.url, "outside", lease=LEASE) as nodes:
                await asyncio.to_thread(node.start)
                async with under_load(short_place, nodes.doors, receiver) as (running, pulse):
                    async with isolated_writer(leader["namespace"], node.base) as written:
                        await until(lambda: _more_than(written, 20), 30, "the node beside the primary accepts writes")
                        await running.until_more(CALM)
                        began, before = asyncio.get_running_loop().time(), len(written)
                        cable(leader["cable"], "down")
                        await running.until_more(CALM)
                        pause, during = pulse.pause_since(began), len(written) - before
                        cable(leader["cable"], "up")
                        await database.leader()
                        healed = len(written)
                        await until(lambda: _more_than(written, healed + 5), 60, "the node beside it writes again")
                acknowledged = running.acknowledged | set(written)
                ended = await reckoned(database, receiver, acknowledged)
                assert await asyncio.to_thread(node.stop) == 0
    print(
        f"primary cut off: writes outside paused {pause:.2f} s; {during} writes acknowledged beside the cut-off primary"
        f" until the other side wrote again, none of them lost; {ended}",
        flush=True,
    )
    assert ended.problems + ended.stale == []
    assert pause <= CUT_OFF + BUSY


async def _more_than(written: list[int], count: int) -> bool:
    return len(written) > count


def cable(name: str, direction: str) -> None:
    done = subprocess.run(["ip", "link", "set", name, direction], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
