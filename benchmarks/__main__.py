"""`make bench`: one table of medians, ratios and targets; the JSON is kept under results/.

make bench ARGS="drain latency --times 1 --rows 50000"
"""

import argparse
import asyncio
import signal
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import uvloop

from benchmarks import table
from benchmarks.processes import quiet
from benchmarks.scenario import Scenario
from benchmarks.scenarios import SCENARIOS, chosen
from benchmarks.sitting import Size, sit_down

QUICK = Size(rows=20_000, seconds=4.0, quick=True)


class Measured:
    """The measurements of all repetitions so far."""

    def __init__(self) -> None:
        self.samples: dict[str, list[float]] = defaultdict(list)
        self.took: dict[str, float] = defaultdict(float)


async def measure(scenarios: Sequence[Scenario], size: Size, times: int) -> Measured:
    """Every scenario `times` times, in turn, so that a machine that slows down slows all of them."""
    measured = Measured()
    unwinding = asyncio.current_task()
    assert unwinding is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, unwinding.cancel)  # the server goes when we go
    async with sit_down(size) as sitting:
        for repetition in range(times):
            for scenario in scenarios:
                started = time.monotonic()
                sample = await scenario.sample(sitting)
                measured.took[scenario.name] += time.monotonic() - started
                for name, value in sample.items():
                    measured.samples[name].append(value)
                told = ", ".join(f"{name} {table.number(value)}" for name, value in sample.items())
                print(f"{repetition + 1}/{times} {scenario.name}: {told}", flush=True)
    return measured


def _options() -> argparse.Namespace:
    options = argparse.ArgumentParser(
        prog="make bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "scenarios", nargs="*", choices=[[], *SCENARIOS], metavar="scenario", help=", ".join(SCENARIOS)
    )
    options.add_argument("--list", action="store_true", help="the names, and nothing measured")
    options.add_argument("--times", type=int, help="repetitions (3; 1 with --quick)")
    options.add_argument("--rows", type=int, help="rows of a backlog (200,000)")
    options.add_argument("--seconds", type=float, help="length of a steady load (20)")
    options.add_argument("--keep", type=Path, default=table.RESULTS, help="where the JSON goes (benchmarks/results)")
    options.add_argument("--place", help="where the server keeps its files (/var/tmp)")
    options.add_argument("--quick", action="store_true", help="small sizes, once: a first impression")
    return options.parse_args()


def main() -> None:
    """Measures, prints, keeps."""
    quiet()
    options = _options()
    if options.list:
        print("\n".join(SCENARIOS))
        return
    size = QUICK if options.quick else Size()
    size = replace(size, rows=options.rows or size.rows, seconds=options.seconds or size.seconds)
    size = replace(size, place=options.place or size.place)
    times = options.times or (1 if options.quick else 3)
    scenarios = chosen(options.scenarios)
    measured = uvloop.run(measure(scenarios, size, times))
    table.show(scenarios, measured.samples, measured.took, size, times)
    print(f"kept in {table.keep(options.keep, scenarios, measured.samples, size, times)}")


if __name__ == "__main__":
    main()
