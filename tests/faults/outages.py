"""Failures of the primary of a Patroni cluster under load, and the pauses that clients saw."""

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from faults.beside import Neighbour, cable
from faults.load import Load, load
from faults.outside import ReceiverProcess, until
from faults.patroni import PatroniCluster, Pulse


@dataclass(frozen=True)
class Outage:
    """A network cut of the primary. The times are those of the wall clock."""

    leader: str
    cut_at: float
    resumed_at: float
    """The first write after the longest pause that clients on the other side saw."""
    healed_at: float
    pause: float
    beside: list[float]
    """The writes that the node beside the primary acknowledged while the primary was cut off."""

    @property
    def split(self) -> list[float]:
        """The writes beside the cut-off primary while the other side accepted writes as well."""
        return [at for at in self.beside if at > self.resumed_at]

    def document(self) -> dict[str, Any]:
        last = max(self.beside, default=self.cut_at) - self.cut_at
        return {
            "leader": self.leader,
            "pauseSeconds": round(self.pause, 2),
            "acknowledgedBeside": len(self.beside),
            "lastBesideSeconds": round(last, 2),
            "splitWrites": len(self.split),
        }


@asynccontextmanager
async def under_load(
    doors: Mapping[str, str], rate: int, receiver: ReceiverProcess
) -> AsyncGenerator[tuple[Load, Pulse]]:
    async with load(doors, rate, receiver.url("/hook?delay=0.1")) as running:
        pulse = Pulse(running)
        try:
            yield running, pulse
        finally:
            pulse.end()


async def rounds(
    database: PatroniCluster,
    load_and_pulse: tuple[Load, Pulse],
    strike: Callable[[str], Awaitable[None]],
    calms: Sequence[float],
) -> list[float]:
    """Strike the primary once for each calm, so many seconds of load before and after. Return the pauses of writes."""
    running, pulse = load_and_pulse
    pauses: list[float] = []
    for number, calm in enumerate(calms, 1):
        leader = await database.leader()
        await running.until_more(calm)
        began = asyncio.get_running_loop().time()
        await strike(leader)
        await until_moved(database, leader)
        await running.until_more(calm)
        pauses.append(pulse.pause_since(began))
        print(f"round {number}: {strike.__name__} of {leader}: writes paused {pauses[-1]:.2f} s", flush=True)
    return pauses


async def until_moved(database: PatroniCluster, leader: str) -> None:
    """Return when another member leads."""

    async def has_moved() -> bool:
        return "leader" in {role for name, role in (await database.roles()).items() if name != leader}

    await until(has_moved, 60, f"another member leads than {leader}")


async def cut_off(database: PatroniCluster, running: Load, beside: Mapping[str, Neighbour], calm: float) -> Outage:
    """Unplug the primary until clients outside write again, and plug it in. Returns when it follows as a standby."""
    leader = await database.leader()
    await running.until_more(calm)
    cable(database.members[leader]["cable"], "down")
    cut_at = time.time()
    await running.until_more(calm)
    pause, resumed_at = longest_pause(running, cut_at)
    healed_at = time.time()
    cable(database.members[leader]["cable"], "up")
    await database.leader()
    await beside[leader].until_more(5, 60)
    made = Outage(leader, cut_at, resumed_at, healed_at, pause, beside[leader].between(cut_at, healed_at))
    print(f"cut: {made.document()}", flush=True)
    return made


def longest_pause(running: Load, since: float) -> tuple[float, float]:
    """The longest time without a write from `since` on, and the time of the write that ended it."""
    times = [since, *sorted({at for at in running.acknowledged_at.values() if at > since})]
    return max((later - earlier, later) for earlier, later in pairwise(times))


def p95(values: Sequence[float]) -> float:
    return sorted(values)[math.ceil(0.95 * len(values)) - 1]
