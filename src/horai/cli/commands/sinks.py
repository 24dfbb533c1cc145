"""`horai sinks`: list, show, set, pause, resume, replay, delete."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec
import typer

from horai.cli.client import client_of, path_of
from horai.cli.errors import refuse_flag
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Everything, Limit, Server, flag
from horai.cli.lazy import new_app
from horai.cli.show import print_json, say, show_fields, show_list
from horai.cli.time_flags import given
from horai.cli.views import Document, Pairs, instant
from horai.time.durations import parse_duration

app = new_app("Sinks: send the events of the tenant to webhooks, NATS, Kafka or the log.")

COLUMNS = ("NAME", "KIND", "STATUS", "BEHIND", "LAG", "DELIVERED", "LAST ERROR")
Name = Annotated[str, typer.Argument(help="The name of a sink.")]
Note = Annotated[str | None, flag("--note", about="Reason; kept in the audit log.", metavar="TEXT")]


@app.command("list")
def list_sinks(
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List sinks, and how far each is behind."""
    answer = client_of(server, api_key).page(path_of("sinks"), {"limit": limit}, everything)
    show_list(answer, as_json, COLUMNS, _row)


@app.command()
def show(name: Name, as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None) -> None:
    """Show a sink and the state of its delivery."""
    show_fields(client_of(server, api_key).call("GET", path_of("sinks", name)), as_json, _pairs)


@app.command("set")
def set_sink(
    name: Name,
    kind: Annotated[str, flag("--kind", about="webhook, nats, kafka or log.", metavar="KIND")] = "webhook",
    url: Annotated[str | None, flag("--url", about="Address of a webhook.", metavar="URL")] = None,
    header: Annotated[
        list[str] | None, flag("--header", about="Header of a webhook; repeatable.", metavar="NAME:VALUE")
    ] = None,
    broker: Annotated[str | None, flag("--broker", about="Broker that the operator named.", metavar="NAME")] = None,
    subject: Annotated[str | None, flag("--subject", about="Subject of NATS.", metavar="SUBJECT")] = None,
    topic: Annotated[str | None, flag("--topic", about="Topic of Kafka.", metavar="TOPIC")] = None,
    types: Annotated[
        list[str] | None, flag("--type", about="Type of events to send (all); repeatable.", metavar="TYPE")
    ] = None,
    batch: Annotated[int | None, flag("--batch", about="Events in one request of a webhook (1).", metavar="N")] = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Create a sink, which gets the events from now on, or change one, which goes on where it was."""
    body = given(
        kind=kind,
        url=url,
        headers=_headers(header),
        broker=broker,
        subject=subject,
        topic=topic,
        types=types,
        batch=batch,
    )
    show_fields(client_of(server, api_key).call("PUT", path_of("sinks", name), body), as_json, _pairs)


@app.command()
def pause(
    name: Name,
    note: Note = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Send nothing to a sink until it is resumed."""
    body = None if note is None else {"note": note}
    show_fields(client_of(server, api_key).call("POST", path_of("sinks", name, "pause"), body), as_json, _pairs)


@app.command()
def resume(
    name: Name,
    note: Note = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Send a paused or parked sink the events that it has not got."""
    body = None if note is None else {"note": note}
    show_fields(client_of(server, api_key).call("POST", path_of("sinks", name, "resume"), body), as_json, _pairs)


@app.command()
def replay(
    name: Name,
    since: Annotated[
        str, flag("--since", about="A time such as 2026-11-17T09:00:00Z, or a duration ago: 15m.", metavar="TIME")
    ],
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Send a sink all events since a time again, in order."""
    body = {"since": _instant_in(since)}
    answer = client_of(server, api_key).call("POST", path_of("sinks", name, "replay"), body)
    if as_json:
        print_json(answer)
    else:
        say(f"The sink {name} gets {msgspec.json.decode(answer)['replayed']:,} events again.")


@app.command()
def delete(name: Name, as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None) -> None:
    """Delete a sink. Events that it has not got are not sent."""
    answer = client_of(server, api_key).call("DELETE", path_of("sinks", name))
    if as_json:
        print_json(answer)
    else:
        say(f"The sink {name} is deleted.")


def _headers(given_headers: list[str] | None) -> dict[str, str] | None:
    if not given_headers:
        return None
    pairs = [text.partition(":") for text in given_headers]
    if any(not colon for _, colon, _ in pairs):
        refuse_flag("--header", "a header is NAME:VALUE")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _instant_in(text: str) -> str:
    try:
        return (datetime.now(UTC) - parse_duration(text)).isoformat()
    except ValueError:
        return text


def _row(sink: Document) -> tuple[str, ...]:
    return (
        sink["name"],
        sink["kind"],
        sink["status"],
        str(sink["behind"]),
        f"{sink['lagSeconds']:g}s",
        str(sink["delivered"]),
        sink["lastError"] or "",
    )


def _pairs(sink: Document) -> Pairs:
    times = {"deliveredAt", "failingSince", "nextTry", "createdAt", "updatedAt"}
    return [
        (name, instant(value) if name in times else str(value)) for name, value in sink.items() if value is not None
    ]
