"""`horai jobs backfill`: run past slots, and with `--wait` watch until they have ended."""

import json
import sys
import time
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from horai.cli.client import RestClient, client_of, path_of
from horai.cli.errors import CommandFailed
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, IdempotencyKey, Server, flag
from horai.cli.show import once_headers, say, show_fields
from horai.cli.time_flags import given
from horai.cli.views import Document, Pairs, instant

LOOK = 0.2

From = Annotated[str, flag("--from", about="The first instant, such as 2026-11-01T00:00:00Z.", metavar="TIME")]
To = Annotated[str | None, flag("--to", about="The end, not included (now).", metavar="TIME")]
Mode = Annotated[
    str | None,
    flag("--mode", about="missing (default): never run; failed: dead; all: every slot again.", metavar="MODE"),
]
Rate = Annotated[str | None, flag("--rate", about="Rate of starts, such as 100/s, 30/m (no limit).", metavar="RATE")]
MaxConcurrency = Annotated[
    int | None, flag("--max-concurrency", about="Runs at the same time (10; 1 if they may not overlap).", metavar="N")
]


def backfill(
    job: Annotated[str, typer.Argument(help="A job's name or id.")],
    from_: From,
    to: To = None,
    mode: Mode = None,
    rate: Rate = None,
    max_concurrency: MaxConcurrency = None,
    note: Annotated[str | None, flag("--note", about="Reason; shown with the backfill.", metavar="TEXT")] = None,
    idempotency_key: IdempotencyKey = None,
    dry_run: Annotated[bool, flag("--dry-run", about="Only count; run nothing.")] = False,
    wait: Annotated[bool, flag("--wait", about="Wait for the end; exit with 1 unless every run succeeds.")] = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Run past slots of a job, beside its current work."""
    client, path = client_of(server, api_key), path_of("jobs", job, "backfill")
    wish = given(**{"from": from_, "to": to, "mode": mode, "rate": rate}, maxConcurrency=max_concurrency, note=note)
    if dry_run:
        answer = client.call("POST", path, {**wish, "dryRun": True})
        show_fields(answer, as_json, plan_fields)
        return
    once = once_headers(idempotency_key)
    answer = client.call("POST", path, wish, once)
    if wait:
        answer = _wait(client, json.loads(answer))
    print_backfill(answer, as_json)
    if wait:
        _require_success(json.loads(answer))


def print_backfill(answer: bytes, as_json: bool) -> None:
    """Print one backfill as JSON or as fields."""
    show_fields(answer, as_json, backfill_fields)


def _wait(client: RestClient, started: Document) -> bytes:
    """Wait until the backfill has finished and return it; show a progress bar on a terminal."""
    path = path_of("backfills", started["id"])
    say(f"Waiting for backfill {started['id']}. Ctrl-C stops waiting; horai backfills cancel {started['id']} ends it.")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[eta]}"))
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as bar:
        task = bar.add_task(started["job"], total=started["progress"]["total"], eta="")
        while True:
            answer = client.call("GET", path)
            backfill: Document = json.loads(answer)
            progress = backfill["progress"]
            ended = progress["succeeded"] + progress["failed"] + progress["cancelled"]
            bar.update(task, completed=ended, description=f"{backfill['job']} {backfill['status']}", eta=_eta(progress))
            if backfill["finishedAt"] is not None:
                return answer
            time.sleep(LOOK)


def _eta(progress: Document) -> str:
    return f"until {instant(progress['eta'])}" if progress["eta"] else ""


def _require_success(backfill: Document) -> None:
    progress = backfill["progress"]
    if backfill["status"] != "DONE" or progress["failed"] or progress["cancelled"]:
        raise CommandFailed(
            f"The backfill {backfill['id']} is {backfill['status']}: {progress['failed']} failed,"
            f" {progress['cancelled']} were cancelled.",
            f"horai jobs backfill {backfill['job']} --mode failed runs the dead slots again.",
        )


def plan_fields(plan: Document) -> Pairs:
    """Return the fields of a dry run."""
    return [
        ("job", plan["job"]),
        ("from", instant(plan["from"])),
        ("to", instant(plan["to"])),
        ("mode", plan["mode"]),
        ("slots", str(plan["slots"])),
        ("would run", str(plan["total"])),
        ("passed over", str(plan["skipped"])),
        ("first", instant(plan["first"])),
        ("last", instant(plan["last"])),
        *_limits(plan),
    ]


def backfill_fields(backfill: Document) -> Pairs:
    """Return all fields of a backfill."""
    progress = backfill["progress"]
    pace = progress["ratePerSecond"]
    return [
        ("id", backfill["id"]),
        ("job", backfill["job"]),
        ("status", backfill["status"]),
        ("note", backfill["note"] or ""),
        ("from", instant(backfill["from"])),
        ("to", instant(backfill["to"])),
        ("mode", backfill["mode"]),
        *_limits(backfill),
        ("progress", f"{progress['percent']} %"),
        ("to run", f"{progress['total']} of {progress['slots']} slots"),
        ("made", str(progress["made"])),
        ("passed over", str(progress["skipped"])),
        ("running", str(progress["running"])),
        ("succeeded", str(progress["succeeded"])),
        ("failed", str(progress["failed"])),
        ("cancelled", str(progress["cancelled"])),
        ("pace", "" if pace is None else f"{pace} a second"),
        ("eta", instant(progress["eta"])),
        ("created", instant(backfill["createdAt"])),
        ("finished", instant(backfill["finishedAt"])),
    ]


def _limits(of: Document) -> Pairs:
    return [("rate", of["rate"] or "none"), ("at once", str(of["maxConcurrency"]))]
