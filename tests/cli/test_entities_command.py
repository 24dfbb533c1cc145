"""`horai entities`, against a server."""

from pathlib import Path

from terminal import Terminal


def test_D1_entities_are_imported_from_a_file_and_listed(horai: Terminal, tmp_path: Path) -> None:
    made = horai("jobs", "create", "stock", "--every", "1d", "--refresh", "10d", "--refresh-limit", "50", "--json")
    assert made.json["refresh"] == {"window": "10d", "limit": 50, "runOnAdd": False}
    table, lines = tmp_path / "products.csv", tmp_path / "more.jsonl"
    table.write_text("key,warehouse\nsku-1,7\nsku-2,8\n")
    lines.write_text('{"key": "sku-2"}\n\n{"key": "sku-3", "payload": [1]}\n')

    first, second = horai("entities", "import", "stock", str(table)), horai("entities", "import", "stock", str(lines))

    assert (first.code, first.out, first.err) == (0, "", "2 new, 0 known.\n")
    assert second.err == "1 new, 1 known.\n"
    listed = horai("entities", "list", "stock", "--all", "--json").json["items"]
    assert [(entity["key"], entity["payload"]) for entity in listed] == [
        ("sku-1", {"warehouse": "7"}),
        ("sku-2", None),
        ("sku-3", [1]),
    ]
    assert "sku-1" in horai("entities", "list", "stock", "--prefix", "sku-1").out


def test_an_entity_is_added_and_removed_and_the_job_says_how_fresh_they_are(horai: Terminal) -> None:
    horai("jobs", "create", "prices", "--every", "1d", "--refresh", "10d")

    added = horai("entities", "add", "prices", "a", "--payload", '{"n": 1}', "--json")
    shown = horai("entities", "status", "prices")
    removed = horai("entities", "remove", "prices", "a")
    horai("jobs", "create", "plain", "--every", "1d")
    refreshed = [job["name"] for job in horai("jobs", "list", "--refresh", "--all", "--json").json["items"]]

    assert (added.json["status"], added.json["payload"]) == ("NOT_RUN", {"n": 1})
    assert ["never", "run", "1"] in [line.split() for line in shown.out.splitlines()]
    assert "prices" in refreshed
    assert "plain" not in refreshed
    assert (removed.code, removed.err) == (0, "Removed a.\n")
    assert horai("entities", "status", "prices", "--json").json["entities"] == 0


def test_a_file_that_is_none_is_bad_usage(horai: Terminal, tmp_path: Path) -> None:
    wrong, broken = tmp_path / "wrong.csv", tmp_path / "broken.jsonl"
    wrong.write_text("sku\n1\n")
    broken.write_text("{\n")

    assert horai("entities", "import", "stock", str(wrong)).code == 2
    assert horai("entities", "import", "stock", str(broken)).code == 2
    assert horai("entities", "import", "stock", str(tmp_path / "absent.csv")).code == 2
