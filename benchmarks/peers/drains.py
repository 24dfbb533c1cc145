"""Drains of small and large backlogs right after a start: Horai, its peers and `raw_limit`, with one process and with two.

    python -m benchmarks.peers.drains --rows 1000 --times 20 --keep benchmarks/results/NAME-drains.json

Each repetition starts new worker processes on a copy of a database that holds the backlog. When all have loaded their code,
they begin together. The time counts from the first call until the store calls all jobs done. Run the sizes one after the other with the same file: `--keep` adds to it.
"""

import argparse
import asyncio
import json
import signal
import statistics
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvloop

from benchmarks import backlog, raw_limit, table
from benchmarks.peers import ours, setup
from benchmarks.peers.peer import PEERS, Peer, environment, told
from benchmarks.processes import Child, child, module, quiet
from benchmarks.sdk import Application
from benchmarks.sitting import Sitting, Size, sit_down
from horai.db.pool import connect

PEERS_MEASURED = ("Graphile Worker", "pg-boss")
PROCESSES = (1, 2)
AT_LEAST = 0.9
DONE_WITHIN = 120.0
POLL = 0.003
LIMIT = "raw limit with handlers"
Found = dict[str, list[float]]


@dataclass(frozen=True, slots=True)
class Contender:
    """One that drains: how its backlog is made, how a process of it starts, and what its store calls unfinished."""

    name: str
    is_empty: bool
    fill: Callable[[str, int], Awaitable[None]]
    command: Callable[[str, int], tuple[str, ...]]
    left: str


def _ours(queues: int) -> Contender:
    async def fill(url: str, rows: int) -> None:
        application = Application(url, queues)
        await application.app.declare()
        await application.app.close()
        connection = await connect(url, "bench")
        await backlog.fill(connection, rows, lanes=queues)
        await connection.close()

    left = "select count(*) from horai.instance_live"
    return Contender(
        ours.NAME, False, fill, lambda url, _rows: module("benchmarks.sdk_process", url, str(queues)), left
    )


def _peer(peer: Peer) -> Contender:
    async def fill(url: str, rows: int) -> None:
        await told(peer, url, "schema")
        await told(peer, url, "enqueue", rows)
        connection = await connect(url, "bench")
        await connection.execute("vacuum analyze", timeout=600)
        await connection.close()

    assert peer.left is not None
    return Contender(peer.name, True, fill, lambda _url, rows: peer.command("work", rows), peer.left)


PEER_CONTENDERS = tuple(_peer(peer) for peer in PEERS if peer.name in PEERS_MEASURED)


@asynccontextmanager
async def _copied(sitting: Sitting, backlog_of: str) -> AsyncGenerator[str]:
    await sitting.admin(f'create database bench_copy template "bench_{backlog_of}"')
    await sitting.admin("checkpoint")
    try:
        yield sitting.url_of("bench_copy")
    finally:
        await sitting.admin("drop database bench_copy with (force)")


async def _rate(sitting: Sitting, contender: Contender, rows: int, processes: int) -> float:
    async with _copied(sitting, contender.name) as url, AsyncExitStack() as stack:
        watching = await connect(url, "bench")
        stack.push_async_callback(watching.close)
        env = {**environment(url), "PEER_PROGRESS": "1"}
        begun = [child(*contender.command(url, rows), env=env) for _ in range(processes)]
        started = await asyncio.gather(*(stack.enter_async_context(one) for one in begun))
        for one in started:
            one.go()
        reports: list[Mapping[str, Any]] = [{} for _ in started]
        listening = [asyncio.create_task(_listen(one, number, reports)) for number, one in enumerate(started)]
        async with asyncio.timeout(DONE_WITHIN):
            while sum(report.get("calls", 0) for report in reports) < rows:
                await asyncio.sleep(POLL)
            while await watching.fetchval(contender.left):
                await asyncio.sleep(POLL)
        took = time.monotonic() - min(report["first"] for report in reports if report)
        for task in listening:
            task.cancel()
        await asyncio.gather(*listening, return_exceptions=True)
    return rows / took


async def _listen(process: Child, number: int, reports: list[Mapping[str, Any]]) -> None:
    while True:
        reports[number] = await process.next_line(DONE_WITHIN)


def figure(name: str, rows: int, processes: int) -> str:
    """Return the name of a figure in the JSON."""
    return f"{name}, {rows:,} rows, {processes} process{'es' * (processes > 1)}"


async def measure(rows: int, times: int, names: Sequence[str], processes: Sequence[int], queues: int = 1) -> Found:
    """All contenders in turn, `times` times."""
    found: Found = {}

    def note(name: str, count: int, rate: float) -> None:
        found.setdefault(figure(name, rows, count), []).append(rate)

    unwinding = asyncio.current_task()
    assert unwinding is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, unwinding.cancel)  # the server goes when we go
    setup.bring_programs()
    chosen = [contender for contender in (_ours(queues), *PEER_CONTENDERS) if contender.name in names]
    async with sit_down(Size(rows=rows)) as sitting, AsyncExitStack() as backlogs:
        for contender in chosen:
            filled = sitting.database(contender.name, is_empty=contender.is_empty)
            await contender.fill(await backlogs.enter_async_context(filled), rows)
        for _ in range(times):
            note(LIMIT, 1, await raw_limit.rate_of(sitting, rows, has_handlers=True, lanes=queues))
            for contender in chosen:
                for count in processes:
                    note(contender.name, count, await _rate(sitting, contender, rows, count))
            print(", ".join(f"{name}: {table.number(values[-1])}" for name, values in found.items()), flush=True)
    return found


def judge(found: Found) -> list[str]:
    """Return each figure, and for those of Horai whether they meet their target."""
    medians = {name: statistics.median(values) for name, values in found.items()}
    lines: list[str] = []
    for name, median in medians.items():
        who, rest = name.split(", ", 1)
        rows, processes = rest.rsplit(", ", 1)
        limit = medians.get(f"{LIMIT}, {rows}, 1 process")
        told_of = f"{name}: {median:,.0f}/s of {len(found[name])}"
        if limit is not None and who != LIMIT:
            told_of += f", {median / limit:.2f} of the limit"
        if who == ours.NAME and limit is not None:
            ahead = [p for p in PEERS_MEASURED if median < medians.get(f"{p}, {rows}, {processes}", 0)]
            holds = median >= AT_LEAST * limit and not ahead
            told_of += f" (target ≥ {AT_LEAST:g} and ahead of the peers: {'yes' if holds else 'NO'})"
        lines.append(told_of)
    return lines


def keep(file: Path, found: Found, times: int, queues: int = 1) -> Found:
    """Add the samples to a file, or begin it; all samples that it holds now."""
    kept: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"sittings": [], "samples": {}}
    sitting = {"at": datetime.now(UTC).isoformat(), "commit": table.commit(), "times": times, "figures": list(found)}
    sitting["queues"] = queues
    kept["sittings"].append(sitting)
    kept |= {"machine": table.machine(), "versions": {**setup.PYTHON_PACKAGES, **setup.NODE_PACKAGES}}
    for name, values in found.items():
        kept["samples"][name] = kept["samples"].get(name, []) + values
    kept["judged"] = judge(kept["samples"])
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(kept, indent=2) + "\n")
    return kept["samples"]


def main() -> None:
    """Measure, print, keep."""
    names = [ours.NAME, *(contender.name for contender in PEER_CONTENDERS)]
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.peers.drains",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--rows", type=int, default=60_000, help="jobs of the backlog (60,000)")
    options.add_argument("--times", type=int, default=5, help="repetitions (5)")
    options.add_argument("--only", nargs="*", default=names, choices=names, metavar="name", help=", ".join(names))
    options.add_argument("--processes", nargs="*", type=int, default=PROCESSES, help="worker processes (1 2)")
    text = "queues of Horai and lanes of the raw limit (1, as the peers have)"
    options.add_argument("--queues", type=int, default=1, help=text)
    at = datetime.now(UTC)
    default = table.RESULTS / f"{at:%Y%m%d-%H%M%S}-drains.json"
    options.add_argument("--keep", type=Path, default=default, help="the JSON that the samples are added to")
    chosen = options.parse_args()
    quiet()
    if not setup.is_there():
        setup.install()
    found = uvloop.run(measure(chosen.rows, chosen.times, chosen.only, chosen.processes, chosen.queues))
    print("\n".join(judge(keep(chosen.keep, found, chosen.times, chosen.queues))))


if __name__ == "__main__":
    main()
