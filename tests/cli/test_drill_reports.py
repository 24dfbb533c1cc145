"""The reports of drills that were run for the documentation."""

import json
from typing import Any

from pages import ROOT

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
