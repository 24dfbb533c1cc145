"""`horai workflows`: list, show, create, trigger, runs, run, rerun, cancel, delete."""

from pathlib import Path
from typing import Annotated

import typer

from horai.cli.client import client_of, path_of
from horai.cli.documents import payload_of, read_document
from horai.cli.flags import (
    DEFAULT_SERVER,
    ApiKey,
    AsJson,
    Everything,
    IdempotencyKey,
    Limit,
    Payload,
    Server,
    Yes,
    confirm_deletion,
    flag,
)
from horai.cli.lazy import new_app
from horai.cli.show import console, fields, once_headers, say, show_answer, show_fields, show_list, table
from horai.cli.views import Document, Pairs, cause_text, instant, schedule_text

app = new_app("Workflows: run jobs in the order of a graph, for one fire time.")

COLUMNS = ("NAME", "STATUS", "SCHEDULE", "NODES", "LAST RUN", "NEXT", "ID")
RUN_COLUMNS = ("RUN", "STATE", "FIRE TIME", "FINISHED", "TOOK")
NODE_COLUMNS = ("NODE", "JOB", "AFTER")
RUN_NODE_COLUMNS = ("NODE", "STATE", "INSTANCE", "AFTER", "STARTED", "FINISHED", "ERROR")

Name = Annotated[str, typer.Argument(help="A workflow's name or id.")]
Run = Annotated[str, typer.Argument(help="A run's id.")]


@app.command("list")
def list_workflows(
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List workflows, oldest first."""
    answer = client_of(server, api_key).page(path_of("workflows"), {"limit": limit}, everything)
    show_list(answer, as_json, COLUMNS, _row)


@app.command()
def show(workflow: Name, as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None) -> None:
    """Show one workflow with its nodes."""
    show_answer(client_of(server, api_key).call("GET", path_of("workflows", workflow)), as_json, _print_workflow)


@app.command()
def create(
    file: Annotated[Path, flag("--file", "-f", about="JSON definition; - is stdin.", metavar="FILE")],
    idempotency_key: Annotated[
        str | None, flag("--idempotency-key", about="Makes a repeat safe.", metavar="KEY")
    ] = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Create a workflow from a file with its name, its nodes and its schedule."""
    once = {"Idempotency-Key": idempotency_key} if idempotency_key else None
    answer = client_of(server, api_key).call("POST", path_of("workflows"), read_document(file), once)
    show_answer(answer, as_json, _print_workflow)


@app.command()
def trigger(
    workflow: Name,
    payload: Payload = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Start a run of a workflow now."""
    once = once_headers(idempotency_key)
    path = path_of("workflows", workflow, "trigger")
    answer = client_of(server, api_key).call("POST", path, payload_of(payload), once)
    show_fields(answer, as_json, lambda told: _run_fields(told["run"]))


@app.command()
def runs(
    workflow: Name,
    state: Annotated[
        str | None, flag("--state", about="RUNNING, BLOCKED, SUCCESS or CANCELLED.", metavar="STATE")
    ] = None,
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List the runs of a workflow, newest fire time first."""
    only = {"limit": limit, "state": state and state.upper()}
    answer = client_of(server, api_key).page(path_of("workflows", workflow, "runs"), only, everything)
    show_list(answer, as_json, RUN_COLUMNS, _run_row)


@app.command()
def run(
    workflow: Name, run: Run, as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None
) -> None:
    """Show one run with its nodes and their states."""
    answer = client_of(server, api_key).call("GET", path_of("workflows", workflow, "runs", run))
    show_answer(answer, as_json, _print_run)


@app.command()
def rerun(
    workflow: Name,
    run: Run,
    node: Annotated[str, flag("--from", about="The first node to run again.", metavar="NODE")],
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Rerun a run from a node: that node and all nodes after it."""
    path = path_of("workflows", workflow, "runs", run, "rerun")
    answer = client_of(server, api_key).call("POST", path, {"from": node})
    show_answer(answer, as_json, lambda told: _print_run(told["run"]))


@app.command()
def cancel(
    workflow: Name, run: Run, as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None
) -> None:
    """Cancel a run: its waiting instances are cancelled, running ones finish."""
    answer = client_of(server, api_key).call("POST", path_of("workflows", workflow, "runs", run, "cancel"))
    show_answer(answer, as_json, lambda told: _print_run(told["run"]))


@app.command()
def delete(
    workflow: Name,
    yes: Yes = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Remove a workflow: waiting instances of its runs are cancelled, running ones finish, its jobs stay."""
    client = client_of(server, api_key)
    if not yes:
        confirm_deletion("workflow", workflow)
    client.call("DELETE", path_of("workflows", workflow))
    say(f"Deleted {workflow}.")


def _print_workflow(workflow: Document) -> None:
    console().print(fields(_fields(workflow)))
    rows = [(node["name"], node["job"], ", ".join(node["after"])) for node in workflow["nodes"]]
    console().print(table(NODE_COLUMNS, rows))


def _row(workflow: Document) -> tuple[str, ...]:
    last = workflow["lastRun"]
    return (
        workflow["name"],
        workflow["status"],
        schedule_text(workflow),
        str(len(workflow["nodes"])),
        last["state"] if last else "",
        instant(workflow["nextFire"]),
        workflow["id"],
    )


def _fields(workflow: Document) -> Pairs:
    return [
        ("name", workflow["name"]),
        ("id", workflow["id"]),
        ("status", workflow["status"]),
        ("note", workflow["note"] or ""),
        ("schedule", schedule_text(workflow)),
        ("queue", workflow["queue"]),
        ("tags", ", ".join(workflow["tags"])),
        ("version", str(workflow["version"])),
        ("updated", instant(workflow["updatedAt"])),
        ("next", instant(workflow["nextFire"])),
        ("last run", _last(workflow["lastRun"])),
    ]


def _last(run: Document | None) -> str:
    return "" if run is None else f"{run['id']} {run['state']} {instant(run['fireTime'])}"


def _run_row(run: Document) -> tuple[str, ...]:
    return (run["id"], run["state"], instant(run["fireTime"]), instant(run["finishedAt"]), _took(run))


def _took(run: Document) -> str:
    took = run["durationMs"]
    return "" if took is None else f"{took / 1000:.3f} s"


def _run_fields(run: Document) -> Pairs:
    return [
        ("run", run["id"]),
        ("workflow", run["workflow"]),
        ("state", run["state"]),
        ("fire time", instant(run["fireTime"])),
        ("finished", instant(run["finishedAt"])),
        ("took", _took(run)),
    ]


def _print_run(run: Document) -> None:
    console().print(fields(_run_fields(run)))
    rows = [
        (
            node["name"],
            node["state"],
            node["instanceId"],
            ", ".join(node["after"]),
            instant(node["startedAt"], exact=True),
            instant(node["finishedAt"], exact=True),
            node["errorCode"] or "",
        )
        for node in run["nodes"]
    ]
    if rows:
        console().print(table(RUN_NODE_COLUMNS, rows))
    for cause in run["rootCauses"]:
        console().print(fields([("root cause", cause_text(cause)), ("advice", cause["advice"])]))
