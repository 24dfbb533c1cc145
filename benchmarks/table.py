"""The one table, and the JSON that is kept beside it."""

import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.engines import SETTINGS
from benchmarks.scenario import Line, Samples, Scenario
from benchmarks.sitting import SHARED_BUFFERS, Size

RESULTS = Path(__file__).parent / "results"
NOTE = "sdk_*: functions of a worker, through the public SDK. Others: an executor in the engine's process that does nothing."
WIDTH = 150
QUICK = "Quick sizes: they show that everything runs, not how fast it is."


def number(value: float) -> str:
    """Three figures that count."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def show(scenarios: Sequence[Scenario], samples: Samples, took: Mapping[str, float], size: Size, times: int) -> None:
    """Prints what was measured and whether it is what was asked."""
    title = (
        f"median of {times} on {machine()['cores']} cores, backlogs of {size.rows:,}, {size.seconds:g} s of steady load"
    )
    table = Table(title=title, caption=f"{NOTE}\n{QUICK}" if size.quick else NOTE)
    for heading in ("scenario", "figure", "median", "from – to", "ratio", "to", "target", "holds"):
        table.add_column(heading, justify="right" if heading in {"median", "ratio", "from – to"} else "left")
    for scenario in scenarios:
        for first, line in enumerate(scenario.lines):
            name = f"{scenario.name} ({took[scenario.name]:.0f} s)" if first == 0 else ""
            table.add_row(name, *_cells(line, samples))
    Console(width=WIDTH).print(table)


def _cells(line: Line, samples: Samples) -> tuple[str, ...]:
    found = samples[line.name]
    verdict = {None: "", True: "yes", False: "NO"}[line.holds(samples)]
    return (
        line.name,
        f"{number(line.median(samples))} {line.unit}",
        f"{number(min(found))} – {number(max(found))}" if len(found) > 1 else "",
        f"{line.judged(samples):.2f}" if line.per else "",
        line.per or "",
        line.target,
        verdict,
    )


def keep(place: Path, scenarios: Sequence[Scenario], samples: Samples, size: Size, times: int) -> Path:
    """Writes the figures with all that is needed to judge them later."""
    place.mkdir(exist_ok=True)
    at = datetime.now(UTC)
    lines = [
        {
            **asdict(line),
            "scenario": scenario.name,
            "median": line.median(samples),
            "ratio": line.judged(samples) if line.per else None,
            "holds": line.holds(samples),
        }
        for scenario in scenarios
        for line in scenario.lines
    ]
    kept = {
        "at": at.isoformat(),
        "commit": commit(),
        "machine": machine(),
        "settings": {**asdict(size), "times": times, "shared_buffers": SHARED_BUFFERS, "engine": asdict(SETTINGS)},
        "note": NOTE,
        "lines": lines,
        "samples": dict(samples),
    }
    file = place / f"{at:%Y%m%d-%H%M%S}.json"
    file.write_text(json.dumps(kept, indent=2, default=str) + "\n")
    return file


def machine() -> dict[str, object]:
    """Return the hardware and software that the figures were measured on."""
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("model name")), "")


def commit() -> str:
    """The commit that was measured, and whether the checkout had changes on top."""
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"], capture_output=True, text=True, check=False
    )
    return told.stdout.strip()
