"""The calculator reproduces the capacity estimate of seed 002, section 5, from its inputs."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from horai.core.capacity import CapacityFindings, CapacityInputs, plan_capacity, with_findings

SEED = CapacityInputs()
ROOT = Path(__file__).parents[2]


def test_C10a_800_million_fires_a_day_are_9259_a_second_and_55556_at_the_peak() -> None:
    plan = plan_capacity(SEED)

    assert (SEED.definitions, SEED.fires_per_day, SEED.peak_factor) == (3_000_000, 800_000_000, 6)
    assert (round(plan.average_rate), round(plan.peak_rate)) == (9_259, 55_556)


def test_C11a_700_bytes_a_record_are_560_gb_a_day_7_8_tb_hot_and_50_tb_cold() -> None:
    plan = plan_capacity(SEED)

    assert (SEED.record_bytes, SEED.hot_days, SEED.cold_days) == (700, 14, 90)
    assert plan.bytes_per_day == 560e9
    assert round(plan.hot_bytes / 1e12, 1) == 7.8
    assert round(plan.cold_bytes / 1e12) == 50


def test_C12a_8000_a_second_per_node_need_8_nodes_at_the_peak_and_12_deployed() -> None:
    plan = plan_capacity(SEED)

    assert SEED.node_rate == 8_000
    assert (plan.least_nodes, plan.deployed_nodes) == (8, 12)


def test_C12b_the_rate_of_one_node_is_published_as_it_was_measured() -> None:
    page = (ROOT / "docs" / "capacity.md").read_text()
    file = next(word.strip("`,") for word in page.split() if word.startswith("`benchmarks/results/"))
    kept = json.loads((ROOT / file).read_text())

    medians = {line["name"]: line["median"] for line in kept["lines"]}
    assert f"{medians['drain']:,.0f}/s (`drain`)" in page.replace("\n", " ")
    assert f"{medians['sdk drain']:,.0f}/s through the SDK" in page.replace("\n", " ")
    assert kept["settings"]["rows"] == 200_000
    assert min(medians["drain"], medians["sdk drain"]) > SEED.node_rate


def _kept(page: str, since: str) -> tuple[str, dict[str, float]]:
    """Return the section of the page that begins with `since`, and the medians of the file that it names."""
    section = page.partition(since)[2]
    file = next(word.strip("`,:.") for word in section.split() if word.startswith("`benchmarks/results/"))
    return section, {line["name"]: line["median"] for line in json.loads((ROOT / file).read_text())["lines"]}


def test_the_figures_of_three_million_definitions_are_published_as_they_were_measured() -> None:
    section, medians = _kept((ROOT / "docs" / "capacity.md").read_text(), "## Three million definitions")

    for figure, unit, digits in (("start", "s", 2), ("memory", "MB", 0), ("CPU", "µs", 0)):
        few, many = (medians[f"{jobs:,} jobs: {figure}"] for jobs in (30_000, 3_000_000))
        assert f"| {few:.{digits}f} {unit} | {many:.{digits}f} {unit} | {many / few:.2f} | 1.20 |" in section
        assert many / few <= 1.2


def test_the_cores_at_the_peak_follow_from_the_measured_cpu_per_instance() -> None:
    page = (ROOT / "docs" / "capacity.md").read_text()
    _, rates = _kept(page, "## Published rates")
    _, medians = _kept(page, "## Three million definitions")
    peak = plan_capacity(SEED).peak_rate

    for micros in (2e6 / rates["drain"], medians["3,000,000 jobs: CPU"]):
        busy = peak * micros / 1e6
        assert f"| {micros:.0f} µs | {busy:.1f} | {busy / 0.7:.1f} |" in page


@pytest.mark.parametrize(
    ("change", "nodes"),
    [
        ({"node_rate": 55_556.0}, (2, 3)),
        ({"node_rate": 9_259.2}, (8, 12)),
        ({"node_rate": 55_555.0}, (3, 5)),
        ({"spare_nodes": 0, "headroom": 1.0}, (7, 7)),
        ({"fires_per_day": 1}, (2, 3)),
        ({"peak_factor": 12.0}, (15, 23)),
    ],
)
def test_nodes_are_rounded_up_after_the_spare_ones_are_added(change: dict[str, float], nodes: tuple[int, int]) -> None:
    plan = plan_capacity(replace(SEED, **change))  # pyright: ignore[reportArgumentType]

    assert (plan.least_nodes, plan.deployed_nodes) == nodes


def test_measurements_take_the_place_of_the_assumed_bytes_and_rate() -> None:
    found = CapacityFindings(20_000, finished_bytes=350.0, waiting_bytes=900.0, node_rate=28_000.0)

    plan = plan_capacity(with_findings(SEED, found))

    assert (plan.bytes_per_day, plan.least_nodes) == (280e9, 3)
    assert with_findings(SEED, CapacityFindings(0, None)) == SEED, "without a measurement, the assumption stays"


@pytest.mark.parametrize(
    "change",
    [
        {"fires_per_day": 0},
        {"peak_factor": 0.5},
        {"record_bytes": 0.0},
        {"hot_days": 0},
        {"cold_days": -1},
        {"node_rate": 0.0},
        {"spare_nodes": -1},
        {"headroom": 0.9},
        {"definitions": -1},
        {"node_rate": float("nan")},
        {"peak_factor": float("inf")},
    ],
)
def test_a_load_that_cannot_be_planned_is_named(change: dict[str, float]) -> None:
    assert replace(SEED, **change).problem() == next(iter(change))  # pyright: ignore[reportArgumentType]
    assert SEED.problem() is None
