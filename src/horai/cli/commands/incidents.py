"""`horai incidents`: list, show, open, note, close."""

from typing import Annotated

import typer

from horai.cli.client import client_of, path_of
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Everything, Limit, Server, flag
from horai.cli.lazy import new_app
from horai.cli.show import show_fields, show_list
from horai.cli.views import Document, Pairs, instant

app = new_app("Incidents: list, show, open, note and close incidents of the cluster.")

COLUMNS = ("ID", "SEVERITY", "CAUSE", "TITLE", "OPENED", "CLOSED")
Incident = Annotated[str, typer.Argument(help="The id of an incident.")]
Note = Annotated[str | None, flag("--note", about="A note for the timeline.", metavar="TEXT")]


@app.command("list")
def list_incidents(
    only_open: Annotated[bool, flag("--open", about="Only incidents that are open.")] = False,
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List incidents, newest first."""
    query = {"limit": limit, "open": "true" if only_open else None}
    answer = client_of(server, api_key).page(path_of("incidents"), query, everything)
    show_list(answer, as_json, COLUMNS, _row)


@app.command()
def show(incident: Incident, as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None) -> None:
    """Show an incident with its timeline."""
    show_fields(client_of(server, api_key).call("GET", path_of("incidents", incident)), as_json, _pairs)


@app.command("open")
def open_incident(
    title: Annotated[str, typer.Argument(help="A title in a few words.")],
    severity: Annotated[
        str, flag("--severity", about="P1: the cluster is down; P2: it is impaired.", metavar="P1|P2")
    ] = "P2",
    note: Note = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Open an incident by hand."""
    body = {"severity": severity.upper(), "title": title, "note": note}
    show_fields(client_of(server, api_key).call("POST", path_of("incidents"), body), as_json, _pairs)


@app.command()
def note(
    incident: Incident,
    text: Annotated[str, typer.Argument(help="The note.")],
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Add a note to the timeline of an incident."""
    answer = client_of(server, api_key).call("POST", path_of("incidents", incident, "notes"), {"note": text})
    show_fields(answer, as_json, _pairs)


@app.command()
def close(
    incident: Incident,
    note: Note = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Close an incident. A mode that is in force goes on."""
    answer = client_of(server, api_key).call("POST", path_of("incidents", incident, "close"), {"note": note})
    show_fields(answer, as_json, _pairs)


def _row(incident: Document) -> tuple[str, ...]:
    closed = instant(incident["closedAt"]) if incident["closedAt"] else ""
    return (
        incident["id"],
        incident["severity"],
        incident["cause"],
        incident["title"],
        instant(incident["openedAt"]),
        closed,
    )


def _pairs(incident: Document) -> Pairs:
    names = [name for name in incident if name != "timeline" and incident[name] is not None]
    return [
        *((name, str(incident[name])) for name in names),
        *((instant(entry["at"]), _entry_text(entry)) for entry in incident["timeline"]),
    ]


def _entry_text(entry: Document) -> str:
    level = f", level {entry['data']['level']}" if entry["data"] and "level" in entry["data"] else ""
    note = f": {entry['note']}" if entry["note"] else ""
    return f"{entry['kind']} by {entry['actor']}{level}{note}"
