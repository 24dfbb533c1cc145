"""`horai assets`: list, show, update."""

import json
from typing import Annotated, Any

import typer

from horai.cli.client import client_of, path_of
from horai.cli.documents import json_of
from horai.cli.errors import refuse_flag
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Everything, IdempotencyKey, Limit, Server, flag
from horai.cli.lazy import new_app
from horai.cli.show import console as terminal
from horai.cli.show import fields, once_headers, show_answer, show_fields, show_list, table
from horai.cli.views import Document, Pairs, instant

app = new_app("Assets: list and show data assets, and update them from outside.")

COLUMNS = ("NAME", "UPDATED", "UPDATES", "PRODUCED BY", "STARTS")
UPDATE_COLUMNS = ("ID", "AT", "BY", "INSTANCE", "INTERVAL", "METADATA", "STARTED")
USE_COLUMNS = ("ROLE", "JOB", "NODE", "PENDING")
PARTS = 2

Name = Annotated[str, typer.Argument(help="The name of an asset.")]


@app.command("list")
def list_assets(
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List assets by name."""
    answer = client_of(server, api_key).page(path_of("assets"), {"limit": limit}, everything)
    show_list(answer, as_json, COLUMNS, _row)


@app.command()
def show(
    name: Name, limit: Limit = None, as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None
) -> None:
    """Show an asset: the jobs that produce it or wait for it, and its updates, newest first."""
    answer = client_of(server, api_key).page(path_of("assets", name), {"limit": limit}, False)
    show_answer(answer, as_json, _print)


@app.command()
def update(
    name: Name,
    metadata: Annotated[
        str | None, flag("--metadata", about="JSON that the update carries, up to 4 kB.", metavar="JSON")
    ] = None,
    interval: Annotated[
        str | None,
        flag("--interval", about="The data interval: two times with a slash between them.", metavar="START/END"),
    ] = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Update an asset from outside: the jobs that wait for it start."""
    body: dict[str, Any] = {} if metadata is None else {"metadata": json_of("--metadata", metadata)}
    if interval is not None:
        parts = interval.split("/")
        if len(parts) != PARTS:
            refuse_flag(
                "--interval", "is not two times with a slash between them: 2026-11-15T00:00:00Z/2026-11-16T00:00:00Z"
            )
        body["interval"] = {"start": parts[0], "end": parts[1]}
    client = client_of(server, api_key)
    answer = client.call("POST", path_of("assets", name, "updates"), body, once_headers(idempotency_key))
    show_fields(answer, as_json, lambda made: [("asset", made["asset"]), ("update", made["id"])])


def _row(asset: Document) -> tuple[str, ...]:
    return (
        asset["name"],
        instant(asset["updatedAt"]),
        str(asset["updates"]),
        ", ".join(asset["producers"]),
        ", ".join(asset["consumers"]),
    )


def _print(asset: Document) -> None:
    terminal().print(fields(_fields(asset)))
    if asset["uses"]:
        terminal().print(table(USE_COLUMNS, [_use_row(use) for use in asset["uses"]]))
    if asset["history"]:
        terminal().print(table(UPDATE_COLUMNS, [_update_row(made) for made in asset["history"]]))


def _fields(asset: Document) -> Pairs:
    return [("name", asset["name"]), ("updated", instant(asset["updatedAt"])), ("updates", str(asset["updates"]))]


def _use_row(use: Document) -> tuple[str, ...]:
    waits = use["role"] == "WAITS"
    word = ("waits for any" if use["isAny"] else "waits for all") if waits else "produces"
    return (word, use["job"], use["node"] or "", str(use["pending"]) if waits else "")


def _update_row(made: Document) -> tuple[str, ...]:
    interval = f"{instant(made['intervalStart'])}/{instant(made['intervalEnd'])}" if made["intervalStart"] else ""
    metadata = "" if made["metadata"] is None else json.dumps(made["metadata"], ensure_ascii=False)
    by = made["job"] or made["actor"] or ""
    started = ", ".join(made["started"])
    return (made["id"], instant(made["at"]), by, made["instanceId"] or "", interval, metadata, started)
