"""`horai dlq`: list, show, faults, replay, discard."""

import json
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from horai.cli.client import RestClient, client_of, path_of
from horai.cli.counts import print_count
from horai.cli.errors import BadUsage
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Count, Everything, Limit, Server, Yes, flag
from horai.cli.lazy import new_app
from horai.cli.show import console, fields, print_json, print_list, say, show_fields, show_list
from horai.cli.views import Document, Pairs, instance_fields, instant

app = new_app("Dead letters: replay or discard instances that failed for good.")

COLUMNS = ("ID", "JOB", "KEY", "STATUS", "ERROR", "TAGS", "FINGERPRINT", "DIED")
FAULT_COLUMNS = ("FINGERPRINT", "JOB", "ERROR", "LETTERS", "FIRST", "LAST", "MESSAGE")
MESSAGE_SHOWN = 80

Text = str | None
Letter = Annotated[str, typer.Argument(help="A dead letter's id.")]
Job = Annotated[Text, flag("--job", about="Only of this job, by name or id.", metavar="JOB")]
Tag = Annotated[Text, flag("--tag", about="Only with this tag, such as transient_error.", metavar="TAG")]
ErrorCode = Annotated[Text, flag("--error-code", about="Only with this code, such as HTTP_503.", metavar="CODE")]
Fingerprint = Annotated[Text, flag("--fingerprint", about="Only of this fault.", metavar="FAULT")]
Status = Annotated[Text, flag("--status", about="NEW, REPLAYED, SUPERSEDED or DISCARDED.", metavar="STATUS")]
Since = Annotated[Text, flag("--from", about="Died at this time or later; with an offset.", metavar="TIME")]
Until = Annotated[Text, flag("--to", about="Died before this time.", metavar="TIME")]


@app.command("list")
def list_letters(
    job: Job = None,
    tag: Tag = None,
    error_code: ErrorCode = None,
    fingerprint: Fingerprint = None,
    status: Status = None,
    since: Since = None,
    until: Until = None,
    count: Count = False,
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List dead letters, newest first."""
    only = _only(job, tag, error_code, fingerprint, since, until) | {"status": status, "limit": limit}
    client = client_of(server, api_key)
    if count:
        print_count(client, path_of("dlq", "count"), only, as_json)
        return
    answer = client.page(path_of("dlq"), only, everything)
    show_list(answer, as_json, COLUMNS, letter_row)


@app.command()
def faults(
    job: Job = None,
    tag: Tag = None,
    error_code: ErrorCode = None,
    fingerprint: Fingerprint = None,
    status: Status = None,
    since: Since = None,
    until: Until = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Count dead letters by fault, the most frequent first."""
    only = _only(job, tag, error_code, fingerprint, since, until) | {"status": status}
    answer = client_of(server, api_key).page(path_of("dlq", "faults"), only, everything=False)
    if as_json:
        print_json(answer)
    else:
        found = json.loads(answer)
        print_list({**found, "nextCursor": None}, FAULT_COLUMNS, fault_row)
        if found["more"]:
            say(f"Only the newest {found['letters']} letters were counted.")


@app.command()
def show(letter: Letter, as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None) -> None:
    """Show one dead letter, with the instance that died."""
    answer = client_of(server, api_key).call("GET", path_of("dlq", letter))
    if as_json:
        print_json(answer)
        return
    found, out = json.loads(answer), console()
    out.print(fields(letter_fields(found)))
    if found["instance"] is not None:
        out.print()
        out.print(fields(instance_fields(found["instance"])))


@app.command()
def replay(
    letter: Annotated[Text, typer.Argument(help="A dead letter's id; or select letters by flags.")] = None,
    job: Job = None,
    tag: Tag = None,
    error_code: ErrorCode = None,
    fingerprint: Fingerprint = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int | None, flag("--limit", about="Maximum number of letters (1000).", limits=(1, 10_000))] = None,
    rate: Annotated[Text, flag("--rate", about="Rate of starts, such as 100/s, 30/m.", metavar="RATE")] = None,
    dry_run: Annotated[bool, flag("--dry-run", about="Only count them.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Replay dead instances as new instances: one, or all that match, oldest first."""
    client = client_of(server, api_key)
    only = {name: value for name, value in _only(job, tag, error_code, fingerprint, since, until).items() if value}
    if letter is not None:
        _replay_one(client, letter, {**only, "limit": limit, "rate": rate, "dryRun": dry_run or None}, as_json)
        return
    bounds = {"limit": limit, "rate": rate}
    wish: dict[str, Any] = {**only, **{name: value for name, value in bounds.items() if value is not None}}
    if not dry_run and not yes:
        _ask(client, wish, is_narrow=bool(only))
    answer = client.call("POST", path_of("dlq", "replay"), {**wish, "dryRun": dry_run})
    show_fields(answer, as_json, summary_fields)


@app.command()
def discard(
    letter: Letter,
    reason: Annotated[Text, flag("--reason", about="Reason; shown with the letter.", metavar="TEXT")] = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Settle a dead letter without running it again."""
    answer = client_of(server, api_key).call("POST", path_of("dlq", letter, "discard"), {"reason": reason})
    if as_json:
        print_json(answer)
    else:
        say(f"Discarded dead letter {json.loads(answer)['id']}.")


def _only(*values: Text) -> dict[str, Any]:
    return dict(zip(("job", "tag", "errorCode", "fingerprint", "from", "to"), values, strict=True))


def _replay_one(client: RestClient, letter: str, beside: Mapping[str, Any], as_json: bool) -> None:
    if any(value is not None for value in beside.values()):
        raise BadUsage(
            "A letter's id cannot be combined with flags that select letters.", "Give the id alone, or flags alone."
        )
    answer = client.call("POST", path_of("dlq", letter, "replay"))
    if as_json:
        print_json(answer)
        return
    told = json.loads(answer)
    if told["instance"] is None:
        say(f"Dead letter {letter} was not replayed: it is {told['letter']['replayStatus']}.")
    else:
        before = "" if told["replayed"] else " before"
        say(f"Dead letter {letter} was replayed{before} as instance {told['instance']['id']}.")


def _ask(client: RestClient, wish: Mapping[str, Any], *, is_narrow: bool) -> None:
    """Ask for confirmation, so that no user replays everything by accident. Without a terminal, a filter is enough."""
    if not sys.stdin.isatty():
        if not is_narrow:
            raise BadUsage(
                "Replaying every dead letter needs confirmation, and stdin is not a terminal.",
                "Add a filter, or --yes.",
            )
        return
    found = json.loads(client.call("POST", path_of("dlq", "replay"), {**wish, "dryRun": True}))["matched"]
    typer.confirm(f"Replay {found} dead letters?", abort=True, err=True)


def letter_row(letter: Document) -> tuple[str, ...]:
    """Return a dead letter on one line, as in `COLUMNS`."""
    named = (letter["id"], letter["job"], letter["key"] or "", letter["replayStatus"], letter["errorCode"])
    return (*named, ", ".join(letter["tags"]), letter["fingerprint"] or "", instant(letter["createdAt"]))


def fault_row(fault: Document) -> tuple[str, ...]:
    """Return a fault on one line, as in `FAULT_COLUMNS`."""
    named = (fault["fingerprint"] or "", fault["job"], fault["errorCode"], str(fault["letters"]))
    message = (fault["errorMsg"] or "").partition("\n")[0][:MESSAGE_SHOWN]
    return (*named, instant(fault["firstAt"]), instant(fault["lastAt"]), message)


def letter_fields(letter: Document) -> Pairs:
    """Return all fields of a dead letter."""
    return [
        ("letter", letter["id"]),
        ("status", letter["replayStatus"]),
        ("reason", letter["reason"] or ""),
        ("replayed as", letter["replayedAs"] or ""),
        ("job", letter["job"]),
        ("key", letter["key"] or ""),
        ("error", ": ".join(part for part in (letter["errorCode"], letter["errorMsg"]) if part)),
        ("tags", ", ".join(letter["tags"])),
        ("fingerprint", letter["fingerprint"] or ""),
        ("died", instant(letter["createdAt"], exact=True)),
        ("changed", instant(letter["changedAt"], exact=True)),
    ]


def summary_fields(summary: Document) -> Pairs:
    """Return the counts of a replay, without those that are 0."""
    told = [("matched", str(summary["matched"]))]
    if not summary["dryRun"]:
        told.append(("replayed", str(summary["replayed"])))
    told += [(name, str(summary[name])) for name in ("superseded", "held") if summary[name]]
    return [*told, ("more", "yes" if summary["more"] else "")]
