"""`horai workflows`, against a server."""

import json
import time
from typing import Any
from urllib.request import Request, urlopen

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


def test_C6_rules_retries_and_skipped_nodes_are_shown(horai: Terminal, server: HoraiProcess) -> None:
    nodes = [
        {"name": "extract", "job": "ruled-extract"},
        {
            "name": "alarm",
            "job": "ruled-alarm",
            "after": ["extract"],
            "triggerRule": "oneFailed",
            "retry": {"maxRetry": 7},
        },
    ]
    for node in nodes:
        horai("jobs", "create", str(node["job"]), "--url", f"{server.base}/healthz", "--method", "GET")
    made = horai("workflows", "create", "-f", "-", stdin=json.dumps({"name": "ruled", "nodes": nodes}))
    assert ["alarm", "ruled-alarm", "extract", "oneFailed", "7"] in [line.split() for line in made.out.splitlines()]

    waited = horai("workflows", "trigger", "ruled", "--wait", "--timeout", "30s")

    assert waited.code == 0, waited.err
    assert ["alarm", "SKIPPED"] in [line.split()[:2] for line in waited.out.splitlines()]
    assert "its trigger rule oneFailed cannot be met: 'extract' is SUCCESS" in " ".join(waited.out.split())


def test_C6_maps_are_shown_with_their_progress_and_items(horai: Terminal, server: HoraiProcess) -> None:
    horai("jobs", "create", "mapped-each", "--url", f"{server.base}/healthz", "--method", "GET")
    nodes = [
        {
            "name": "each",
            "job": "mapped-each",
            "map": {"overPayload": "files", "maxConcurrency": 5, "allowFailures": "10%"},
        }
    ]
    made = horai("workflows", "create", "-f", "-", stdin=json.dumps({"name": "mapped", "nodes": nodes}))
    assert "over payload files, at most 5, 10% may fail" in " ".join(made.out.split())
    exported = horai("workflows", "show", "mapped", "--json").json
    assert exported["nodes"][0]["map"] == nodes[0]["map"]

    waited = horai("workflows", "trigger", "mapped", "--payload", '{"files": ["a", "b"]}', "--wait", "--timeout", "30s")

    assert waited.code == 0, waited.err
    assert "2 of 2 items" in " ".join(waited.out.split())
    run = horai("workflows", "runs", "mapped", "--json").json["items"][0]["id"]
    items = horai("workflows", "items", "mapped", run, "each")
    assert [line.split()[:2] for line in items.out.splitlines()][1:] == [["0", "SUCCESS"], ["1", "SUCCESS"]]
    assert horai("workflows", "items", "mapped", run, "each", "--failed", "--json").json["items"] == []
    wrong = horai("workflows", "items", "mapped", run, "other")
    assert wrong.code == 1
    assert "is not a map of this run" in wrong.err
    assert "horai workflows run WORKFLOW RUN" in wrong.err


def test_a_workflow_is_deleted_only_with_a_yes(horai: Terminal, server: HoraiProcess) -> None:
    flow(horai, server, "papers")

    assert horai("workflows", "delete", "papers").failed_with(
        2, "error: Deleting papers needs confirmation, and stdin is not a terminal.", "hint: Add --yes."
    )
    assert horai("workflows", "delete", "papers", "--yes").err == "Deleted papers.\n"
    gone = horai("workflows", "show", "papers")
    assert (gone.code, gone.err.splitlines()[0]) == (1, "error: There is no workflow 'papers'.")


def test_a_workflow_is_paused_with_a_note_and_resumed(horai: Terminal, server: HoraiProcess) -> None:
    flow(horai, server, "counting")

    paused = horai("workflows", "pause", "counting", "--note", "stock-taking", "--json").json
    assert (paused["status"], paused["note"]) == ("PAUSED", "stock-taking")
    assert "stock-taking" in horai("workflows", "show", "counting").out
    waiting = horai("workflows", "trigger", "counting", "--json").json["run"]
    late = horai("workflows", "wait", "counting", waiting["id"], "--timeout", "0s")
    assert (late.code, f"The run {waiting['id']} of counting did not end within 0s" in late.err) == (1, True)

    resumed = horai("workflows", "resume", "counting")
    assert (resumed.code, resumed.err) == (0, "")
    assert ["status", "ACTIVE"] in [line.split() for line in resumed.out.splitlines()]
    assert finished(horai, "counting", waiting["id"])["id"] == waiting["id"]
    gone = horai("workflows", "pause", "no-such-flow")
    assert (gone.code, gone.err.splitlines()[0]) == (1, "error: There is no workflow 'no-such-flow'.")


def test_a_cycle_is_refused_in_words(horai: Terminal, server: HoraiProcess) -> None:
    document = {"name": "round", "nodes": [{"name": "a", "after": ["b"]}, {"name": "b", "after": ["a"]}]}

    refused = horai("workflows", "create", "-f", "-", stdin=json.dumps(document))

    assert refused.code == 1
    assert refused.err.startswith("error: nodes: contain a cycle: ")


def test_a_run_for_a_logical_date_is_awaited(horai: Terminal, server: HoraiProcess) -> None:
    flow(horai, server, "ledgers")

    done = horai("workflows", "trigger", "ledgers", "--logical-date", "2026-01-05T00:00:00Z", "--wait", "--json")
    assert done.code == 0
    assert (done.json["state"], done.json["fireTime"]) == ("SUCCESS", "2026-01-05T00:00:00Z")
    again = horai("workflows", "wait", "ledgers", done.json["id"], "--timeout", "20s")
    assert (again.code, again.out.splitlines()[0].split()) == (0, ["run", done.json["id"]])
    refused = horai("workflows", "trigger", "ledgers", "--logical-date", "2999-01-01T00:00:00Z")
    assert refused.err.splitlines()[1:] == [
        "error: logicalDate: is in the future",
        "hint: A run stands for a time that has passed. Leave the date out to run for the present time.",
    ]


def test_a_wait_fails_unless_the_run_succeeds(horai: Terminal, server: HoraiProcess) -> None:
    horai("jobs", "create", "absent", "--url", f"{server.base}/absent", "--method", "GET")
    horai("workflows", "create", "-f", "-", stdin=json.dumps({"name": "gaps", "nodes": [{"name": "absent"}]}))

    blocked = horai("workflows", "trigger", "gaps", "--wait")

    assert blocked.code == 1
    assert blocked.err.splitlines()[-2].startswith("error: The run ")
    assert blocked.err.splitlines()[-1].endswith("--from absent runs the dead node again.")
    horai("jobs", "pause", "absent")
    run = horai("workflows", "trigger", "gaps", "--json").json["run"]["id"]
    late = horai("workflows", "wait", "gaps", run, "--timeout", "0s")
    assert (late.code, f"The run {run} of gaps did not end within 0s" in late.err) == (1, True)


def test_past_slots_of_a_workflow_are_counted(horai: Terminal, server: HoraiProcess) -> None:
    horai("jobs", "create", "daily-load", "--url", f"{server.base}/healthz", "--method", "GET")
    document = {"name": "dailies", "cron": "0 9 * * *", "nodes": [{"name": "daily-load"}]}
    horai("workflows", "create", "-f", "-", stdin=json.dumps(document))

    planned = horai(
        *("workflows", "backfill", "dailies", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-04T00:00:00Z"),
        *("--dry-run", "--json"),
    )

    assert (planned.code, planned.json["total"]) == (0, 3)


def test_a_composition_is_started_from_a_file_and_once_for_each_key(horai: Terminal, server: HoraiProcess) -> None:
    horai("jobs", "create", "composed-load", "--url", f"{server.base}/healthz", "--method", "GET")
    form = json.dumps({"chain": [{"job": "composed-load"}, {"group": [{"job": "composed-load"}] * 2}]})
    key = ("--idempotency-key", "composed-1")
    shown = horai("workflows", "compose", "-f", "-", *key, stdin=form)
    assert (shown.code, shown.err) == (0, "Idempotency-Key: composed-1\n")
    again = horai("workflows", "compose", "-f", "-", *key, "--wait", "--json", stdin=form)
    assert again.code == 0, again.err
    run = again.json
    assert (run["state"], len(run["nodes"])) == ("SUCCESS", 2)
    assert ["run", run["id"]] in [line.split() for line in shown.out.splitlines()]

    refused = horai("workflows", "compose", "-f", "-", stdin='{"chain": [{"job": "composed-load", "queue": "x"}]}')
    assert refused.code != 0
    assert "chain.0.queue" in refused.err


def test_C6_sensors_and_inner_workflows_are_shown_with_their_settings_and_runs(
    horai: Terminal, server: HoraiProcess
) -> None:
    flow(horai, server, "inner")
    nodes = [
        {"name": "file", "job": "inner-extract", "sensor": {"every": "10s", "deadline": "1h", "onDeadline": "skip"}},
        {"name": "clean", "workflow": "inner", "after": ["file"], "params": {"day": {"value": 1}}},
    ]
    made = horai("workflows", "create", "-f", "-", stdin=json.dumps({"name": "outer", "nodes": nodes}))
    assert made.code == 0, made.err
    shown = horai("workflows", "show", "outer").out
    assert "asks every 10s for 1h, then skip" in shown
    assert "runs inner with day" in shown

    run = horai("workflows", "trigger", "outer", "--json").json["run"]["id"]
    done = finished(horai, "outer", run)
    inner = done["nodes"][0]["childRun"]["runId"]
    told = horai("workflows", "run", "outer", run).out
    assert ": asked once, until " in told
    assert f"inner run {inner}" in told
    assert f"clean in run {run} of outer" in horai("workflows", "run", "inner", inner).out


def test_workflows_are_listed_by_name_and_status(horai: Terminal, server: HoraiProcess) -> None:
    flow(horai, server, "held-one")
    flow(horai, server, "held-two")
    with urlopen(Request(f"{server.base}/api/v1/workflows/held-two/pause", method="POST")) as paused:
        assert paused.status == 200

    def listed(*flags: str) -> list[str]:
        return [each["name"] for each in horai("workflows", "list", "--name", "held-", "--json", *flags).json["items"]]

    assert listed() == ["held-one", "held-two"]
    assert listed("--status", "paused") == ["held-two"]
    assert listed("--status", "ACTIVE") == ["held-one"]
    refused = horai("workflows", "list", "--status", "asleep")
    assert refused.code == 1
    assert "status" in refused.err
