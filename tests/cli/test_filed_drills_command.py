"""`horai drill file`, `list` and `show`."""

import json
from pathlib import Path

import pytest
from terminal import Terminal

REPORTS = sorted((Path(__file__).parents[2] / "docs/drills").glob("*.json"))


def test_reports_are_filed_oldest_first_once_and_shown(horai: Terminal) -> None:
    for _ in range(2):
        filed = horai("drill", "file", *map(str, reversed(REPORTS)))
        assert (filed.code, filed.err) == (0, "")
        assert filed.out.splitlines()[0] == f"{REPORTS[0]} is filed as the report 1."
    rows = json.loads(horai("drill", "list", "--json").out)["items"]
    assert len(rows) == len(REPORTS)
    assert [row["failedAt"] for row in rows] == sorted((row["failedAt"] for row in rows), reverse=True)
    zones = horai("drill", "list", "--kind", "zone").out.splitlines()
    assert [line.split()[0] for line in zones[:1]] == ["ID"]
    assert len(zones) == 2
    shown = horai("drill", "show", rows[0]["id"])
    assert "recovery time (RTO)" in shown.out
    assert "writes are acknowledged again" in shown.out


@pytest.mark.parametrize(
    ("text", "told"), [("{", "is not JSON."), ("[1]", "is not a report of a drill."), (None, "cannot be read:")]
)
def test_a_file_that_is_no_report_is_refused_before_anything_is_filed(
    horai: Terminal, tmp_path: Path, text: str | None, told: str
) -> None:
    good, path = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps({**json.loads(REPORTS[0].read_text()), "machine": tmp_path.name}))
    if text is not None:
        path.write_text(text)
    before = horai("drill", "list", "--json").out
    refused = horai("drill", "file", str(good), str(path))
    assert refused.code == 2
    assert f"{path} {told}" in refused.err
    assert horai("drill", "list", "--json").out == before


def test_a_report_with_another_verdict_than_its_promises_is_refused_with_a_hint(
    horai: Terminal, tmp_path: Path
) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps({**json.loads(REPORTS[0].read_text()), "kept": False}))
    refused = horai("drill", "file", str(path))
    assert refused.code == 1
    assert f"{path}: kept: is not the verdict of the promises" in refused.err
    assert "Send the JSON file of horai drill as it is." in refused.err
