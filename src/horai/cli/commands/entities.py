"""`horai entities`: import, list, add, remove, status."""

import csv
import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, TextIO

import msgspec
import typer

from horai.cli.client import client_of, path_of
from horai.cli.counts import print_count
from horai.cli.documents import payload_of
from horai.cli.errors import BadUsage
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Count, Everything, Limit, Payload, Server, flag
from horai.cli.lazy import new_app
from horai.cli.show import say, show_fields, show_list
from horai.cli.views import Document, Pairs, instant

app = new_app("Entities: import, list and remove the entities of refresh jobs.")

COLUMNS = ("KEY", "STATUS", "REFRESHED", "STARTED", "BATCH", "REMARK")
BATCH = 5_000

Job = Annotated[str, typer.Argument(help="A refresh job's name or id.")]
Prefix = Annotated[str | None, flag("--prefix", about="Only keys with this prefix.", metavar="TEXT")]
StatusFlag = Annotated[str | None, flag("--status", about="NOT_RUN, RUNNING, SUCCESS or FAILED.", metavar="STATUS")]
OlderThan = Annotated[
    str | None, flag("--older-than", about="Only entities not refreshed for this long.", metavar="DURATION")
]
Batch = Annotated[str | None, flag("--batch", about="Only entities that this tick loaded.", metavar="ID")]
Key = Annotated[str, typer.Argument(help="The entity's key.")]


@app.command("import")
def import_entities(
    job: Job,
    file: Annotated[Path, typer.Argument(help="CSV with a column `key`, or .jsonl of {key, payload?}; - is stdin.")],
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Add the entities of a file. The other columns of a CSV are the payload; known entities also get it."""
    client, added, known = client_of(server, api_key), 0, 0
    items = _items(file)
    while some := list(islice(items, BATCH)):
        answer = json.loads(client.call("POST", path_of("jobs", job, "entities", "batch"), {"items": some}))
        added, known = added + answer["added"], known + answer["known"]
    say(f"{added} new, {known} known.")


def _items(file: Path) -> Iterator[dict[str, Any]]:
    try:
        with sys.stdin if str(file) == "-" else file.open(encoding="utf-8", newline="") as text:
            yield from _of_lines(text) if file.suffix in {".jsonl", ".ndjson"} else _of_csv(text)
    except (OSError, UnicodeDecodeError) as error:
        raise BadUsage(f"{file} cannot be read: {error}.") from error


def _of_lines(text: TextIO) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(text, 1):
        if line.strip():
            try:
                yield msgspec.json.decode(line, type=dict[str, msgspec.Raw])
            except msgspec.DecodeError as error:
                raise BadUsage(
                    f"Line {number} is not a JSON object: {error}.", 'Write one {"key": "…"} per line.'
                ) from error


def _of_csv(text: TextIO) -> Iterator[dict[str, Any]]:
    rows = csv.DictReader(text)
    if "key" not in (rows.fieldnames or ()):
        raise BadUsage("The first line has no column `key`.", "Add it, or give a .jsonl file.")
    for row in rows:
        payload = {name: value for name, value in row.items() if name != "key"}
        yield {"key": row["key"], "payload": payload} if payload else {"key": row["key"]}


@app.command("list")
def list_entities(
    job: Job,
    prefix: Prefix = None,
    status: StatusFlag = None,
    older_than: OlderThan = None,
    batch: Batch = None,
    count: Count = False,
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List a refresh job's entities, by key."""
    only = {"prefix": prefix, "status": status and status.upper(), "olderThan": older_than, "batch": batch}
    only |= {"limit": limit}
    client = client_of(server, api_key)
    if count:
        print_count(client, path_of("jobs", job, "entity-count"), only, as_json)
        return
    answer = client.page(path_of("jobs", job, "entities"), only, everything)
    show_list(answer, as_json, COLUMNS, entity_row)


def entity_row(entity: Document) -> tuple[str, ...]:
    """Return an entity on one line, as in `COLUMNS`."""
    return (
        entity["key"],
        entity["status"],
        instant(entity["refreshedAt"]),
        instant(entity["startTime"]),
        entity["batchNo"] or "",
        entity["remark"] or "",
    )


@app.command()
def add(
    job: Job,
    key: Key,
    payload: Payload = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Add an entity, or change its payload."""
    answer = client_of(server, api_key).call("PUT", path_of("jobs", job, "entities", key), payload_of(payload))
    show_fields(answer, as_json, _entity_fields)


def _entity_fields(entity: Document) -> Pairs:
    return [*zip(("key", "status", "refreshed", "started", "batch", "remark"), entity_row(entity), strict=True)]


@app.command()
def remove(
    job: Job,
    key: Annotated[str | None, typer.Argument(help="The entity's key; or select entities by flags.")] = None,
    prefix: Prefix = None,
    status: StatusFlag = None,
    older_than: OlderThan = None,
    batch: Batch = None,
    dry_run: Annotated[bool, flag("--dry-run", about="Only count them.")] = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Remove an entity, or all that match: waiting instances are cancelled, running ones finish."""
    client = client_of(server, api_key)
    given = {"prefix": prefix, "status": status and status.upper(), "olderThan": older_than, "batch": batch}
    only = {name: value for name, value in given.items() if value is not None}
    if (key is None) != bool(only) or (key is not None and dry_run):
        raise BadUsage(
            "horai entities remove takes a key, or --prefix, --status, --older-than and --batch.",
            f"Try: horai entities remove {job} --prefix sku- --dry-run",
        )
    if key is not None:
        client.call("DELETE", path_of("jobs", job, "entities", key))
        say(f"Removed {key}.")
        return
    found = {"matched": 0, "removed": 0, "held": 0}
    while True:
        answer = json.loads(
            client.call("POST", path_of("jobs", job, "entities", "remove"), {**only, "dryRun": dry_run})
        )
        found = {name: found[name] + answer[name] for name in found}
        if not (answer["more"] and answer["removed"]):
            break
    if dry_run:
        say(f"{'At least ' if answer['more'] else ''}{found['matched']} would be removed.")
    else:
        held = f" {found['held']} left alone, as another transaction had locked them." if found["held"] else ""
        say(f"Removed {found['removed']}.{held}")


@app.command()
def status(job: Job, as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None) -> None:
    """Show the freshness of a refresh job's entities."""
    answer = client_of(server, api_key).call("GET", path_of("jobs", job, "refresh"))
    show_fields(answer, as_json, _refresh_fields)


def _refresh_fields(found: Document) -> Pairs:
    tick = found["lastTick"]
    progress = "" if tick is None else f"{tick['loaded']} of {tick['due']} loaded, {tick['running']} running"
    return [
        ("job", found["job"]),
        ("window", found["window"]),
        ("entities", str(found["entities"])),
        ("never run", str(found["neverRun"])),
        ("running", str(found["running"])),
        ("due", str(found["due"])),
        ("overdue", str(found["overdue"])),
        ("coverage", "" if found["coverage"] is None else f"{found['coverage']:.1%}"),
        ("greatest age", found["maxAge"] or ""),
        ("last tick", "" if tick is None else f"{instant(tick['fireTime'])}: {progress}"),
        ("next tick", instant(found["nextTick"])),
        ("oldest", ", ".join(entity["key"] for entity in found["oldest"])),
    ]
