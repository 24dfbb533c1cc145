"""The reports of drills that were run for the documentation."""

import json
import math
from typing import Any

from pages import ROOT

from faults.patroni_reports import page as page_of_run
from horai.cli.drills.kinds import DrillKind

REPORTS = ROOT / "docs" / "drills"


def reports() -> dict[str, Any]:
    return {file.stem: json.loads(file.read_text()) for file in sorted(REPORTS.glob("*.json"))}


def test_C63b_reports_of_each_kind_of_drill_are_stored_with_their_figures() -> None:
    stored = reports()

    assert {each["kind"] for each in stored.values()} == set(DrillKind)
    assert {file.stem for file in REPORTS.glob("2*.md")} == set(stored)
    for name, told in stored.items():
        page = (REPORTS / f"{name}.md").read_text()
        assert name.startswith(f"{told['failedAt'][:10]}-{told['kind']}")
        assert told["kept"] == all(each["kept"] for each in told["promises"])
        assert told["acknowledged"] > 0
        assert told["rtoSeconds"] == max(told["writesPausedSeconds"], told["workDelayedSeconds"])
        for each in told["promises"]:
            assert f"| {each['promise']} | {each['limit']} | {each['measured']} |" in page


def test_reports_of_failures_under_patroni_are_stored_with_their_figures() -> None:
    files = sorted((REPORTS / "patroni").glob("*.json"))
    stored = {file.stem[11:]: json.loads(file.read_text()) for file in files}

    assert set(stored) == {"network-cuts-synchronous", "network-cuts-asynchronous", "failures-asynchronous"}
    for file in files:
        assert file.with_suffix(".md").read_text() == page_of_run(json.loads(file.read_text()))
    for told in stored.values():
        pauses = sorted(each["pauseSeconds"] for each in told["failures"])
        assert told["figures"]["pauseP95Seconds"] == pauses[math.ceil(0.95 * len(pauses)) - 1]
        assert told["figures"]["problems"] == 0
        assert told["ratePerSecond"] == 200
    cuts = stored["network-cuts-synchronous"]
    assert len(cuts["failures"]) == 10
    assert cuts["figures"]["pauseP95Seconds"] <= 35
    assert cuts["figures"]["lost"] == cuts["figures"]["splitWrites"] == 0
    assert stored["network-cuts-asynchronous"]["figures"]["splitWrites"] == 0
