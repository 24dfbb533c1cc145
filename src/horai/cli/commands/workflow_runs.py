"""Runs of workflows on the command line: show one, and wait until it stops."""

import json
import time
from typing import Annotated

from horai.cli.client import RestClient, path_of
from horai.cli.errors import CommandFailed
from horai.cli.flags import duration, flag
from horai.cli.show import console, fields, say, show_answer, table
from horai.cli.views import Document, Pairs, cause_text, instant

RUN_COLUMNS = ("RUN", "STATE", "FIRE TIME", "FINISHED", "TOOK")
RUN_NODE_COLUMNS = ("NODE", "STATE", "INSTANCE", "AFTER", "STARTED", "FINISHED", "ERROR")
ITEM_COLUMNS = ("ITEM", "STATE", "INSTANCE", "STARTED", "FINISHED", "RESULT", "ERROR")
RESULT_WIDTH = 60
"""Characters of the result of an item that a list shows."""
UNDER_WAY = frozenset({"PENDING", "RUNNING"})
FIRST_LOOK, LONGEST_LOOK = 0.1, 2.0
"""Seconds between two reads of a run that a command waits for."""

Timeout = Annotated[str | None, flag("--timeout", about="Longest wait (no limit).", metavar="DURATION")]


def wait_for(client: RestClient, workflow: str, run: str, timeout: str | None, as_json: bool) -> None:
    """Wait until a run stops and print it. Raises `CommandFailed` unless it has succeeded within the timeout."""
    deadline = None if timeout is None else time.monotonic() + duration("--timeout", timeout).total_seconds()
    path, pause = path_of("workflows", workflow, "runs", run), FIRST_LOOK
    say(f"Waiting for run {run}. Ctrl-C stops waiting; horai workflows cancel {workflow} {run} ends the run.")
    while True:
        answer = client.call("GET", path)
        found: Document = json.loads(answer)
        if found["state"] not in UNDER_WAY:
            break
        if deadline is not None and time.monotonic() + pause > deadline:
            raise CommandFailed(
                f"The run {run} of {workflow} did not end within {timeout}: it is {found['state']}.",
                f"horai workflows run {workflow} {run} shows every node.",
            )
        time.sleep(pause)
        pause = min(pause * 1.5, LONGEST_LOOK)
    show_answer(answer, as_json, print_run)
    if found["state"] != "SUCCESS":
        raise CommandFailed(f"The run {run} of {workflow} is {found['state']}.", _advice(workflow, found))


def _advice(workflow: str, run: Document) -> str | None:
    if run["state"] != "BLOCKED":
        return None
    cause = next((cause["node"] for cause in run["rootCauses"]), "NODE")
    return f"horai workflows rerun {workflow} {run['id']} --from {cause} runs the dead node again."


def run_row(run: Document) -> tuple[str, ...]:
    """Return a run on one line, as in `RUN_COLUMNS`."""
    return (run["id"], run["state"], instant(run["fireTime"]), instant(run["finishedAt"]), _took(run))


def _took(run: Document) -> str:
    took = run["durationMs"]
    return "" if took is None else f"{took / 1000:.3f} s"


def _interval(run: Document) -> str:
    interval = run["interval"]
    return "" if interval is None else f"{instant(interval['start'])} to {instant(interval['end'])}"


def run_fields(run: Document) -> Pairs:
    """Return the fields of a run without its nodes."""
    return [
        ("run", run["id"]),
        ("workflow", run["workflow"]),
        ("state", run["state"]),
        ("fire time", instant(run["fireTime"])),
        ("interval", _interval(run)),
        ("finished", instant(run["finishedAt"])),
        ("took", _took(run)),
        *([] if (parent := run.get("parent")) is None else [("node of", _parent_text(parent))]),
    ]


def _parent_text(parent: Document) -> str:
    return f"{parent['node']} in run {parent['runId']} of {parent['workflow']}"


def map_text(progress: Document) -> str:
    """Return the progress of a map, such as `37 of 100 items, 2 failed`."""
    if progress["total"] is None:
        return "items not counted yet"
    failed = f", {progress['failed']} failed" if progress["failed"] else ""
    return f"{progress['done']} of {progress['total']} items{failed}"


def _work_of(node: Document) -> str:
    """Return what works for a node: its instance, its items, or the run of another workflow, such as `daily run 35`."""
    if node["map"] is not None:
        return map_text(node["map"])
    if (sensor := node["sensor"]) is not None:
        until = f", until {instant(sensor['deadlineAt'])}" if sensor["deadlineAt"] else ""
        asked = "asked once" if sensor["polls"] == 1 else f"asked {sensor['polls']} times"
        return f"{node['instanceId']}: {asked}{until}"
    if (child := node["childRun"]) is None:
        return str(node["instanceId"])
    if child["runId"] is None:
        return f"{child['workflow']} run not started"
    return f"{child['workflow']} run {child['runId']}"


def item_row(item: Document) -> tuple[str, ...]:
    """Return an item of a map on one line, as in `ITEM_COLUMNS`."""
    result = "" if item["result"] is None else json.dumps(item["result"], ensure_ascii=False)
    return (
        str(item["position"]),
        item["state"],
        item["instanceId"],
        instant(item["startedAt"], exact=True),
        instant(item["finishedAt"], exact=True),
        result if len(result) <= RESULT_WIDTH else f"{result[:RESULT_WIDTH]}…",
        item["errorCode"] or "",
    )


def print_run(run: Document) -> None:
    """Print a run with its nodes and the root causes of a blocked one."""
    console().print(fields(run_fields(run)))
    rows = [
        (
            node["name"],
            node["state"],
            _work_of(node),
            ", ".join(node["after"]),
            instant(node["startedAt"], exact=True),
            instant(node["finishedAt"], exact=True),
            node["errorCode"] or "",
        )
        for node in run["nodes"]
    ]
    if rows:
        console().print(table(RUN_NODE_COLUMNS, rows))
    if skipped := [(f"{node['name']} skipped", node["skipReason"]) for node in run["nodes"] if node["skipReason"]]:
        console().print(fields(skipped))
    for cause in run["rootCauses"]:
        console().print(fields([("root cause", cause_text(cause)), ("advice", cause["advice"])]))
