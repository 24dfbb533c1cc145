"""`horai governor`: show, history, thresholds, mode, sli."""

import json
from typing import Annotated, Any

import typer

from horai.cli.client import client_of, path_of
from horai.cli.errors import refuse_flag
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Everything, Limit, Server, flag
from horai.cli.lazy import new_app
from horai.cli.show import show_fields, show_list
from horai.cli.views import Document, Pairs, instant

app = new_app("Governor: show its modes, set its thresholds, and force a mode.")

CHANGE_COLUMNS = ("AT", "MODE", "LEVEL", "CAUSE")
SETTINGS = "triggerDelayP95, triggerDelayFor, runSuccessRate10m, retryBacklog, dlqGrowthPerMin, clearFor, minStarts, minOutcomes, dryRun"
Note = Annotated[str | None, flag("--note", about="Why, for the audit log.", metavar="TEXT")]
Lasts = Annotated[str | None, flag("--for", about="Time after which it ends, such as 30m.", metavar="DURATION")]


@app.command()
def show(as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None) -> None:
    """Show the modes in force, their causes, holds by hand, and what the governor does."""
    show_fields(client_of(server, api_key).call("GET", path_of("scheduler", "mode")), as_json, governor_pairs)


@app.command()
def history(
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List entries into modes and exits from them, newest first."""
    answer = client_of(server, api_key).page(path_of("scheduler", "mode", "history"), {"limit": limit}, everything)
    show_list(answer, as_json, CHANGE_COLUMNS, _change_row)


@app.command()
def thresholds(
    settings: Annotated[
        list[str] | None, typer.Argument(help=f"Settings to change, as NAME=VALUE: {SETTINGS}.", metavar="NAME=VALUE")
    ] = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Show the thresholds and the figures that they are compared with, or change some of them."""
    client, path = client_of(server, api_key), path_of("scheduler", "thresholds")
    answer = client.call("GET", path)
    if settings:
        known: dict[str, Any] = json.loads(answer)
        del known["figures"]
        answer = client.call("PUT", path, known | dict(_setting(text, known) for text in settings))
    show_fields(answer, as_json, _threshold_pairs)


def _setting(text: str, known: dict[str, Any]) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator or name not in known:
        refuse_flag("NAME=VALUE", f"{text!r} is no setting: the settings are {SETTINGS}")
    try:
        return name, value if isinstance(known[name], str) else json.loads(value)
    except ValueError:
        refuse_flag("NAME=VALUE", f"{value!r} is no value of {name}: write a number, true or false")


@app.command()
def mode(
    name: Annotated[
        str, typer.Argument(help="SHED_LOW, RETRY_LIMITED, RETRY_SHORT_FIRST or CORE_ONLY.", metavar="MODE")
    ],
    state: Annotated[str, typer.Argument(help="on, off, or auto: return it to its rule.", metavar="on|off|auto")],
    lasts: Lasts = None,
    note: Note = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Force a mode on or off, or return it to its rule."""
    body = {"mode": name.upper(), "state": state.upper(), "expiresIn": lasts, "note": note}
    answer = client_of(server, api_key).call("POST", path_of("scheduler", "mode"), body)
    show_fields(answer, as_json, governor_pairs)


@app.command()
def sli(
    days: Annotated[int, flag("--days", about="Days to add up, 1 to 30.", metavar="N")] = 30,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Show the share of due instances that started within 60 seconds, and the error budget."""
    answer = client_of(server, api_key).call("GET", f"{path_of('scheduler', 'sli')}?days={days}")
    show_fields(answer, as_json, _level_pairs)


def _level_pairs(shown: Document) -> Pairs:
    budget = shown["errorBudget"]
    return [
        ("on time", f"{shown['share']:.4%} of {shown['started']} starts in {shown['days']} days"),
        ("objective", f"{shown['objective']:.1%}"),
        ("error budget", f"{budget['spent']} of {budget['allowed']:g} late starts, {budget['left']:.1%} left"),
        ("burn rate", f"{shown['burnRate']:g}"),
        *((day["day"], f"{day['share']:.4%} of {day['started']}, {day['late']} late") for day in shown["byDay"]),
    ]


def governor_pairs(shown: Document) -> Pairs:
    """Return the governor as names and values."""
    active = [rule for rule in shown["rules"] if rule["level"] or rule["wouldBeLevel"] or rule["override"]]
    return [
        ("modes", ", ".join(shown["modes"])),
        *([("dry run", "yes: rules only report")] if shown["dryRun"] else []),
        *((rule["mode"], _rule_text(rule)) for rule in active),
        *((f"{hold['what']} held", _hold_text(hold)) for hold in shown["holds"]),
        *((f"action {number}", action["text"]) for number, action in enumerate(shown["actions"], 1)),
    ]


def _hold_text(hold: Document) -> str:
    until = f" until {instant(hold['expiresAt'])}" if hold["expiresAt"] else ""
    note = f": {hold['note']}" if hold["note"] else ""
    return f"by the {hold['scope']} since {instant(hold['since'])}{until}{note}"


def _rule_text(rule: Document) -> str:
    level = (
        f"level {rule['level']}"
        if rule["level"] == rule["wouldBeLevel"]
        else (f"level {rule['level']}, by its rule {rule['wouldBeLevel']}")
    )
    since = f" since {instant(rule['since'])}" if rule["since"] else ""
    until = f", override until {instant(rule['overrideExpiresAt'])}" if rule["overrideExpiresAt"] else ""
    cause = f". {rule['cause']['text']}" if rule["cause"] else ""
    return f"{level}{since}{until}{cause}"


def _change_row(change: Document) -> tuple[str, ...]:
    level = "left" if not change["level"] else str(change["level"])
    cause = change["cause"]["text"] if change["cause"] else ""
    return instant(change["at"]), change["mode"], f"{level} (dry run)" if change["dryRun"] else level, cause


def _threshold_pairs(shown: Document) -> Pairs:
    settings = [(name, str(value)) for name, value in shown.items() if name != "figures"]
    return settings + [(f"now: {figure['name']}", _figure_text(figure)) for figure in shown["figures"]]


def _figure_text(figure: Document) -> str:
    samples = "" if figure["samples"] is None else f" ({figure['samples']} samples)"
    word = "breaches" if figure["breached"] else "is within"
    return f"{figure['value']:g}{samples} {word} {figure['limit']:g}"
