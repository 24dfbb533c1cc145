"""One peer, and the processes it is driven by."""

import asyncio
import json
import os
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks.peers import redis, setup
from benchmarks.processes import Child, child
from benchmarks.sitting import Sitting
from horai.db.pool import opened

SENT, SEND_RATE = 200, 50
SINGLE_SHARE, CALLERS = 50, 20
FIRST_CALL_WITHIN = 300.0


@dataclass(frozen=True, slots=True)
class Peer:
    """The way to run a peer. `left` counts the jobs its own store does not call done; `share` is its part of a backlog.

    A peer without `left` has its store in Redis: its drain ends with its last call.
    """

    name: str
    program: str
    left: str | None
    share: float = 0.5
    rates: tuple[int, ...] = (100, 1_000)

    def command(self, *words: object) -> tuple[str, ...]:
        """Return the command that starts its program."""
        runs = setup.NODE if self.program.endswith(".mjs") else setup.PYTHON
        return (str(runs), str(setup.SCRIPTS / self.program), *map(str, words))


PEERS = (
    Peer("Graphile Worker", "run_graphile.mjs", "select count(*) from graphile_worker._private_jobs"),
    Peer("pg-boss", "run_pgboss.mjs", "select count(*) from pgboss.job where state < 'completed'"),
    Peer("pgqueuer", "run_pgqueuer.py", "select count(*) from pgqueuer"),
    Peer(
        "Procrastinate",
        "run_procrastinate.py",
        "select count(*) from procrastinate_jobs where status in ('todo', 'doing')",
        share=0.02,
        rates=(100,),
    ),
    Peer("Celery", "run_celery.py", None, share=0.1, rates=(100,)),
    Peer("Dramatiq", "run_dramatiq.py", None, share=0.1, rates=(100,)),
)


def quantiles(name: str, delays: Sequence[float]) -> dict[str, float]:
    """The middle and the 99th percentile, in milliseconds."""
    ordered = sorted(delays)
    return {
        f"{name} p50": ordered[len(ordered) // 2],
        f"{name} p99": ordered[min(len(ordered) * 99 // 100, len(ordered) - 1)],
    }


async def sample(sitting: Sitting, peer: Peer, *, has_latencies: bool) -> dict[str, float]:
    """Enqueue and drain a backlog, then the latencies."""
    setup.bring_programs()
    found = await _drain(sitting, peer, max(int(sitting.size.rows * peer.share), 100))
    if not has_latencies:
        return found
    sent = SENT // 4 if sitting.size.quick else SENT
    async with _at_work(sitting, peer, sent + 20) as (url, worker):
        await told(peer, url, "send", sent, SEND_RATE)
        found |= quantiles("immediate", (await worker.next_line())["delays"])
    for rate in peer.rates:
        seconds = min(sitting.size.seconds, 8.0)
        rows = int(rate * seconds)
        async with _at_work(sitting, peer, rows) as (url, worker):
            await told(peer, url, "schedule", rate, seconds, 1.0 + rows / 2000)
            found |= quantiles(f"{rate:,}/s", (await worker.next_line())["delays"])
    return found


async def _drain(sitting: Sitting, peer: Peer, rows: int) -> dict[str, float]:
    """Jobs per second, from the first call until the peer's own store calls all of them done."""
    async with _store(sitting, peer) as url:
        await told(peer, url, "schema")
        singly = max(rows // SINGLE_SHARE // CALLERS, 5) * CALLERS
        alone = await told(peer, url, "single", singly, 1)
        together = await told(peer, url, "single", singly, CALLERS)
        enqueued = await told(peer, url, "enqueue", rows - 2 * singly)
        if peer.left is not None:
            await _settle_down(url)
        async with child(*peer.command("work", rows), env=environment(url)) as worker:
            called = await worker.next_line(FIRST_CALL_WITHIN)
            drained = (await _emptied(url, peer.left) if peer.left else called["last"]) - called["first"]
    return {
        "single": singly / alone["seconds"],
        f"{CALLERS} callers": singly / together["seconds"],
        "enqueue": (rows - 2 * singly) / enqueued["seconds"],
        "drain": rows / drained,
    }


async def _settle_down(url: str) -> None:
    async with opened(url, "bench") as connection:
        await connection.execute("vacuum analyze", timeout=600)
        await connection.execute("checkpoint", timeout=600)


async def _emptied(url: str, left: str) -> float:
    """Wait until the store calls all jobs done, and return the time."""
    async with opened(url, "bench") as connection, asyncio.timeout(60):
        while await connection.fetchval(left):
            await asyncio.sleep(0.01)
        return time.monotonic()


@asynccontextmanager
async def _store(sitting: Sitting, peer: Peer) -> AsyncGenerator[str]:
    """The URL of an empty store of the peer: a database, or a Redis of its own."""
    opening = redis.running(sitting.size.place) if peer.left is None else sitting.database("peer", is_empty=True)
    async with opening as url:
        yield url


@asynccontextmanager
async def _at_work(sitting: Sitting, peer: Peer, rows: int) -> AsyncGenerator[tuple[str, Child]]:
    """A worker that waits for so many jobs."""
    async with _store(sitting, peer) as url:
        await told(peer, url, "schema")
        async with child(*peer.command("work", rows), env=environment(url)) as worker:
            await asyncio.sleep(1.0)  # none of them says when it has begun to listen
            yield url, worker


async def told(peer: Peer, url: str, *words: object) -> Any:
    """Has the program do one thing, to its end; what it said last."""
    process = await asyncio.create_subprocess_exec(
        *peer.command(*words), env=environment(url), stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await asyncio.wait_for(process.communicate(), 600)
    if process.returncode != 0:
        raise RuntimeError(f"{peer.name}: {words} ended with {process.returncode}")
    return json.loads(said.splitlines()[-1]) if said.strip() else None


def environment(url: str) -> dict[str, str]:
    """The environment of a program of a peer."""
    return {**os.environ, "PEER_URL": url, "PYTHONUNBUFFERED": "1"}
