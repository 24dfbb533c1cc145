"""Peak: the load that the seed names (55,556 fires a second for a minute), and the highest rate that this machine keeps up with.

Schedules with many jobs fire evenly over each second. A fire that is not called before the end of the wait counts as
late and as not successful. `make bench-peak`.
"""

import asyncio
import time
from dataclasses import dataclass
from datetime import timedelta

from benchmarks.backlog import LONG
from benchmarks.engines import running_engine
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.schedule_groups import make_groups, set_back
from benchmarks.sitting import Sitting
from horai.core.calls import Call
from horai.core.outcome import Outcome, Succeeded
from horai.db.pool import connect

SEED_RATE = 55_556
QUICK_RATE = 50
PROMISED_P95 = 2.0
GROUPS = 20
EVERY = timedelta(seconds=1)
LEAD = timedelta(seconds=3)
AFTER = 15.0
"""Seconds that late fires are waited for after the load."""
LEAST_RATE, STEPS = 2_000, 4
"""The search begins at this rate, doubles it until the promise breaks, and halves the rest this many times."""
END = "update horai.schedule set fire_time = fire_time + interval '1 day' where id = any ($1::bigint[])"
DONE = "select count(*) from horai.instance_history where state = 2 and fire_time >= to_timestamp($1) and fire_time < to_timestamp($2)"


class Fires:
    """Notes when each fire was due and how late its call began."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, float]] = []

    async def run(self, call: Call) -> Outcome:
        """Always a success."""
        due = call.execute_time.timestamp()
        self.calls.append((due, time.time() - due))
        return Succeeded()


@dataclass(frozen=True, slots=True)
class Offered:
    """The result of one load: the 95th percentile of the delay in seconds, and the share of fires that succeeded."""

    rate: int
    p95: float
    success: float

    @property
    def is_kept(self) -> bool:
        """Return whether the machine kept up with the rate."""
        return self.p95 < PROMISED_P95 and self.success == 1.0


async def offer(sitting: Sitting, rate: int, seconds: float) -> Offered:
    """Fire `rate` jobs each second, for some seconds."""
    async with sitting.database("peak") as url:
        setup = await connect(url, "bench", command_timeout=timedelta(seconds=LONG))
        ids = await make_groups(url, setup, GROUPS, rate, EVERY)
        await setup.execute("vacuum analyze horai.job", timeout=LONG)
        await setup.execute("checkpoint", timeout=LONG)
        executor = Fires()
        await set_back(setup, ids, EVERY, -LEAD)
        begin = float(int(time.time() + LEAD.total_seconds()) + 1)
        end = begin + max(int(seconds), 1)
        async with running_engine(url, executor):
            await asyncio.sleep(end - time.time())
            await setup.execute(END, ids, timeout=LONG)
            expected, waited = rate * int(end - begin), time.monotonic()
            while _count(executor, begin, end) < expected and time.monotonic() - waited < sitting.size.wait(AFTER, 2.0):
                await asyncio.sleep(0.2)
        done = await setup.fetchval(DONE, begin, end, timeout=LONG)
        await setup.close()
    delays = sorted(delay for due, delay in executor.calls if begin <= due < end)
    delays += [float("inf")] * (expected - len(delays))
    return Offered(rate, min(delays[len(delays) * 95 // 100], AFTER + seconds), done / expected)


def _count(executor: Fires, begin: float, end: float) -> int:
    return sum(begin <= due < end for due, _ in executor.calls)


async def highest(sitting: Sitting, seconds: float) -> Offered:
    """Return the highest rate of the search whose promise held, with its figures."""
    rate = QUICK_RATE if sitting.size.quick else LEAST_RATE
    best = await offer(sitting, rate, seconds)
    if not best.is_kept or sitting.size.quick:
        return best
    above = rate * 2
    while (found := await offer(sitting, above, seconds)).is_kept:
        best, above = found, above * 2
    below = best.rate
    for _ in range(STEPS):
        found = await offer(sitting, (below + above) // 2, seconds)
        if found.is_kept:
            best, below = found, found.rate
        else:
            above = found.rate
    return best


async def sample(sitting: Sitting) -> Sample:
    """The load of the seed, then the search."""
    seconds = sitting.size.seconds
    asked = await offer(sitting, QUICK_RATE if sitting.size.quick else SEED_RATE, seconds)
    best = await highest(sitting, seconds)
    return {
        "fires of the seed": SEED_RATE,
        "p95 of the seed's load": asked.p95 * 1000,
        "successes of the seed's load": asked.success * 100,
        "highest rate": best.rate,
        "p95 of the highest rate": best.p95 * 1000,
        "successes of the highest rate": best.success * 100,
        "machines for the seed's load": SEED_RATE / best.rate,
    }


SCENARIO = Scenario(
    "peak",
    f"schedules that fire {SEED_RATE:,}/s, and the highest rate with a p95 below {PROMISED_P95:g} s",
    sample,
    (
        Line("fires of the seed", "/s"),
        Line("p95 of the seed's load", "ms"),
        Line("successes of the seed's load", "%"),
        Line("highest rate", "/s", per="fires of the seed"),
        Line("p95 of the highest rate", "ms", at_most=PROMISED_P95 * 1000),
        Line("successes of the highest rate", "%", at_least=100.0),
        Line("machines for the seed's load", ""),
    ),
    by_name_only=True,
)
