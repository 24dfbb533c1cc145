"""Horai by the same yardstick: through its public SDK, with history, fences, leases and events on."""

from benchmarks import sdk
from benchmarks.peers.peer import CALLERS
from benchmarks.sitting import Sitting

NAME = "Horai"


async def sample(sitting: Sitting, *, has_latencies: bool) -> dict[str, float]:
    """Enqueue singly and by the thousand, drain, and the latencies."""
    found = await sdk.added(sitting, sitting.size.rows // 2, CALLERS)
    found["drain"] = await sdk.drain_rate(sitting, sitting.size.rows // 2)
    if not has_latencies:
        return found
    told = await sdk.immediate(sitting)
    found |= {f"immediate p{p}": told[f"sdk immediate p{p}"] for p in (50, 99)}
    for rate in (100, 1_000):
        delays = await sdk.scheduled(sitting, rate, min(sitting.size.seconds, 8.0))
        found |= {f"{rate:,}/s p{p}": delays[len(delays) * p // 100] * 1000 for p in (50, 99)}
    return found
