"""`horai calendars`: list, show, put, import, preview, delete."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from horai.cli.client import RestClient, client_of, path_of
from horai.cli.documents import read_document
from horai.cli.errors import BadUsage, NotThere
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Everything, Limit, Server, flag, words
from horai.cli.lazy import new_app
from horai.cli.show import print_json, print_list, say, show_answer, show_fields, show_list
from horai.cli.time_flags import given
from horai.cli.views import Document, Pairs, instant

app = new_app("Calendars: put, import, preview and delete working days and holidays that jobs share.")

COLUMNS = ("NAME", "HOLIDAYS", "WORKDAYS", "WEEKEND", "HOURS", "UPDATED")
DAY_COLUMNS = ("DATE", "DAY", "KIND", "HOURS", "NAME")
SETTINGS = ("holidays", "workdays", "weekend", "hours")
MOST_SHOWN = 20
NONE = "none"
"""The value that removes the weekend or the business hours."""

Name = Annotated[str, typer.Argument(help="The name of a calendar.")]
Text = str | None


@app.command("list")
def list_calendars(
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List calendars by name."""
    answer = client_of(server, api_key).page(path_of("calendars"), {"limit": limit}, everything)
    show_list(answer, as_json, COLUMNS, _row)


@app.command()
def show(name: Name, as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None) -> None:
    """Show one calendar."""
    show_fields(client_of(server, api_key).call("GET", path_of("calendars", name)), as_json, _fields)


@app.command()
def put(
    name: Name,
    file: Annotated[Path | None, flag("--file", "-f", about="JSON definition; - is stdin.", metavar="FILE")] = None,
    holiday: Annotated[
        list[str] | None,
        flag("--holiday", about="Holidays: 2026-12-25, 12-25, 2026-10-01/2026-10-07; repeatable.", metavar="DATES"),
    ] = None,
    workday: Annotated[
        list[str] | None, flag("--workday", about="Make-up working days; repeatable.", metavar="DATES")
    ] = None,
    weekend: Annotated[
        list[str] | None, flag("--weekend", about="Weekdays that are off, such as sat,sun; or none.", metavar="DAYS")
    ] = None,
    hours: Annotated[
        Text, flag("--hours", about="Business hours such as 09:00-12:00,13:00-18:00; or none.", metavar="HOURS")
    ] = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Create a calendar or change it. A flag replaces its field; fields without a flag stay, a file replaces all."""
    off = words(weekend)
    changes: dict[str, Any] = given(holidays=words(holiday) or None, workdays=words(workday) or None)
    if off:
        changes["weekend"] = [] if off == [NONE] else off
    if hours is not None:
        changes["hours"] = None if hours == NONE else hours
    client = client_of(server, api_key)
    if file is not None:
        written = read_document(file)
        answer = client.call("PUT", path_of("calendars", name), {**written, **changes})
    else:
        answer = _change(client, name, changes)
    show_fields(answer, as_json, _fields)


@app.command("import")
def import_file(
    name: Name,
    file: Annotated[Path, typer.Argument(help="An iCalendar file (.ics).")],
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Add the all-day events of an iCalendar file to the holidays of a calendar, which is created if it is new."""
    try:
        text = file.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise BadUsage(f"{file} cannot be read: {reason}.") from error
    show_fields(_change(client_of(server, api_key), name, {"ics": text}), as_json, _fields)


@app.command()
def preview(
    name: Name,
    from_: Annotated[Text, flag("--from", about="First day, such as 2026-10-01 (today).", metavar="DATE")] = None,
    days: Annotated[int | None, flag("--days", about="Number of days (31).", metavar="N")] = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Show the days of a calendar one by one: whether each is a working day, and why."""
    answer = client_of(server, api_key).page(path_of("calendars", name, "days"), {"days": days, "from": from_}, False)
    show_answer(
        answer, as_json, lambda found: print_list({"items": found["days"], "nextCursor": None}, DAY_COLUMNS, _day_row)
    )


@app.command()
def delete(name: Name, as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None) -> None:
    """Delete a calendar that no job follows."""
    answer = client_of(server, api_key).call("DELETE", path_of("calendars", name))
    if as_json:
        print_json(answer)
    else:
        say(f"The calendar {name} is deleted.")


def _change(client: RestClient, name: str, changes: Document) -> bytes:
    """Read the calendar and write it with `changes`. The server refuses this if another client changed it meanwhile."""
    path = path_of("calendars", name)
    try:
        calendar: Document = json.loads(client.call("GET", path))
    except NotThere:
        calendar = {"version": 0}
    kept = {field: calendar[field] for field in SETTINGS if calendar.get(field) is not None}
    return client.call("PUT", path, {**kept, **changes}, {"If-Match": f'"{calendar["version"]}"'})


def _row(calendar: Document) -> tuple[str, ...]:
    hours: Document = calendar["hours"] or {}
    return (
        calendar["name"],
        str(len(calendar["holidays"])),
        str(len(calendar["workdays"])),
        ",".join(calendar["weekend"]) or NONE,
        hours.get("default", ""),
        instant(calendar["updatedAt"]),
    )


def _fields(calendar: Document) -> Pairs:
    hours: Document = calendar["hours"] or {}
    return [
        ("name", calendar["name"]),
        ("holidays", _few([" ".join(filter(None, (day["date"], day["name"]))) for day in calendar["holidays"]])),
        ("workdays", _few(calendar["workdays"])),
        ("weekend", ",".join(calendar["weekend"]) or NONE),
        ("hours", "; ".join(text if name == "default" else f"{name} {text}" for name, text in hours.items())),
        ("jobs", "" if calendar.get("jobs") is None else str(calendar["jobs"])),
        ("version", str(calendar["version"])),
        ("updated", instant(calendar["updatedAt"])),
    ]


def _few(texts: list[str]) -> str:
    more = f", and {len(texts) - MOST_SHOWN} more" if len(texts) > MOST_SHOWN else ""
    return ", ".join(texts[:MOST_SHOWN]) + more


def _day_row(day: Document) -> tuple[str, ...]:
    return (day["date"], day["weekday"], day["kind"], day["hours"] or "", day["name"] or "")
