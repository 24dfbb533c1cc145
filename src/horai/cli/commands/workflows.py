"""`horai workflows`: definitions (list, show, create, pause, resume, delete), and runs (trigger, compose, wait, rerun, cancel, …)."""

import json
from pathlib import Path
from typing import Annotated

import typer

from horai.cli.client import RestClient, client_of, path_of
from horai.cli.commands.jobs_backfill import backfill
from horai.cli.commands.workflow_bulk import change_runs, require_one
from horai.cli.commands.workflow_runs import (
    ITEM_COLUMNS,
    RUN_COLUMNS,
    Timeout,
    item_row,
    print_run,
    run_fields,
    run_row,
    wait_for,
)
from horai.cli.counts import print_count
from horai.cli.documents import payload_of, read_document
from horai.cli.flags import (
    DEFAULT_SERVER,
    ApiKey,
    AsJson,
    Count,
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
from horai.cli.time_flags import given
from horai.cli.versions import add_versions
from horai.cli.views import Document, Pairs, instant, schedule_text

app = new_app("Workflows: run jobs in the order of a graph, for one fire time.")

COLUMNS = ("NAME", "STATUS", "SCHEDULE", "NODES", "LAST RUN", "NEXT", "ID")
NODE_COLUMNS = ("NODE", "JOB", "AFTER", "TRIGGER RULE", "RETRIES", "KIND")

Name = Annotated[str, typer.Argument(help="A workflow's name or id.")]
Run = Annotated[str, typer.Argument(help="A run's id.")]
OneRun = Annotated[str | None, typer.Argument(help="A run's id; or select runs by flags.", show_default=False)]
OpenState = Annotated[str | None, flag("--state", about="All RUNNING or all BLOCKED runs.", metavar="STATE")]
Note = Annotated[str | None, flag("--note", about="Reason; shown with the workflow.", metavar="TEXT")]
Since = Annotated[str | None, flag("--from", about="First fire time, with an offset.", metavar="TIME")]
Until = Annotated[str | None, flag("--to", about="Fire times before this one.", metavar="TIME")]


@app.command("list")
def list_workflows(
    name: Annotated[str | None, flag("--name", about="Text in the name or title.", metavar="TEXT")] = None,
    owner: Annotated[str | None, flag("--owner", about="Only workflows of this owner.", metavar="TEXT")] = None,
    tag: Annotated[str | None, flag("--tag", about="Only workflows with this tag.", metavar="TAG")] = None,
    status: Annotated[str | None, flag("--status", about="ACTIVE or PAUSED.", metavar="STATUS")] = None,
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List workflows, oldest first."""
    query = {"limit": limit, **given(nameContains=name, owner=owner, tag=tag, status=status and status.upper())}
    answer = client_of(server, api_key).page(path_of("workflows"), query, everything)
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
def pause(
    workflow: Name,
    note: Note = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Pause a workflow: it starts no new runs; current runs continue."""
    _change("pause", client_of(server, api_key), workflow, note, as_json)


@app.command()
def resume(
    workflow: Name,
    note: Note = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Resume a paused workflow: runs of the pause follow the misfire policy."""
    _change("resume", client_of(server, api_key), workflow, note, as_json)


def _change(verb: str, client: RestClient, workflow: str, note: str | None, as_json: bool) -> None:
    show_answer(client.call("POST", path_of("workflows", workflow, verb), {"note": note}), as_json, _print_workflow)


@app.command()
def trigger(
    workflow: Name,
    payload: Payload = None,
    logical_date: Annotated[
        str | None,
        flag("--logical-date", about="Time that the run stands for, such as 2026-11-01T00:00:00Z.", metavar="TIME"),
    ] = None,
    wait: Annotated[bool, flag("--wait", about="Wait for the end; exit with 1 unless the run succeeds.")] = False,
    timeout: Timeout = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Start a run of a workflow now."""
    client, once = client_of(server, api_key), once_headers(idempotency_key)
    path = path_of("workflows", workflow, "trigger")
    body = {**payload_of(payload), **given(logicalDate=logical_date)}
    answer = client.call("POST", path, body, once)
    if wait:
        wait_for(client, workflow, json.loads(answer)["run"]["id"], timeout, as_json)
    else:
        show_fields(answer, as_json, lambda told: run_fields(told["run"]))


@app.command()
def compose(
    file: Annotated[Path, flag("--file", "-f", about="JSON composition; - is stdin.", metavar="FILE")],
    at: Annotated[
        str | None, flag("--at", about="Time to start, such as 2026-11-01T09:00:00Z.", metavar="TIME")
    ] = None,
    wait: Annotated[bool, flag("--wait", about="Wait for the end; exit with 1 unless the run succeeds.")] = False,
    timeout: Timeout = None,
    idempotency_key: Annotated[
        str | None, flag("--idempotency-key", about="Makes a repeat safe.", metavar="KEY")
    ] = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Start calls of jobs as one run: a file with a chain, a group, a map or a chord."""
    client, once = client_of(server, api_key), once_headers(idempotency_key)
    answer = client.call("POST", path_of("compositions"), {**read_document(file), **given(at=at)}, once)
    if wait:
        told = json.loads(answer)
        wait_for(client, told["workflow"], told["id"], timeout, as_json)
    else:
        show_fields(answer, as_json, _composition_fields)


def _composition_fields(told: Document) -> Pairs:
    return [("run", told["id"]), ("workflow", told["workflow"]), ("nodes", ", ".join(told["nodes"]))]


@app.command()
def runs(
    workflow: Name,
    state: Annotated[
        str | None, flag("--state", about="RUNNING, BLOCKED, SUCCESS or CANCELLED.", metavar="STATE")
    ] = None,
    since: Since = None,
    until: Until = None,
    oldest: Annotated[bool, flag("--oldest-first", about="List the oldest fire time first.")] = False,
    count: Count = False,
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List the runs of a workflow, newest fire time first."""
    only = {"limit": limit, "state": state and state.upper(), "from": since, "to": until}
    client = client_of(server, api_key)
    if count:
        print_count(client, path_of("workflows", workflow, "runs", "count"), only, as_json)
        return
    only |= {"order": "oldest" if oldest else None}
    answer = client.page(path_of("workflows", workflow, "runs"), only, everything)
    show_list(answer, as_json, RUN_COLUMNS, run_row)


@app.command()
def run(
    workflow: Name, run: Run, as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None
) -> None:
    """Show one run with its nodes and their states."""
    answer = client_of(server, api_key).call("GET", path_of("workflows", workflow, "runs", run))
    show_answer(answer, as_json, print_run)


@app.command()
def items(
    workflow: Name,
    run: Run,
    node: Annotated[str, typer.Argument(help="The name of a node that is a map.")],
    failed: Annotated[bool, flag("--failed", about="Only items that failed.")] = False,
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List the items of a map in order, with their results."""
    path = path_of("workflows", workflow, "runs", run, "nodes", node, "items")
    only = {"limit": limit, "failed": "true" if failed else None}
    show_list(client_of(server, api_key).page(path, only, everything), as_json, ITEM_COLUMNS, item_row)


@app.command()
def wait(
    workflow: Name,
    run: Run,
    timeout: Timeout = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Wait until a run stops and show it; exit with 1 unless it has succeeded."""
    wait_for(client_of(server, api_key), workflow, run, timeout, as_json)


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
    show_answer(answer, as_json, lambda told: print_run(told["run"]))


@app.command("rerun-blocked")
def rerun_blocked(
    workflow: Name,
    since: Since = None,
    until: Until = None,
    rate: Annotated[str | None, flag("--rate", about="Rate of starts, such as 100/s, 30/m.", metavar="RATE")] = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Rerun all blocked runs, each from the dead nodes that block it."""
    only = {"state": "BLOCKED", **given(**{"from": since, "to": until}, rate=rate)}
    change_runs(client_of(server, api_key), workflow, "rerun", only, as_json)


app.command("backfill", help="Run past slots of a workflow, beside its current runs.")(backfill)


@app.command()
def cancel(
    workflow: Name,
    run: OneRun = None,
    state: OpenState = None,
    since: Since = None,
    until: Until = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Cancel a run, or all unfinished runs that match: waiting instances and all items of maps are cancelled, other running ones finish."""
    client, only = client_of(server, api_key), given(state=state and state.upper(), **{"from": since, "to": until})
    require_one("cancel", run, only)
    if run is None:
        change_runs(client, workflow, "cancel", only, as_json)
        return
    answer = client.call("POST", path_of("workflows", workflow, "runs", run, "cancel"))
    show_answer(answer, as_json, lambda told: print_run(told["run"]))


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
    console().print(table(NODE_COLUMNS, [_node_row(node) for node in workflow["nodes"]]))


def _node_row(node: Document) -> tuple[str, ...]:
    rule = "" if node["triggerRule"] == "allSuccess" else node["triggerRule"]
    retries = "" if node["retry"] is None else str(node["retry"]["maxRetry"])
    kind = _map_text(node["map"]) or _child_text(node) or _sensor_text(node["sensor"])
    return node["name"], node["job"], ", ".join(node["after"]), rule, retries, kind


def _sensor_text(given: Document | None) -> str:
    """Return a sensor in a few words, such as `asks every 30s for 2h, then skip`."""
    if given is None:
        return ""
    return f"asks every {given['every']} for {given['deadline']}, then {given['onDeadline']}"


def _child_text(node: Document) -> str:
    """Return the parameters of a sub-workflow in a few words, such as `runs daily with day, rows`."""
    if node["workflow"] is None:
        return ""
    given = f" with {', '.join(node['params'])}" if node["params"] else ""
    return f"runs {node['workflow']}{given}"


def _map_text(given: Document | None) -> str:
    """Return a map in a few words, such as `over list, at most 50, 10% may fail`."""
    if given is None:
        return ""
    source = given["over"] if "over" in given else f"payload {given['overPayload']}".strip()
    most = f", at most {given['maxConcurrency']}" if "maxConcurrency" in given else ""
    failures = f", {given['allowFailures']} may fail" if "allowFailures" in given else ""
    return f"over {'each of ' if given.get('flatten') else ''}{source}{most}{failures}"


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


add_versions(app, "workflows")
