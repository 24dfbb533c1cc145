"""`--count` of the list commands, against a server."""

import json

from harness import HoraiProcess
from terminal import Terminal


def test_lists_print_only_how_many_match(horai: Terminal, server: HoraiProcess) -> None:
    for n in range(3):
        horai("jobs", "create", f"tally-{n}", "--url", f"{server.base}/healthz", "--method", "GET", "--tag", "tally")
    horai("jobs", "create", "tally-stock", "--every", "1d", "--refresh", "10d")
    horai("entities", "add", "tally-stock", "sku-1")
    nodes = [{"name": "only", "job": "tally-0"}]
    horai("workflows", "create", "-f", "-", stdin=json.dumps({"name": "tally-flow", "nodes": nodes}))
    horai("workflows", "trigger", "tally-flow", "--wait")
    horai("instances", "put", "tally-1", "k", "--at", "2999-01-01T00:00:00Z")

    assert horai("jobs", "list", "--tag", "tally", "--count").out == "3\n"
    assert horai("entities", "list", "tally-stock", "--status", "not_run", "--count").out == "1\n"
    assert horai("workflows", "runs", "tally-flow", "--count", "--json").json == {"count": 1, "more": False}
    assert horai("workflows", "runs", "tally-flow", "--to", "2020-01-01T00:00:00Z", "--count").out == "0\n"
    assert horai("instances", "list", "--job", "tally-1", "--count").out == "1\n"
    assert horai("dlq", "list", "--job", "tally-1", "--count").out == "0\n"
    refused = horai("jobs", "list", "--count", "--limit", "3")
    assert (refused.code, refused.err.splitlines()[0]) == (2, "error: --count and --limit exclude each other.")


def test_runs_are_listed_oldest_first_and_by_time(horai: Terminal, server: HoraiProcess) -> None:
    horai("jobs", "create", "sorted", "--url", f"{server.base}/healthz", "--method", "GET")
    nodes = [{"name": "only", "job": "sorted"}]
    horai("workflows", "create", "-f", "-", stdin=json.dumps({"name": "sorted-flow", "nodes": nodes}))
    made = [horai("workflows", "trigger", "sorted-flow", "--json").json["run"]["id"] for _ in range(2)]
    for run in made:
        horai("workflows", "wait", "sorted-flow", run)

    def listed(*flags: str) -> list[str]:
        return [run["id"] for run in horai("workflows", "runs", "sorted-flow", "--json", *flags).json["items"]]

    assert (listed(), listed("--oldest-first")) == (made[::-1], made)
    assert listed("--from", "2999-01-01T00:00:00Z") == []
