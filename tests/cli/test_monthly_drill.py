"""The page docs/guides/high-availability.md, typed: Horai runs its own drill by a schedule of its own."""

import json
from datetime import datetime
from pathlib import Path

import pytest
from pages import blocks
from terminal import Terminal
from typist import Typist, typing

PAGE = "docs/guides/high-availability.md"


def fires(typist: Typist) -> list[datetime]:
    told = Terminal(HORAI_SERVER=typist._base)("jobs", "next", "monthly_drill", "--json").json
    return [datetime.fromisoformat(fire["fireTime"]) for fire in told["fires"]]


@pytest.mark.early
@pytest.mark.timeout(300)
def test_C58b_a_job_of_horai_runs_the_drill_every_month_and_its_report_is_kept(short_place: Path) -> None:
    with typing(short_place / "monthly") as typist:
        for block in blocks(PAGE):
            if block.language == "python":
                typist.python(block)
                continue
            for command in block.commands:
                typist.command(command)
        (report,) = (typist.directory / "drills").glob("*-node.json")
        told, coming = json.loads(report.read_text()), fires(typist)

    assert told["kept"]
    assert told["rtoSeconds"] > 0
    assert [(fire.day, fire.hour) for fire in coming] == [(1, 4)] * len(coming)
    assert len({(fire.year, fire.month) for fire in coming}) == len(coming) > 1, "once in each month"
