"""`horai assets`, against a server."""

import json

from harness import HoraiProcess
from terminal import Terminal


def test_an_asset_is_listed_updated_and_shown(horai: Terminal, server: HoraiProcess) -> None:
    name = "s3://lake/files"
    calls = ("--url", f"{server.base}/healthz", "--method", "GET")
    assert horai("jobs", "create", "assets-scan", *calls, "--produces", name).code == 0
    assert horai("jobs", "create", "assets-ingest", *calls, "--when", name).code == 0
    assert horai("jobs", "pause", "assets-ingest").code == 0

    update = ("assets", "update", name, "--metadata", '{"name": "a.csv"}', "--idempotency-key", "a.csv", "--json")
    interval = ("--interval", "2026-11-15T00:00:00Z/2026-11-16T00:00:00Z")
    made = horai(*update, *interval)
    assert (made.code, made.err, made.json["asset"]) == (0, "Idempotency-Key: a.csv\n", name)
    assert horai(*update, *interval).json["id"] == made.json["id"]

    (listed,) = [each for each in horai("assets", "list", "--json").json["items"] if each["name"] == name]
    assert (listed["producers"], listed["consumers"]) == (["assets-scan"], ["assets-ingest"])
    assert (listed["updates"], listed["lastInstanceId"]) == (1, None)
    assert name in horai("assets", "list").out

    (kept,) = horai("assets", "show", name, "--json").json["history"]
    assert (kept["id"], kept["metadata"], kept["intervalEnd"]) == (
        made.json["id"],
        {"name": "a.csv"},
        "2026-11-16T00:00:00Z",
    )
    shown = horai("assets", "show", name).out
    assert all(word in shown for word in ("produces", "assets-scan", "waits for all", "assets-ingest", made.json["id"]))


def test_wrong_updates_are_refused_with_a_hint(horai: Terminal) -> None:
    unknown = horai("assets", "update", "assets-nowhere")
    assert (unknown.code, unknown.out) == (1, "")
    assert "hint: Declare it with `produces` or `when` of a job or a workflow first." in unknown.err
    half = horai("assets", "update", "assets-nowhere", "--interval", "2026-11-15T00:00:00Z")
    assert (half.code, "--interval" in half.err) == (2, True)
    assert horai("assets", "update", "assets-nowhere", "--metadata", json.dumps("x")[:-1]).code == 2
