"""`horai reconcilers`: list, show, create, change, pause, resume, run, reports, delete."""

import json
from pathlib import Path
from typing import Annotated

import typer

from horai.cli import time_flags
from horai.cli.client import RestClient, client_of, path_of
from horai.cli.documents import read_document
from horai.cli.errors import BadUsage
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Everything, IdempotencyKey, Limit, Server, flag
from horai.cli.lazy import new_app
from horai.cli.show import once_headers, say, show_fields, show_list
from horai.cli.time_flags import Text, given
from horai.cli.versions import add_versions
from horai.cli.views import Document, Pairs, instant

app = new_app("Reconcilers: compare a source with the instances, and create the missing ones.")

COLUMNS = ("ID", "NAME", "JOB", "STATUS", "SOURCE", "WHEN", "NEXT", "LAST", "MISSING", "CREATED", "ERROR")
REPORT_COLUMNS = ("ID", "STARTED", "FINISHED", "FOUND", "MISSING", "CREATED", "SURPLUS", "LEFT", "FAULTY", "ERROR")

Reconciler = Annotated[str, typer.Argument(help="A reconciler's name or id.")]
Query = Annotated[Text, flag("--query", about="SQL: key, execute_time[, payload]; $1, $2.", metavar="SQL")]
SourceName = Annotated[
    Text, flag("--source", about="Database: a name that the operator allows with --source.", metavar="NAME")
]
SourceUrl = Annotated[Text, flag("--source-url", about="HTTP source instead of a database.", metavar="URL")]
Note = Annotated[str | None, flag("--note", about="Reason; shown with the reconciler.", metavar="TEXT")]
ON_DEMAND = {"every": None, "cron": None}


@app.command("list")
def list_reconcilers(
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List reconcilers, newest first."""
    answer = client_of(server, api_key).page(path_of("reconcilers"), {"limit": limit}, everything)
    show_list(answer, as_json, COLUMNS, _row)


@app.command()
def show(
    reconciler: Reconciler, as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None
) -> None:
    """Show one reconciler."""
    show_fields(client_of(server, api_key).call("GET", path_of("reconcilers", reconciler)), as_json, _fields)


@app.command()
def create(
    name: Annotated[Text, typer.Argument(help="The reconciler's name, which never changes.")] = None,
    file: Annotated[Path | None, flag("--file", "-f", about="JSON definition; - is stdin.", metavar="FILE")] = None,
    job: Annotated[Text, flag("--job", about="The job whose instances it creates.", metavar="JOB")] = None,
    query: Query = None,
    source_name: SourceName = None,
    source_url: SourceUrl = None,
    every: time_flags.Every = None,
    cron: time_flags.Cron = None,
    timezone: time_flags.Timezone = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Create a reconciler from flags or from a file; flags override the file."""
    if name is None and file is None:
        raise BadUsage("A reconciler needs a name.", "horai reconcilers create NAME, or -f FILE with one in it.")
    source = _source(query, source_name, source_url)
    flags = given(name=name, job=job, every=every, cron=cron, timezone=timezone, source=source)
    document = {**(read_document(file) if file else {}), **flags}
    show_fields(client_of(server, api_key).call("POST", path_of("reconcilers"), document), as_json, _fields)


@app.command()
def change(
    reconciler: Reconciler,
    file: Annotated[Path | None, flag("--file", "-f", about="JSON changes; - is stdin.", metavar="FILE")] = None,
    query: Query = None,
    source_name: SourceName = None,
    source_url: SourceUrl = None,
    every: time_flags.Every = None,
    cron: time_flags.Cron = None,
    timezone: time_flags.Timezone = None,
    on_demand: Annotated[bool, flag("--on-demand", about="Run only on request.")] = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Change the schedule or the complete source of a reconciler; flags override the file."""
    source = _source(query, source_name, source_url)
    flags = given(every=every, cron=cron, timezone=timezone, source=source)
    changes = {**(read_document(file) if file else {}), **(ON_DEMAND if on_demand else {}), **flags}
    if not changes:
        raise BadUsage("There is nothing to change.", "Give --every 10m, --query SQL, --on-demand, or -f FILE.")
    client = client_of(server, api_key)
    read: Document = json.loads(client.call("GET", path_of("reconcilers", reconciler)))
    as_read = {"If-Match": f'"{read["version"]}"'}
    show_fields(client.call("PATCH", path_of("reconcilers", read["id"]), changes, as_read), as_json, _fields)


@app.command()
def pause(
    reconciler: Reconciler,
    note: Note = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Pause a reconciler: no new runs start; a running one finishes."""
    _change(client_of(server, api_key), reconciler, "pause", note, as_json)


@app.command()
def resume(
    reconciler: Reconciler,
    note: Note = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Resume a paused reconciler."""
    _change(client_of(server, api_key), reconciler, "resume", note, as_json)


def _change(client: RestClient, reconciler: str, verb: str, note: str | None, as_json: bool) -> None:
    show_fields(client.call("POST", path_of("reconcilers", reconciler, verb), {"note": note}), as_json, _fields)


@app.command()
def run(
    reconciler: Reconciler,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Run a reconciler now."""
    once = once_headers(idempotency_key)
    path = path_of("reconcilers", reconciler, "run")
    answer = client_of(server, api_key).call("POST", path, None, once)
    show_fields(answer, as_json, _instance_fields)


@app.command()
def reports(
    reconciler: Reconciler,
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List the reports of a reconciler's runs, newest first."""
    path = path_of("reconcilers", reconciler, "reports")
    answer = client_of(server, api_key).page(path, {"limit": limit}, everything)
    show_list(answer, as_json, REPORT_COLUMNS, _report_row)


@app.command()
def delete(reconciler: Reconciler, server: Server = DEFAULT_SERVER, api_key: ApiKey = None) -> None:
    """Remove a reconciler; the instances that it has created stay."""
    client_of(server, api_key).call("DELETE", path_of("reconcilers", reconciler))
    say(f"Deleted {reconciler}.")


def _fields(reconciler: Document) -> Pairs:
    source = ", ".join(f"{name}={value}" for name, value in reconciler["source"].items() if name != "headers")
    return [
        *zip(("id", "name", "job", "status"), _row(reconciler), strict=False),
        ("note", reconciler["note"] or ""),
        ("source", source),
        ("when", _when(reconciler)),
        ("next", instant(reconciler["nextFire"])),
        *zip(("last run", "missing", "created", "error"), _last(reconciler), strict=True),
        ("declared by", reconciler["declaredBy"] or ""),
        ("version", str(reconciler["version"])),
    ]


def _instance_fields(started: Document) -> Pairs:
    return [("instance", started["instance"]["id"]), ("state", started["instance"]["state"])]


def _row(reconciler: Document) -> tuple[str, ...]:
    return (
        reconciler["id"],
        reconciler["name"],
        reconciler["job"],
        reconciler["status"],
        reconciler["source"]["type"],
        _when(reconciler),
        instant(reconciler["nextFire"]),
        *_last(reconciler),
    )


def _last(reconciler: Document) -> tuple[str, str, str, str]:
    """Return the time of the last run, its counts of missing and created instances, and its error."""
    report: Document | None = reconciler["lastReport"]
    if report is None:
        return ("", "", "", "")
    counts = (str(report["missing"]), str(report["created"]))
    return (instant(report["finishedAt"] or report["startedAt"]), *counts, report["error"] or "")


def _source(query: str | None, source_name: str | None, source_url: str | None) -> Document | None:
    """Return the complete source that the flags describe, or None without such flags."""
    source = given(query=query, source=source_name, url=source_url)
    return {"type": "http" if source_url else "sql", **source} if source else None


def _when(reconciler: Document) -> str:
    if reconciler["every"]:
        return f"every {reconciler['every']}"
    return reconciler["cron"] or "on demand"


def _report_row(report: Document) -> tuple[str, ...]:
    counts = [report[name] for name in ("found", "missing", "created", "surplus", "leftAlone", "faulty")]
    return (
        report["id"],
        instant(report["startedAt"]),
        instant(report["finishedAt"]),
        *("?" if count is None else str(count) for count in counts),
        report["error"] or "",
    )


add_versions(app, "reconcilers")
