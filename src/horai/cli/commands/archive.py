"""`horai archive`: list, query, restore."""

import json
from typing import Annotated

import typer

from horai.cli import views
from horai.cli.client import client_of, path_of
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Everything, Limit, Server, flag, words
from horai.cli.lazy import new_app
from horai.cli.show import show_fields, show_list
from horai.cli.views import Document, Pairs, instant

app = new_app("Archive: list, query and restore days of old history.")

COLUMNS = ("DAY", "TABLE", "ROWS", "BYTES", "ARCHIVED", "PATH")
Text = str | None
Day = Annotated[str, typer.Argument(help="A day in UTC, such as 2026-11-03.", metavar="DAY")]


@app.command("list")
def list_files(
    table: Annotated[
        Text, flag("--table", about="Only of instance_history, attempt, event or note.", metavar="TABLE")
    ] = None,
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List the Parquet files of the tenant, the newest day first."""
    answer = client_of(server, api_key).page(path_of("archive"), {"table": table, "limit": limit}, everything)
    show_list(answer, as_json, COLUMNS, _row)


@app.command()
def query(
    since: Annotated[str, flag("--from", about="First fire time, with an offset.", metavar="TIME")],
    until: Annotated[str, flag("--to", about="Fire times before this one, at most 31 days later.", metavar="TIME")],
    job: Annotated[Text, flag("--job", about="Name or id of the job.", metavar="JOB")] = None,
    state: Annotated[list[str] | None, flag("--state", about="Repeatable; SUCCESS, DEAD or CANCELLED.")] = None,
    key: Annotated[Text, flag("--key", about="Business key of the instance.", metavar="KEY")] = None,
    queue: Annotated[Text, flag("--queue", about="Only of this queue.", metavar="QUEUE")] = None,
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List archived instances, newest fire time first."""
    only = {"archived": "true", "from": since, "to": until, "job": job, "key": key, "queue": queue}
    only |= {"state": ",".join(words(state)) or None, "limit": None if limit is None else str(limit)}
    answer = client_of(server, api_key).page(path_of("instances"), only, everything)
    show_list(answer, as_json, views.INSTANCE_COLUMNS, views.instance_row)


@app.command()
def restore(
    day: Day,
    remove: Annotated[bool, flag("--remove", about="Remove the restored instances of the day again.")] = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Copy the archived instances of a day into the table horai.restored_instance.

    It can be repeated: instances that are there are left as they are.
    """
    client, path = client_of(server, api_key), path_of("archive", "restored", day)
    while True:
        answer = client.call("DELETE" if remove else "POST", path)
        told = json.loads(answer)
        if (told["restored"] == 0) if remove else told["complete"]:
            break
    show_fields(answer, as_json, _pairs)


def _row(file: Document) -> tuple[str, ...]:
    sizes = (str(file["rows"]), str(file["bytes"]))
    return (file["day"], file["table"], *sizes, instant(file["archivedAt"]), file["path"])


def _pairs(told: Document) -> Pairs:
    return [("day", told["day"]), ("instances in the file", str(told["rows"])), ("restored", str(told["restored"]))]
