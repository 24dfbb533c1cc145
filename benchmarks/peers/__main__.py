"""`make bench-peers`: Horai and its peers on one PostgreSQL in one sitting.

python -m benchmarks.peers setup      installs them again
python -m benchmarks.peers [run]      measures, after installing what is missing
"""

import argparse
import asyncio
import json
import signal
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks import raw_limit, table
from benchmarks.peers import ours, redis, setup
from benchmarks.peers.peer import CALLERS, PEERS, Peer, sample
from benchmarks.processes import quiet
from benchmarks.sitting import Size, sit_down

QUICK = Size(rows=10_000, seconds=2.0, quick=True)
FIGURES = (
    "single",
    f"{CALLERS} callers",
    "enqueue",
    "drain",
    "immediate p50",
    "immediate p99",
    "100/s p50",
    "100/s p99",
    "1,000/s p50",
    "1,000/s p99",
)
CAVEATS = (
    "Horai through its SDK, with history and fences; Graphile Worker keeps no history. Drains count from the first call.",
    f"single: one enqueue after the other, each waited for; {CALLERS} callers: so many at once, each as before; enqueue: by the thousand.",
    "Immediate: Horai's at 200/s, the peers' at 50/s.",
    "Celery and Dramatiq run on Redis, if the Debian package redis-server is installed. Their drains end with the last call.",
)
SINGLE_AHEAD = ("pgqueuer", 1.5)
SINGLE = ("single", f"{CALLERS} callers")
Medians = Mapping[str, Mapping[str, float]]


async def measure(
    size: Size, times: int, names: Sequence[str], *, has_latencies: bool
) -> dict[str, dict[str, list[float]]]:
    """Measure each peer `times` times, in turn."""
    found: dict[str, dict[str, list[float]]] = {}
    unwinding = asyncio.current_task()
    assert unwinding is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, unwinding.cancel)
    async with sit_down(size) as sitting:
        for _ in range(times):
            _note(found, "raw limit", {"drain": (await raw_limit.sample(sitting))["raw_limit"]})
            _note(found, ours.NAME, await ours.sample(sitting, has_latencies=has_latencies))
            for peer in _present():
                if not names or peer.name in names:
                    _note(found, peer.name, await sample(sitting, peer, has_latencies=has_latencies))
    return found


def _present() -> list[Peer]:
    """Return the peers whose store is installed."""
    return [peer for peer in PEERS if peer.left is not None or redis.is_there()]


def _note(found: dict[str, dict[str, list[float]]], name: str, measured: Mapping[str, float]) -> None:
    print(f"{name}: " + ", ".join(f"{figure} {table.number(value)}" for figure, value in measured.items()), flush=True)
    for figure, value in measured.items():
        found.setdefault(name, {}).setdefault(figure, []).append(value)


def _show(medians: Medians, times: int) -> None:
    shown = Table(
        title=f"median of {times} on {table.machine()['cores']} cores, one process each; per second, and milliseconds",
        caption="\n".join(CAVEATS),
    )
    for heading in ("", *FIGURES):
        shown.add_column(heading, justify="right" if heading else "left")
    for name, figures in medians.items():
        shown.add_row(name, *(table.number(figures[f]) if f in figures else "–" for f in FIGURES))
    Console(width=table.WIDTH).print(shown)
    for peer in PEERS:
        if peer.name in medians:
            _judge(medians, "drain", peer.name, 1.0)
    if SINGLE_AHEAD[0] in medians:
        for figure in SINGLE:
            _judge(medians, figure, *SINGLE_AHEAD)


def _judge(medians: Medians, figure: str, peer: str, at_least: float) -> None:
    ratio = medians[ours.NAME][figure] / medians[peer][figure]
    holds = "yes" if ratio >= at_least else "NO"
    print(f"{figure} of Horai to {peer}: {ratio:.2f} (target ≥ {at_least:g}: {holds})")


def _keep(found: Mapping[str, object], size: Size, times: int) -> None:
    at = datetime.now(UTC)
    versions = {**setup.PYTHON_PACKAGES, **setup.NODE_PACKAGES}
    kept = {
        "at": at.isoformat(),
        "commit": table.commit(),
        "machine": table.machine(),
        "settings": {**asdict(size), "times": times},
        "versions": versions,
        "samples": found,
    }
    table.RESULTS.mkdir(exist_ok=True)
    file = table.RESULTS / f"{at:%Y%m%d-%H%M%S}-peers.json"
    file.write_text(json.dumps(kept, indent=2) + "\n")
    print(f"kept in {file}")


def main() -> None:
    """Installs, measures, prints, keeps."""
    options = argparse.ArgumentParser(
        prog="make bench-peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("what", nargs="?", choices=("setup", "run"), default="run")
    options.add_argument("--only", nargs="*", default=[], metavar="peer", help=", ".join(peer.name for peer in PEERS))
    options.add_argument("--times", type=int, help="repetitions (3; 1 with --quick)")
    options.add_argument("--rows", type=int, help="rows of a backlog (200,000)")
    options.add_argument("--drain", action="store_true", help="no latencies")
    options.add_argument("--quick", action="store_true", help="small sizes, once: a first impression")
    chosen = options.parse_args()
    if chosen.what == "setup" or not setup.is_there():
        setup.install()
    if chosen.what == "setup":
        return
    quiet()
    size = QUICK if chosen.quick else Size(rows=chosen.rows or Size().rows)
    times = chosen.times or (1 if chosen.quick else 3)
    found = uvloop.run(measure(size, times, chosen.only, has_latencies=not chosen.drain))
    _show({name: {f: statistics.median(v) for f, v in figures.items()} for name, figures in found.items()}, times)
    _keep(found, size, times)


if __name__ == "__main__":
    main()
