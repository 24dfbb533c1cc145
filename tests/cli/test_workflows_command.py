"""`horai workflows`, against a server."""

import json
import time
from typing import Any

from harness import HoraiProcess
from terminal import Terminal


def flow(horai: Terminal, server: HoraiProcess, name: str) -> Any:
    """Two jobs that call the server's own health, one after the other."""
    for job in ("extract", "publish"):
        horai("jobs", "create", f"{name}-{job}", "--url", f"{server.base}/healthz", "--method", "GET")
    nodes = [
        {"name": "extract", "job": f"{name}-extract"},
        {"name": "publish", "job": f"{name}-publish", "after": ["extract"]},
    ]
    made = horai("workflows", "create", "-f", "-", "--json", stdin=json.dumps({"name": name, "nodes": nodes}))
    assert (made.code, made.err) == (0, "")
    return made.json


def finished(horai: Terminal, name: str, run: str) -> Any:
    found: Any = None
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = horai("workflows", "run", name, run, "--json").json
        if found["state"] == "SUCCESS":
            return found
    raise AssertionError(found)


def test_a_workflow_is_created_triggered_followed_and_done_again(horai: Terminal, server: HoraiProcess) -> None:
    made = flow(horai, server, "books")
    assert [node["name"] for node in made["nodes"]] == ["extract", "publish"]
    shown = horai("workflows", "show", "books").out
    assert ["publish", "books-publish", "extract"] in [line.split() for line in shown.splitlines()]
    assert ["books", "ACTIVE", "none", "2", made["id"]] in [
        line.split() for line in horai("workflows", "list").out.splitlines()
    ]

    started = horai("workflows", "trigger", "books", "--payload", '{"day": 1}', "--json")
    assert started.err.startswith("Idempotency-Key: ")
    run = started.json["run"]["id"]
    done = finished(horai, "books", run)
    assert [(node["name"], node["state"]) for node in done["nodes"]] == [("extract", "SUCCESS"), ("publish", "SUCCESS")]
    assert [each["id"] for each in horai("workflows", "runs", "books", "--json").json["items"]] == [run]
    assert [run, "SUCCESS"] in [line.split()[:2] for line in horai("workflows", "runs", "books").out.splitlines()]
    assert horai("workflows", "runs", "books", "--state", "blocked", "--json").json["items"] == []
    assert "SUCCESS" in next(line for line in horai("workflows", "list").out.splitlines() if line.startswith("books"))

    again = horai("workflows", "rerun", "books", run, "--from", "publish")
    assert (again.code, again.err) == (0, "")
    assert again.out.splitlines()[0].split() == ["run", run]
    finished(horai, "books", run)
    assert "publish" in horai("workflows", "run", "books", run).out


def test_a_workflow_is_deleted_only_with_a_yes(horai: Terminal, server: HoraiProcess) -> None:
    flow(horai, server, "papers")

    assert horai("workflows", "delete", "papers").failed_with(
        2, "error: Deleting papers needs confirmation, and stdin is not a terminal.", "hint: Add --yes."
    )
    assert horai("workflows", "delete", "papers", "--yes").err == "Deleted papers.\n"
    gone = horai("workflows", "show", "papers")
    assert (gone.code, gone.err.splitlines()[0]) == (1, "error: There is no workflow 'papers'.")


def test_a_cycle_is_refused_in_words(horai: Terminal, server: HoraiProcess) -> None:
    document = {"name": "round", "nodes": [{"name": "a", "after": ["b"]}, {"name": "b", "after": ["a"]}]}

    refused = horai("workflows", "create", "-f", "-", stdin=json.dumps(document))

    assert refused.code == 1
    assert refused.err.startswith("error: nodes: wait for one another in a circle: ")
