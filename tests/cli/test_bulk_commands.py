"""Bulk changes on the command line, against a server."""

import itertools
import json
from datetime import datetime, timedelta

import pytest
from harness import HoraiProcess
from terminal import Terminal

from horai.cli.client import RestClient
from horai.cli.commands.jobs_matching import change_jobs
from horai.cli.commands.workflow_bulk import change_runs


def test_runs_are_cancelled_and_rerun_by_filter(horai: Terminal, server: HoraiProcess) -> None:
    horai("jobs", "create", "bulk-fails", "--url", f"{server.base}/absent", "--method", "GET", "--max-retry", "0")
    nodes = [{"name": "only", "job": "bulk-fails"}]
    horai("workflows", "create", "-f", "-", stdin=json.dumps({"name": "bulk-flow", "nodes": nodes}))
    for _ in range(2):
        horai("workflows", "trigger", "bulk-flow", "--wait")
    assert horai("workflows", "runs", "bulk-flow", "--state", "blocked", "--count").out == "2\n"

    nothing = horai("workflows", "cancel", "bulk-flow")
    early = horai("workflows", "rerun-blocked", "bulk-flow", "--to", "2020-01-01T00:00:00Z")
    again = horai("workflows", "rerun-blocked", "bulk-flow", "--json")
    for run in horai("workflows", "runs", "bulk-flow", "--json").json["items"]:
        horai("workflows", "wait", "bulk-flow", run["id"])
    cancelled = horai("workflows", "cancel", "bulk-flow", "--state", "blocked")

    assert (nothing.code, nothing.err.splitlines()[0]) == (
        2, "error: horai workflows cancel takes a run, or --state, --from and --to.",
    )  # fmt: skip
    assert early.err == "Runs rerun: 0.\n"
    assert {name: again.json[name] for name in ("matched", "changed", "skipped")} == {
        "matched": 2,
        "changed": 2,
        "skipped": 0,
    }
    assert cancelled.err == "Runs cancelled: 2.\n"


def test_blocked_runs_are_rerun_at_a_rate_over_several_requests(
    horai: Terminal, server: HoraiProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    horai("jobs", "create", "bulk-senses", "--url", f"{server.base}/absent", "--method", "GET", "--max-retry", "0")
    nodes = [{"name": "only", "job": "bulk-senses", "sensor": {"every": "1s", "deadline": "1h"}}]
    horai("workflows", "create", "-f", "-", stdin=json.dumps({"name": "bulk-paced", "nodes": nodes}))
    runs = [horai("workflows", "trigger", "bulk-paced", "--json").json["run"]["id"] for _ in range(3)]
    for run in runs:
        assert horai("workflows", "wait", "bulk-paced", run).code == 1
    horai("jobs", "pause", "bulk-senses")  # no run is blocked again meanwhile

    wrong = horai("workflows", "rerun-blocked", "bulk-paced", "--rate", "soon")
    early = horai("workflows", "rerun-blocked", "bulk-paced", "--to", "2020-01-01T00:00:00Z", "--rate", "1/h")
    change_runs(RestClient(server.base), "bulk-paced", "rerun", {"state": "BLOCKED", "rate": "1/h", "limit": 2}, True)

    assert (wrong.code, "rate" in wrong.err) == (1, True)
    assert early.err == "Runs rerun: 0.\n"
    assert json.loads(capsys.readouterr().out)["changed"] == 3
    shown = [horai("workflows", "run", "bulk-paced", run, "--json").json["nodes"][0]["sensor"] for run in runs[1:]]
    starts, ends = ([datetime.fromisoformat(each[name]) for each in shown] for name in ("nextPollAt", "deadlineAt"))
    assert [end - start for start, end in zip(starts, ends, strict=True)] == [timedelta(hours=1)] * 2
    assert round((starts[1] - starts[0]).total_seconds()) == 3600
    assert horai("workflows", "cancel", "bulk-paced", "--state", "running").code == 0


def test_entities_are_removed_by_filter(horai: Terminal) -> None:
    horai("jobs", "create", "bulk-stock", "--every", "1d", "--refresh", "10d")
    for key in ("a-1", "a-2", "b-1"):
        horai("entities", "add", "bulk-stock", key)
    assert horai("entities", "remove", "bulk-stock", "--prefix", "a-", "--dry-run").err == "2 would be removed.\n"
    assert horai("entities", "remove", "bulk-stock", "--prefix", "a-").err == "Removed 2.\n"
    assert horai("entities", "list", "bulk-stock", "--count").out == "1\n"
    assert horai("entities", "remove", "bulk-stock").code == 2


def test_jobs_are_paused_by_owner(horai: Terminal) -> None:
    horai("jobs", "create", "bulk-owned", "--every", "1d", "--owner", "bulk team", "--url", "http://127.0.0.1:9/hook")
    assert horai("jobs", "pause", "--owner", "bulk team").err == "Jobs paused: 1.\n"
    assert horai("jobs", "show", "bulk-owned", "--json").json["status"] == "PAUSED"


def jobs(horai: Terminal, tag: str, count: int) -> list[str]:
    names = [f"{tag}-{number}" for number in range(count)]
    for name in names:
        assert horai("jobs", "create", name, "--tag", tag, "--owner", f"{tag} team", "--handler", "absent").code == 0
    return names


def runs_of(horai: Terminal, name: str) -> list[dict[str, str]]:
    return horai("instances", "list", "--job", name, "--json").json["items"]


def test_jobs_that_match_are_counted_and_run_once_for_each_key(horai: Terminal) -> None:
    names = jobs(horai, "bulk-run", 3)
    trigger = ("jobs", "trigger", "--tag", "bulk-run", "--payload", '{"n": 1}')

    assert horai(*trigger, "--dry-run").err == "3 would be triggered.\n"
    assert horai(*trigger, "--dry-run", "--json").json["matched"] == 3
    assert runs_of(horai, names[0]) == []
    done = horai(*trigger, "--yes", "--idempotency-key", "bulk-run-1")
    again = horai(*trigger, "--yes", "--idempotency-key", "bulk-run-1")

    assert (done.code, done.err) == (0, "Idempotency-Key: bulk-run-1\nJobs triggered: 3.\n")
    assert again.err == done.err
    assert [[each["payload"] for each in runs_of(horai, name)] for name in names] == [[{"n": 1}]] * 3
    owned = horai("jobs", "trigger", "--owner", "bulk-run team", "--rate", "30/h", "--yes", "--json")
    assert owned.json == {"matched": 3, "changed": 3, "skipped": 0, "held": 0, "reasons": []}
    starts = sorted(datetime.fromisoformat(runs_of(horai, name)[0]["fireTime"]) for name in names)
    assert [round((after - before).total_seconds()) for before, after in itertools.pairwise(starts)] == [120, 120]


def test_jobs_of_a_queue_are_deleted_and_those_of_a_workflow_are_named(horai: Terminal) -> None:
    names = jobs(horai, "bulk-gone", 3)
    horai("queues", "set", "bulk-gone")
    horai("jobs", "create", "bulk-gone-queued", "--queue", "bulk-gone", "--handler", "absent")
    nodes = [{"name": "only", "job": names[1]}]
    horai("workflows", "create", "-f", "-", stdin=json.dumps({"name": "bulk-holder", "nodes": nodes}))

    assert horai("jobs", "delete", "--tag", "bulk-gone", "--dry-run").err == "3 would be deleted.\n"
    done = horai("jobs", "delete", "--tag", "bulk-gone", "--yes", "--idempotency-key", "gone")
    queued = horai("jobs", "delete", "--queue", "bulk-gone", "--yes", "--json")

    lines = done.err.splitlines()
    assert lines[:3] == ["Idempotency-Key: gone", "Jobs deleted: 2.", "Skipped: 1."]
    assert lines[3].startswith(f"  {names[1]}: ")
    assert "bulk-holder" in lines[3]
    assert queued.json["changed"] == 1
    assert [horai("jobs", "show", name).code for name in (*names, "bulk-gone-queued")] == [1, 0, 1, 1]


def test_many_jobs_are_changed_request_by_request_and_an_interrupted_command_is_finished_with_its_key(
    horai: Terminal, server: HoraiProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    names, client = jobs(horai, "bulk-pages", 5), RestClient(server.base)
    wish = {"tag": "bulk-pages", "limit": 2, "rate": "30/h"}
    first = ("POST", "/api/v1/jobs/trigger", wish, {"Idempotency-Key": "bulk-pages"})
    assert json.loads(client.call(*first))["changed"] == 2

    change_jobs(client, "trigger", wish, "bulk-pages", as_json=True)

    assert json.loads(capsys.readouterr().out)["changed"] == 5
    found = [runs_of(horai, name) for name in names]
    assert [len(each) for each in found] == [1] * 5
    starts = [datetime.fromisoformat(each[0]["fireTime"]) for each in found]
    assert [round((after - before).total_seconds()) for before, after in itertools.pairwise(starts)] == [120] * 4


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("trigger",), "error: horai jobs trigger takes a job, or --tag, --queue and --owner."),
        (("trigger", "one", "--tag", "a"), "error: horai jobs trigger takes a job, or --tag, --queue and --owner."),
        (
            ("trigger", "--tag", "a", "--wait", "--unique", "1m"),
            "error: horai jobs trigger: --unique, --wait need a job.",
        ),
        (("trigger", "one", "--rate", "1/s"), "error: horai jobs trigger: --rate cannot be combined with a job."),
        (
            ("trigger", "--tag", "a"),
            "error: Running all jobs that match needs confirmation, and stdin is not a terminal.",
        ),
        (("delete",), "error: horai jobs delete takes a job, or --tag, --queue and --owner."),
        (("delete", "one", "--queue", "a"), "error: horai jobs delete takes a job, or --tag, --queue and --owner."),
        (("delete", "one", "--dry-run"), "error: --dry-run counts jobs that match, and cannot be combined with a job."),
        (
            ("delete", "--owner", "a"),
            "error: Deleting all jobs that match needs confirmation, and stdin is not a terminal.",
        ),
    ],
)
def test_a_bulk_change_that_is_not_understood_changes_nothing(
    horai: Terminal, arguments: tuple[str, ...], line: str
) -> None:
    refused = horai("jobs", *arguments)

    assert (refused.code, refused.out, refused.err.splitlines()[0]) == (2, "", line)


def test_a_wrong_rate_is_refused_by_the_dry_run(horai: Terminal) -> None:
    jobs(horai, "bulk-rate", 1)

    refused = horai("jobs", "trigger", "--tag", "bulk-rate", "--rate", "soon", "--dry-run")

    assert refused.code == 1
    assert "rate" in refused.err.splitlines()[0]
