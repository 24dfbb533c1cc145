"""`horai queues`: list, show, set, pause, resume."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from horai.cli.client import RestClient, client_of, path_of
from horai.cli.errors import NotThere, refuse_flag
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Everything, Limit, Server, flag
from horai.cli.lazy import new_app
from horai.cli.show import show_fields, show_list
from horai.cli.versions import add_versions
from horai.cli.views import Document, Pairs, holders_text, instant

app = new_app("Queues: set the priority and the limits of a queue, pause and resume it.")

COLUMNS = ("NAME", "STATUS", "PRIORITY", "LIMIT", "RUNNING", "RATE")
SETTINGS = ("priority", "maxConcurrency", "rate", "paused", "note", "title", "description", "owner")
NONE = "none"
"""The value that removes a limit or a rate."""

Name = Annotated[str, typer.Argument(help="A queue's name.")]
Note = Annotated[str | None, flag("--note", about="Reason; shown with the queue.", metavar="TEXT")]


@app.command("list")
def list_queues(
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List queues: those that were configured, and those that jobs use or have used."""
    answer = client_of(server, api_key).page(path_of("queues"), {"limit": limit}, everything)
    show_list(answer, as_json, COLUMNS, queue_row)


@app.command()
def show(name: Name, as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None) -> None:
    """Show one queue."""
    _print_queue(client_of(server, api_key).call("GET", path_of("queues", name)), as_json)


@app.command("set")
def set_queue(
    name: Name,
    priority: Annotated[
        str | None,
        flag("--priority", about="Priority of jobs that have none: core, high, normal or low.", metavar="PRIORITY"),
    ] = None,
    max_concurrency: Annotated[
        str | None,
        flag("--max-concurrency", about="Most instances that run at once; none: no limit.", metavar="N|none"),
    ] = None,
    rate: Annotated[
        str | None,
        flag("--rate", about="Rate of starts, such as 100/s, 30/m, 1000/h; none: no limit.", metavar="RATE|none"),
    ] = None,
    paused: Annotated[bool | None, flag("--paused/--no-paused", about="Pause or resume the queue.")] = None,
    title: Annotated[
        str | None, flag("--title", about="Title in any language; none: no title.", metavar="TEXT")
    ] = None,
    description: Annotated[str | None, flag("--description", about="Description for people.", metavar="TEXT")] = None,
    owner: Annotated[str | None, flag("--owner", about="Person or team to ask.", metavar="TEXT")] = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Set the limits of a queue; settings without a flag stay as they are. Creates the queue if it does not exist."""
    given: dict[str, Any] = {
        "priority": priority,
        "maxConcurrency": _limit(max_concurrency),
        "rate": rate,
        "paused": paused,
        "title": title,
        "description": description,
        "owner": owner,
    }
    changes = {field: None if value == NONE else value for field, value in given.items() if value is not None}
    _print_queue(_change(client_of(server, api_key), name, changes, makes=True), as_json)


@app.command()
def pause(
    name: Name,
    note: Note = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Pause a queue: no instance of it starts; running ones finish."""
    _print_queue(_change(client_of(server, api_key), name, {"paused": True, "note": note}), as_json)


@app.command()
def resume(name: Name, as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None) -> None:
    """Resume a paused queue."""
    _print_queue(_change(client_of(server, api_key), name, {"paused": False, "note": None}), as_json)


def _limit(text: str | None) -> int | str | None:
    if text is None or text == NONE:
        return text
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        refuse_flag("--max-concurrency", f"{text!r} is neither a whole number nor none")
    return int(text)


def _change(client: RestClient, name: str, changes: Mapping[str, Any], *, makes: bool = False) -> bytes:
    """Read the queue and write it with `changes`. The server refuses this if another client changed it in between."""
    path = path_of("queues", name)
    try:
        queue: Document = json.loads(client.call("GET", path))
    except NotThere:
        if not makes:
            raise
        queue = {"version": 0}
    kept = {field: queue.get(field) for field in SETTINGS}
    return client.call("PUT", path, {**kept, **changes}, {"If-Match": f'"{queue["version"]}"'})


def _print_queue(answer: bytes, as_json: bool) -> None:
    show_fields(answer, as_json, queue_fields)


def queue_row(queue: Document) -> tuple[str, ...]:
    """Return a queue on one line, as in `COLUMNS`."""
    return (queue["name"], _status(queue), queue["priority"], _count(queue["maxConcurrency"], NONE), _count(queue["running"]),
            queue["rate"] or NONE)  # fmt: skip


def queue_fields(queue: Document) -> Pairs:
    """Return all fields of a queue."""
    return [
        ("name", queue["name"]),
        *((field, queue[field]) for field in ("title", "description", "owner", "note") if queue.get(field)),
        ("status", _status(queue)),
        ("priority", queue["priority"]),
        ("limit", _count(queue["maxConcurrency"], NONE)),
        ("running", _count(queue["running"])),
        ("rate", queue["rate"] or NONE),
        *([("declared by", queue["declaredBy"])] if queue.get("declaredBy") else []),
        *_clogged(queue["clogged"]),
        ("version", str(queue["version"])),
        ("updated", instant(queue["updatedAt"])),
    ]


def _clogged(clog: Document | None) -> Pairs:
    if clog is None:
        return []
    return [
        ("clogged since", instant(clog["since"])),
        ("waiting", str(clog["waiting"])),
        ("held by", holders_text(clog)),
    ]


def _status(queue: Document) -> str:
    return "PAUSED" if queue["paused"] else "ACTIVE"


def _count(number: int | None, absent: str = "") -> str:
    return absent if number is None else str(number)


add_versions(app, "queues")
