"""Every scenario still runs, and keeps its own account: what it measures is the business of `make bench`."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from console import chromium

ROOT = Path(__file__).parents[1]
TINY = ("--quick", "--times", "1", "--rows", "200", "--seconds", "0.1")
PARTS = 6
"""So that the processes of a test run share them."""
SAME_AS_ANOTHER_AT_THIS_SIZE = {"definitions_3m", "soak_stock"}
TESTED_BELOW = {"peak"}


def _names() -> list[str]:
    """Import them here: test processes that run other tests need none of it."""
    from benchmarks.scenarios import SCENARIOS  # noqa: PLC0415

    return list(SCENARIOS)


def _not_here() -> set[str]:
    """Return the scenarios that need a package of Debian or a browser that this machine does not have."""
    from benchmarks import days  # noqa: PLC0415

    without_library = set() if days.library() else {"days"}
    return without_library | ({"console"} if isinstance(chromium.environment(), chromium.Missing) else set())


def _run(*arguments: str) -> str:
    browser = chromium.environment()
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        env={**os.environ, **({} if isinstance(browser, chromium.Missing) else browser)},
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(180)
@pytest.mark.parametrize("part", range(PARTS))
def test_every_scenario_runs_at_a_tiny_size_and_its_figures_are_kept(part: int, tmp_path: Path):
    every = [name for name in _names() if name not in SAME_AS_ANOTHER_AT_THIS_SIZE | TESTED_BELOW | _not_here()]
    names = every[part::PARTS]  # neighbours take about as long as each other

    shown = _run("benchmarks", *names, *TINY, "--place", tempfile.gettempdir(), "--keep", str(tmp_path))

    (file,) = tmp_path.iterdir()
    kept = json.loads(file.read_text())
    assert {line["scenario"] for line in kept["lines"]} >= set(names)  # and what their ratios are to
    assert len({(line["scenario"], line["name"]) for line in kept["lines"]}) == len(
        {line["name"] for line in kept["lines"]}
    )
    assert all(line["median"] >= 0 for line in kept["lines"] if not line["name"].endswith(" slope"))
    drains = {line["per"]: line["ratio"] for line in kept["lines"] if line["name"] == "drain"}
    assert "drain" not in names or drains.keys() == {"raw_limit", "own_sql"}
    assert all(ratio > 0 for ratio in drains.values())
    assert kept["commit"]
    assert kept["machine"]["cores"]
    assert all(name in shown for name in names)


@pytest.mark.timeout(180)
def test_C58a_the_load_test_of_the_trigger_prints_its_p95_its_successes_and_the_machines_for_the_load_of_the_seed(
    tmp_path: Path,
):
    shown = _run("benchmarks", "peak", *TINY, "--place", tempfile.gettempdir(), "--keep", str(tmp_path))

    (file,) = tmp_path.iterdir()
    found = {line["name"]: line["median"] for line in json.loads(file.read_text())["lines"]}
    assert found["fires of the seed"] == 55_556
    assert 0 < found["successes of the seed's load"] <= found["successes of the highest rate"] == 100
    assert 0 < found["p95 of the highest rate"] < 2000
    assert found["machines for the seed's load"] == pytest.approx(55_556 / found["highest rate"])
    assert all(name in shown for name in found)


def test_the_command_lists_every_scenario():
    assert _run("benchmarks", "--list").split() == _names()


def test_the_command_for_the_peers_says_whom_it_knows():
    assert "Graphile Worker" in _run("benchmarks.peers", "--help")
