"""`horai heartbeats`: list, set, beat, delete."""

from typing import Annotated

import typer

from horai.cli.client import client_of, path_of
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Everything, Limit, Server, flag
from horai.cli.lazy import new_app
from horai.cli.show import print_json, say, show_fields, show_list
from horai.cli.views import Document, Pairs, instant

app = new_app("Heartbeats: external jobs report, and an alert rule tells when one does not.")

COLUMNS = ("NAME", "EVERY", "GRACE", "LAST", "DUE", "MISSING")
Name = Annotated[str, typer.Argument(help="The name of a heartbeat.")]


@app.command("list")
def list_heartbeats(
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List heartbeats by name."""
    answer = client_of(server, api_key).page(path_of("heartbeats"), {"limit": limit}, everything)
    show_list(answer, as_json, COLUMNS, _row)


@app.command("set")
def set_heartbeat(
    name: Name,
    every: Annotated[str, flag("--every", about="Time between two reports, such as 1d.", metavar="DURATION")],
    grace: Annotated[str, flag("--grace", about="How late a report may be.", metavar="DURATION")] = "1m",
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Create a heartbeat or change its times. The first report is expected from now on."""
    body = {"every": every, "grace": grace}
    show_fields(client_of(server, api_key).call("PUT", path_of("heartbeats", name), body), as_json, _pairs)


@app.command()
def beat(name: Name, as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None) -> None:
    """Report that the external job is alive."""
    show_fields(client_of(server, api_key).call("POST", path_of("heartbeats", name)), as_json, _pairs)


@app.command()
def delete(name: Name, as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None) -> None:
    """Delete a heartbeat."""
    answer = client_of(server, api_key).call("DELETE", path_of("heartbeats", name))
    if as_json:
        print_json(answer)
    else:
        say(f"The heartbeat {name} is deleted.")


def _row(beat: Document) -> tuple[str, ...]:
    times = (beat["every"], beat["grace"], instant(beat["lastAt"]), instant(beat["dueAt"]))
    return (beat["name"], *times, "yes" if beat["missing"] else "no")


def _pairs(beat: Document) -> Pairs:
    return [(name, str(value)) for name, value in beat.items() if value is not None]
