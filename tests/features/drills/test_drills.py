"""Reports of drills: filed once, listed and read by the platform, by REST."""

from typing import Any

import harness
import pytest
from databases import Superuser
from drill_reports import drill_report
from keys import created, holder, holding

from horai.db import drill_reports

DRILLS = "/api/v1/drills"


async def test_C63_a_report_is_filed_once_and_read_as_it_was_written(url: str) -> None:
    async with harness.node(url) as api:
        report = drill_report()
        made, again = await api("POST", DRILLS, report), await api("POST", DRILLS, report)
        assert (made.status, again.status) == (201, 200)
        assert made.json == again.json
        detail = (await api("GET", f"{DRILLS}/{made.json['id']}")).json
        assert detail["report"] == {**report, "failedAt": "2026-11-03T04:00:12.345000Z"}
        [row] = (await api("GET", DRILLS)).json["items"]
        assert (row["kind"], row["kept"], row["rtoSeconds"], row["rpoSeconds"]) == ("node", True, 11.19, 0.0)
        verbs = [entry["verb"] for entry in (await api("GET", "/api/v1/audit")).json["items"]]
        assert verbs.count("drill.file") == 1


async def test_reports_are_listed_by_kind_and_page_the_newest_filed_first(url: str) -> None:
    async with harness.node(url) as api:
        for kind in ("node", "zone", "node"):
            failed = f"2026-11-0{len((await api('GET', DRILLS)).json['items']) + 1}T04:00:00Z"
            assert (await api("POST", DRILLS, drill_report(kind=kind, failedAt=failed))).status == 201
        assert [row["id"] for row in (await api("GET", f"{DRILLS}?kind=node")).json["items"]] == ["3", "1"]
        first = (await api("GET", f"{DRILLS}?limit=2")).json
        assert [row["id"] for row in first["items"]] == ["3", "2"]
        rest = (await api("GET", f"{DRILLS}?limit=2&cursor={first['nextCursor']}")).json
        assert ([row["id"] for row in rest["items"]], rest["nextCursor"]) == (["1"], None)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"kept": False}, "kept"),
        ({"kind": "disk"}, "kind"),
        ({"rtoSeconds": -1}, "rtoSeconds"),
        ({"promises": []}, "promises"),
        ({"steps": [{"second": 0, "step": "s" * 501}]}, "steps.0.step"),
        ({"verdict": "fine"}, "verdict"),
        ({"failedAt": "yesterday"}, "failedAt"),
    ],
)
async def test_a_report_that_no_drill_writes_is_refused_at_its_field(
    url: str, wrong: dict[str, Any], field: str
) -> None:
    async with harness.node(url) as api:
        refused = await api("POST", DRILLS, drill_report(**wrong))
        assert (refused.status, [error["field"] for error in refused.json["errors"]]) == (422, [field])
        assert (await api("GET", DRILLS)).json["items"] == []


@pytest.mark.parametrize("reference", ["7", "x", "9" * 30])
async def test_a_report_that_does_not_exist_is_not_found(url: str, reference: str) -> None:
    async with harness.node(url) as api:
        missing = await api("GET", f"{DRILLS}/{reference}")
        assert (missing.status, missing.json["code"]) == (404, "SCH_404_NOT_FOUND")


async def test_reports_belong_to_the_platform(url: str) -> None:
    async with harness.node(url) as api:
        root = holding(api, (await created(api, "platform-admin"))["key"])
        admin = await holder(root, "admin", "default")
        assert (await admin("GET", DRILLS)).status == 403
        assert (await admin("POST", DRILLS, drill_report())).status == 403
        assert (await root("POST", DRILLS, drill_report())).status == 201
        assert (await admin("GET", f"{DRILLS}/1")).status == 403


async def test_only_the_newest_reports_are_kept(
    url: str, connection: Superuser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drill_reports, "KEPT_REPORTS", 2)
    async with harness.node(url) as api:
        for day in range(1, 5):
            await api("POST", DRILLS, drill_report(failedAt=f"2026-11-0{day}T04:00:00Z"))
        assert [row["id"] for row in (await api("GET", DRILLS)).json["items"]] == ["4", "3"]
