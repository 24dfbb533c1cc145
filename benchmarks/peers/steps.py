"""Durable steps beside DBOS: steps a second of one function, and of a hundred side by side, in one process each.

    python -m benchmarks.peers.steps --times 3

Both have a database of their own on one server, record each step before the function goes on, and run in turn. The time
counts from the first call until the last result.
"""

import argparse
import json
import statistics
from datetime import UTC, datetime
from pathlib import Path

import uvloop

from benchmarks import table
from benchmarks.peers import ours, setup
from benchmarks.peers.peer import Peer, environment
from benchmarks.processes import child, module, quiet
from benchmarks.sitting import Sitting, Size, sit_down

DBOS = Peer("DBOS", "run_dbos.py", None)
SHAPES = ((1, 1_000), (100, 50))
"""Functions at once, and the steps of each."""
RESUMED = "Horai, resume after 1,000 steps"
AT_LEAST = 3.0
"""Our steps a second by theirs."""
DONE_WITHIN = 300.0
Found = dict[str, list[float]]


async def _told(sitting: Sitting, name: str, functions: int, steps: int) -> dict[str, float]:
    """Return the seconds of one run, and of a resume if the process measures it."""
    async with sitting.database("steps", is_empty=name == DBOS.name) as url:
        words = (str(functions), str(steps))
        command = module("benchmarks.steps_process", url, *words) if name == ours.NAME else DBOS.command("run", *words)
        async with child(*command, env=environment(url)) as process:
            process.go()
            return await process.next_line(DONE_WITHIN)


def figure(name: str, functions: int) -> str:
    """Return the name of a figure in the JSON."""
    return f"{name}, {functions} at once"


async def measure(times: int) -> Found:
    """Both in turn, `times` times."""
    setup.bring_programs()
    found: Found = {}
    async with sit_down(Size()) as sitting:
        for _ in range(times):
            for functions, steps in SHAPES:
                for name in (ours.NAME, DBOS.name):
                    told = await _told(sitting, name, functions, steps)
                    found.setdefault(figure(name, functions), []).append(functions * steps / told["seconds"])
                    if name == ours.NAME and functions == 1:
                        found.setdefault(RESUMED, []).append(told["resumed"])
            print(", ".join(f"{name}: {table.number(rates[-1])}" for name, rates in found.items()), flush=True)
    return found


def judge(found: Found) -> list[str]:
    """Return a line for each shape: the medians, their ratio, and whether it holds."""
    lines: list[str] = []
    for functions, _ in SHAPES:
        own, theirs = (statistics.median(found[figure(name, functions)]) for name in (ours.NAME, DBOS.name))
        holds = "yes" if own >= AT_LEAST * theirs else "NO"
        lines.append(
            f"{functions} at once: {table.number(own)} and {table.number(theirs)} steps/s,"
            f" {own / theirs:.2f} (target ≥ {AT_LEAST:g}: {holds})"
        )
    return [*lines, f"{RESUMED}: {statistics.median(found[RESUMED]) * 1000:.0f} ms"]


def main() -> None:
    """Measure, print, keep."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.peers.steps", description=__doc__)
    options.formatter_class = argparse.RawDescriptionHelpFormatter
    options.add_argument("--times", type=int, default=3, help="repetitions (3)")
    default = Path(__file__).parents[1] / "results" / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-steps.json"
    options.add_argument("--keep", type=Path, default=default, help="where the JSON goes")
    chosen = options.parse_args()
    quiet()
    if not setup.is_there():
        setup.install()
    found = uvloop.run(measure(chosen.times))
    chosen.keep.parent.mkdir(exist_ok=True)
    chosen.keep.write_text(json.dumps({"at": datetime.now(UTC).isoformat(), "samples": found}, indent=2))
    print("\n".join(judge(found)))


if __name__ == "__main__":
    main()
