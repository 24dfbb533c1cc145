"""`horai alerts`: firing, acknowledge, channels, rules, deliveries, redeliver, silences, test, and commands that change them."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from horai.cli.client import RestClient, client_of, path_of
from horai.cli.errors import BadUsage, CommandFailed, NotThere, refuse_flag
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Everything, Limit, Server, flag
from horai.cli.lazy import new_app
from horai.cli.show import print_json, say, show_fields, show_list
from horai.cli.views import Document, Pairs, instant

app = new_app("Alerts: define rules and channels, acknowledge and silence alerts, and list what was sent.")

FIRING_COLUMNS = ("ID", "RULE", "STATUS", "OBJECT", "JOB", "SINCE", "TOLD", "ACKNOWLEDGED")
CHANNEL_COLUMNS = ("NAME", "KIND", "HOST", "LANGUAGE")
RULE_COLUMNS = ("NAME", "KIND", "CHANNELS", "ENABLED", "FIELDS")
DELIVERY_COLUMNS = ("ID", "CHANNEL", "RULE", "KIND", "ALERTS", "STATUS", "ATTEMPT", "AT", "ERROR")
SILENCE_COLUMNS = ("ID", "RULE", "JOB", "TAG", "STARTS", "ENDS", "NOTE")
OF_RULES = (
    "job, tag, workflow, queue, reconciler, heartbeat, modes, by, timezone, weekdays, calendar, after, burnRate, sink"
)
_LISTS = frozenset({"to", "modes", "weekdays"})
_COMMON = frozenset(
    {"name", "kind", "channels", "enabled", "version", "createdAt", "updatedAt", "groupWait", "repeatEvery"}
)

Channel = Annotated[str, typer.Argument(help="The name of a channel.")]
Rule = Annotated[str, typer.Argument(help="The name of a rule.")]
FileOf = Path | None


@app.command()
def firing(
    status: Annotated[str, flag("--status", about="firing, resolved or all.", metavar="STATUS")] = "firing",
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List the alerts that fire, newest first."""
    query = {"status": status.upper(), "limit": limit}
    show_list(
        client_of(server, api_key).page(path_of("alerts"), query, everything), as_json, FIRING_COLUMNS, _alert_row
    )


@app.command()
def acknowledge(
    alert: Annotated[str, typer.Argument(help="The id of an alert that fires.", metavar="ALERT")],
    note: Annotated[str | None, flag("--note", about="For other operators.", metavar="TEXT")] = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Acknowledge an alert: no repeats of it are sent until it is resolved or gets worse."""
    body = None if note is None else {"note": note}
    show_fields(client_of(server, api_key).call("POST", path_of("alerts", alert, "acknowledge"), body), as_json, _pairs)


@app.command()
def channels(
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List the channels by name, without their URLs and secrets."""
    answer = client_of(server, api_key).page(path_of("alerts", "channels"), {"limit": limit}, everything)
    show_list(answer, as_json, CHANNEL_COLUMNS, _channel_row)


@app.command("set-channel")
def set_channel(
    name: Channel,
    kind: Annotated[str, typer.Argument(help="webhook, slack, feishu, dingtalk, wecom or email.", metavar="KIND")],
    settings: Annotated[
        list[str] | None,
        typer.Argument(help="language, and for email host, port, security, username, from, to.", metavar="NAME=VALUE"),
    ] = None,
    url_file: Annotated[
        FileOf, flag("--url-file", about="File with the URL of the hook; - is stdin.", metavar="FILE")
    ] = None,
    secret_file: Annotated[
        FileOf, flag("--secret-file", about="File with the secret that signs.", metavar="FILE")
    ] = None,
    password_file: Annotated[
        FileOf, flag("--password-file", about="File with the password of the mail server.", metavar="FILE")
    ] = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Create a channel, or replace all its fields. URL and secrets are read from files: they are secrets themselves."""
    files = {"url": url_file, "secret": secret_file, "password": password_file}
    hidden = {field: _text_in(file) for field, file in files.items() if file is not None}
    body = {"kind": kind, **_settings(settings), **hidden}
    show_fields(_put(client_of(server, api_key), "channels", name, body), as_json, _pairs)


@app.command("delete-channel")
def delete_channel(
    name: Channel, as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None
) -> None:
    """Delete a channel that no rule uses."""
    answer = client_of(server, api_key).call("DELETE", path_of("alerts", "channels", name))
    _done(answer, as_json, f"The channel {name} is deleted.")


@app.command("test")
def call_channel(
    name: Channel, as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None
) -> None:
    """Send a test message to a channel, and show the real result. The exit code is 1 if it was not delivered."""
    answer = client_of(server, api_key).call("POST", path_of("alerts", "channels", name, "test"))
    show_fields(answer, as_json, _pairs)
    result: Document = json.loads(answer)
    if result["status"] != "DELIVERED":
        raise CommandFailed(f"The message was not delivered: {result['error']}.")


@app.command()
def rules(
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List the rules by name."""
    answer = client_of(server, api_key).page(path_of("alerts", "rules"), {"limit": limit}, everything)
    show_list(answer, as_json, RULE_COLUMNS, _rule_row)


@app.command("set-rule")
def set_rule(
    name: Rule,
    kind: Annotated[
        str,
        typer.Argument(
            help="INSTANCE_DEAD, RUN_BLOCKED, NOT_SUCCESS_BY, JOB_LATE, QUEUE_WAIT, HEARTBEAT_MISSING, RECONCILE_DRIFT, MODE_ENTERED, BUDGET_BURN, RUN_STUCK, QUEUE_CLOGGED, SINK_PARKED, ARCHIVE_FAILED or PARTITION_MISSING.",
            metavar="KIND",
        ),
    ],
    channel: Annotated[list[str], flag("--channel", about="A channel to tell; may be repeated.", metavar="NAME")],
    settings: Annotated[
        list[str] | None, typer.Argument(help=f"Fields of the kind: {OF_RULES}.", metavar="NAME=VALUE")
    ] = None,
    group_wait: Annotated[
        str, flag("--group-wait", about="Alerts that fire within this time are one message.", metavar="DURATION")
    ] = "30s",
    repeat_every: Annotated[
        str, flag("--repeat-every", about="Time after which alerts that still fire are told again.", metavar="DURATION")
    ] = "4h",
    enabled: Annotated[bool, flag("--enabled/--disabled", about="Whether the rule is evaluated.")] = True,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Create a rule, or replace all its fields."""
    waits = {"groupWait": group_wait, "repeatEvery": repeat_every, "enabled": enabled}
    body = {"kind": kind.upper(), "channels": channel, **waits, **_settings(settings)}
    show_fields(_put(client_of(server, api_key), "rules", name, body), as_json, _pairs)


@app.command("delete-rule")
def delete_rule(name: Rule, as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None) -> None:
    """Delete a rule with its alerts. The delivery log stays."""
    answer = client_of(server, api_key).call("DELETE", path_of("alerts", "rules", name))
    _done(answer, as_json, f"The rule {name} is deleted.")


@app.command()
def deliveries(
    status: Annotated[str | None, flag("--status", about="pending, delivered or failed.", metavar="STATUS")] = None,
    channel: Annotated[str | None, flag("--channel", about="Only those to this channel.", metavar="NAME")] = None,
    rule: Annotated[str | None, flag("--rule", about="Only those of this rule.", metavar="NAME")] = None,
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List the messages to channels with their results, newest first."""
    query = {"status": status and status.upper(), "channel": channel, "rule": rule, "limit": limit}
    answer = client_of(server, api_key).page(path_of("alerts", "deliveries"), query, everything)
    show_list(answer, as_json, DELIVERY_COLUMNS, _delivery_row)


@app.command()
def redeliver(
    delivery: Annotated[str, typer.Argument(help="The id of a delivery that has ended.", metavar="DELIVERY")],
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Send the message of a delivery again, as a new delivery to the channel of the same name."""
    answer = client_of(server, api_key).call("POST", path_of("alerts", "deliveries", delivery, "redeliver"))
    show_fields(answer, as_json, _pairs)


@app.command()
def silences(
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List the silences that have not ended, newest first."""
    answer = client_of(server, api_key).page(path_of("alerts", "silences"), {"limit": limit}, everything)
    show_list(answer, as_json, SILENCE_COLUMNS, _silence_row)


@app.command()
def silence(
    lasts: Annotated[str, flag("--for", about="How long it lasts, such as 2h.", metavar="DURATION")],
    rule: Annotated[str | None, flag("--rule", about="Only alerts of this rule.", metavar="NAME")] = None,
    job: Annotated[str | None, flag("--job", about="Only alerts of this job.", metavar="NAME")] = None,
    tag: Annotated[str | None, flag("--tag", about="Only alerts of jobs with this tag.", metavar="TAG")] = None,
    starts: Annotated[
        str | None, flag("--from", about="When it starts, for a maintenance window; now without it.", metavar="INSTANT")
    ] = None,
    note: Annotated[str | None, flag("--note", about="Why, for other operators.", metavar="TEXT")] = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Hold back matching alerts for a time. Those that still fire at its end are sent."""
    body = {"rule": rule, "job": job, "tag": tag, "startsAt": starts, "lasts": lasts, "note": note}
    show_fields(client_of(server, api_key).call("POST", path_of("alerts", "silences"), body), as_json, _pairs)


@app.command()
def unsilence(
    silence_id: Annotated[str, typer.Argument(help="The id of a silence.", metavar="SILENCE")],
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """End a silence now. Alerts that still fire are sent."""
    answer = client_of(server, api_key).call("DELETE", path_of("alerts", "silences", silence_id))
    _done(answer, as_json, f"The silence {silence_id} has ended.")


def _put(client: RestClient, what: str, name: str, body: dict[str, Any]) -> bytes:
    """Create an object, or replace it if it exists."""
    try:
        client.call("GET", path_of("alerts", what, name))
    except NotThere:
        return client.call("POST", path_of("alerts", what), {"name": name, **body})
    return client.call("PUT", path_of("alerts", what, name), body)


def _done(answer: bytes, as_json: bool, text: str) -> None:
    if as_json:
        print_json(answer)
    else:
        say(text)


def _settings(texts: list[str] | None) -> dict[str, Any]:
    found = dict[str, Any]()
    for text in texts or ():
        name, separator, value = text.partition("=")
        if not separator:
            refuse_flag("NAME=VALUE", f"{text!r} has no value: write {name}=VALUE")
        found[name] = value.split(",") if name in _LISTS else _number(name, value)
    return found


def _number(name: str, value: str) -> Any:
    if name not in {"port", "burnRate"}:
        return value
    try:
        return int(value) if name == "port" else float(value)
    except ValueError:
        refuse_flag("NAME=VALUE", f"{name} must be a number, not {value!r}")


def _text_in(file: Path) -> str:
    try:
        text = (sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise BadUsage(f"{file} cannot be read: {reason}.") from error
    return text.strip()


def _alert_row(alert: Document) -> tuple[str, ...]:
    named = (alert["id"], alert["rule"], alert["status"], alert["object"], alert["job"] or "")
    told = "silenced" if alert["silencedBy"] else instant(alert["notifiedAt"])
    return (*named, instant(alert["since"]), told, _acknowledged(alert))


def _acknowledged(alert: Document) -> str:
    if alert["acknowledgedAt"] is None:
        return ""
    return f"{instant(alert['acknowledgedAt'])} {alert['acknowledgedBy']}".strip()


def _channel_row(channel: Document) -> tuple[str, ...]:
    return (channel["name"], channel["kind"], channel["host"] or "", channel["language"])


def _rule_row(rule: Document) -> tuple[str, ...]:
    fields = ", ".join(
        f"{name}={_short(rule[name])}" for name in rule if name not in _COMMON and rule[name] is not None
    )
    return (rule["name"], rule["kind"], ", ".join(rule["channels"]), "yes" if rule["enabled"] else "no", fields)


def _short(value: Any) -> str:
    return ",".join(value) if isinstance(value, list) else str(value)  # pyright: ignore[reportUnknownArgumentType]


def _delivery_row(delivery: Document) -> tuple[str, ...]:
    named = (delivery["id"], delivery["channel"], delivery["rule"] or "", delivery["kind"], str(delivery["alerts"]))
    tried = instant(delivery["triedAt"] or delivery["createdAt"])
    return (*named, delivery["status"], str(delivery["attempt"]), tried, delivery["error"] or "")


def _silence_row(silence: Document) -> tuple[str, ...]:
    named = (silence["id"], *(silence[name] or "" for name in ("rule", "job", "tag")))
    return (*named, instant(silence["startsAt"]), instant(silence["endsAt"]), silence["note"] or "")


def _pairs(shown: Document) -> Pairs:
    return [(name, _short(value)) for name, value in shown.items() if value is not None]
