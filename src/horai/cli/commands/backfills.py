"""`horai backfills`: list, show, pause, resume, cancel. `horai jobs backfill` starts one."""

from typing import Annotated

import typer

from horai.cli.client import RestClient, client_of, path_of
from horai.cli.commands.jobs_backfill import print_backfill
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Everything, Limit, Server, flag
from horai.cli.lazy import new_app
from horai.cli.show import show_list
from horai.cli.views import Document, instant

app = new_app("Backfills: run past slots again, or for the first time.")

COLUMNS = ("ID", "JOB", "STATUS", "MODE", "FROM", "TO", "DONE", "RUNNING", "FAILED", "ETA")

Backfill = Annotated[str, typer.Argument(help="A backfill's id.")]
Note = Annotated[str | None, flag("--note", about="Reason; shown with the backfill.", metavar="TEXT")]


@app.command("list")
def list_backfills(
    job: Annotated[str | None, flag("--job", about="Only backfills of this job.", metavar="JOB")] = None,
    status: Annotated[
        str | None, flag("--status", about="RUNNING, PAUSED, DONE or CANCELLED.", metavar="STATUS")
    ] = None,
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List backfills, newest first."""
    only = {"job": job, "status": status and status.upper(), "limit": limit}
    answer = client_of(server, api_key).page(path_of("backfills"), only, everything)
    show_list(answer, as_json, COLUMNS, backfill_row)


@app.command()
def show(backfill: Backfill, as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None) -> None:
    """Show one backfill and its progress."""
    print_backfill(client_of(server, api_key).call("GET", path_of("backfills", backfill)), as_json)


@app.command()
def pause(
    backfill: Backfill,
    note: Note = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Pause a backfill: it creates no further instances; existing ones go on."""
    _change(client_of(server, api_key), backfill, "pause", note, as_json)


@app.command()
def resume(
    backfill: Backfill,
    note: Note = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Resume a paused backfill where it stopped."""
    _change(client_of(server, api_key), backfill, "resume", note, as_json)


@app.command()
def cancel(
    backfill: Backfill,
    note: Note = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Cancel a backfill and its waiting instances; running ones finish."""
    _change(client_of(server, api_key), backfill, "cancel", note, as_json)


def _change(client: RestClient, backfill: str, verb: str, note: str | None, as_json: bool) -> None:
    print_backfill(client.call("POST", path_of("backfills", backfill, verb), {"note": note}), as_json)


def backfill_row(backfill: Document) -> tuple[str, ...]:
    """Return a backfill on one line, as in `COLUMNS`."""
    progress = backfill["progress"]
    return (
        backfill["id"],
        backfill["job"],
        backfill["status"],
        backfill["mode"],
        instant(backfill["from"]),
        instant(backfill["to"]),
        f"{progress['percent']} %",
        str(progress["running"]),
        str(progress["failed"]),
        instant(progress["eta"]),
    )
