"""Horai by the same yardstick, with history, fences, leases and events on."""

import time

from benchmarks import backlog, drain, immediate
from benchmarks.latency import steady
from benchmarks.sitting import Sitting
from horai.accept.instances import Item, insert_batch
from horai.accept.scope import Scope
from horai.db.pool import open_pool
from horai.db.wakeups import Wakeups

NAME = "Horai"
BATCH = 1_000
PAYLOAD = '{"x": "' + "x" * 100 + '"}'


async def sample(sitting: Sitting, *, has_latencies: bool) -> dict[str, float]:
    """Enqueue through what the API calls, drain, the latency through the API, and that of scheduled instances."""
    found = {"enqueue": await _enqueue(sitting), "drain": await drain.rate_of(sitting, sitting.size.rows)}
    if not has_latencies:
        return found
    told = await immediate.sample(sitting)
    found |= {name: told[name] for name in ("immediate p50", "immediate p99")}
    for rate in (100, 1_000):
        load = await steady(sitting, rate, min(sitting.size.seconds, 8.0))
        found |= {f"{rate:,}/s p50": load.quantile_ms(0.5), f"{rate:,}/s p99": load.quantile_ms(0.99)}
    return found


async def _enqueue(sitting: Sitting) -> float:
    """Instances per second in batches on one connection."""
    batches = max(sitting.size.rows // 2 // BATCH, 1)
    async with sitting.database("enqueue") as url:
        await backlog.make_jobs(url, 1)
        pool = await open_pool(url, "bench", 1)
        scope = Scope(pool, Wakeups(), 1, "default")
        started = time.perf_counter()
        for _ in range(batches):
            await insert_batch(scope, "noop0", [Item(None, PAYLOAD)] * BATCH)
        rate = batches * BATCH / (time.perf_counter() - started)
        await pool.close()
    return rate
