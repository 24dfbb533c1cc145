"""`horai reconcilers`: list, show, create, run, reports, delete."""

import json
import uuid
from pathlib import Path
from typing import Annotated

import typer

from horai.cli import time_flags
from horai.cli.client import client_of, path_of
from horai.cli.documents import read_document
from horai.cli.errors import BadUsage
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Everything, Limit, Server, flag
from horai.cli.lazy import new_app
from horai.cli.show import console, fields, print_json, print_list, say
from horai.cli.time_flags import Text, given
from horai.cli.views import Document, instant

app = new_app("Reconcilers: what creates the instances that the business misses.")

COLUMNS = ("ID", "NAME", "JOB", "STATUS", "SOURCE", "WHEN")
REPORT_COLUMNS = ("ID", "STARTED", "FINISHED", "FOUND", "MISSING", "CREATED", "SURPLUS", "LEFT", "FAULTY", "ERROR")

Reconciler = Annotated[str, typer.Argument(help="A reconciler's name or id.")]


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
    if as_json:
        print_json(answer)
    else:
        print_list(json.loads(answer), COLUMNS, _row)


@app.command()
def show(
    reconciler: Reconciler, as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None
) -> None:
    """Show one reconciler."""
    _print(client_of(server, api_key).call("GET", path_of("reconcilers", reconciler)), as_json)


@app.command()
def create(
    name: Annotated[Text, typer.Argument(help="The reconciler's name, for good.")] = None,
    file: Annotated[Path | None, flag("--file", "-f", about="JSON definition; - is stdin.", metavar="FILE")] = None,
    job: Annotated[Text, flag("--job", about="The job whose instances it creates.", metavar="JOB")] = None,
    query: Annotated[Text, flag("--query", about="SQL: key, execute_time[, payload]; $1, $2.", metavar="SQL")] = None,
    database_url_env: Annotated[
        Text, flag("--database-url-env", about="The node's variable with its database.", metavar="NAME")
    ] = None,
    source_url: Annotated[Text, flag("--source-url", about="An HTTP source instead.", metavar="URL")] = None,
    every: time_flags.Every = None,
    cron: time_flags.Cron = None,
    timezone: time_flags.Timezone = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Create a reconciler, by flags or from a file; flags win over the file."""
    if name is None and file is None:
        raise BadUsage("A reconciler needs a name.", "horai reconcilers create NAME, or -f FILE with one in it.")
    source = given(query=query, databaseUrlEnv=database_url_env, url=source_url)
    flags = given(name=name, job=job, every=every, cron=cron, timezone=timezone)
    if source:
        flags["source"] = {"type": "http" if source_url else "sql", **source}
    document = {**(read_document(file) if file else {}), **flags}
    _print(client_of(server, api_key).call("POST", path_of("reconcilers"), document), as_json)


@app.command()
def run(
    reconciler: Reconciler,
    idempotency_key: Annotated[
        str | None, flag("--idempotency-key", about="Makes a repeat safe; made up when absent.", metavar="KEY")
    ] = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Compare now."""
    key = idempotency_key or str(uuid.uuid4())
    say(f"Idempotency-Key: {key}")
    path = path_of("reconcilers", reconciler, "run")
    answer = client_of(server, api_key).call("POST", path, None, {"Idempotency-Key": key})
    if as_json:
        print_json(answer)
    else:
        instance = json.loads(answer)["instance"]
        console().print(fields([("instance", instance["id"]), ("state", instance["state"])]))


@app.command()
def reports(
    reconciler: Reconciler,
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List what the comparisons came to, newest first."""
    path = path_of("reconcilers", reconciler, "reports")
    answer = client_of(server, api_key).page(path, {"limit": limit}, everything)
    if as_json:
        print_json(answer)
    else:
        print_list(json.loads(answer), REPORT_COLUMNS, _report_row)


@app.command()
def delete(reconciler: Reconciler, server: Server = DEFAULT_SERVER, api_key: ApiKey = None) -> None:
    """Remove a reconciler; what it has created stays."""
    client_of(server, api_key).call("DELETE", path_of("reconcilers", reconciler))
    say(f"Deleted {reconciler}.")


def _print(answer: bytes, as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    shown: Document = json.loads(answer)
    source = ", ".join(f"{name}={value}" for name, value in shown["source"].items() if name != "headers")
    console().print(
        fields(
            [
                *zip(("id", "name", "job", "status"), _row(shown), strict=False),
                ("source", source),
                ("when", _when(shown)),
            ]
        )
    )


def _row(reconciler: Document) -> tuple[str, ...]:
    return (
        reconciler["id"],
        reconciler["name"],
        reconciler["job"],
        reconciler["status"],
        reconciler["source"]["type"],
        _when(reconciler),
    )


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
