"""`horai audit`: list, verify, export."""

import json
from pathlib import Path
from typing import Annotated, Any

from horai.cli.client import RestClient, client_of, path_of
from horai.cli.errors import CommandFailed
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Everything, Limit, Server, flag
from horai.cli.lazy import new_app
from horai.cli.output import stream_to
from horai.cli.show import console, fields, print_json, show_list
from horai.cli.views import Document, Pairs, instant

app = new_app("Audit log: list, export and verify the record of all writes.")

COLUMNS = ("ID", "AT", "ACTOR", "VERB", "OBJECT", "CHANGE", "SEAL")
SHOWN = 120

Text = str | None
Actor = Annotated[Text, flag("--actor", about="Only by this actor, by name or id.", metavar="ACTOR")]
Verb = Annotated[Text, flag("--verb", about="Only this verb, such as job.pause.", metavar="VERB")]
Object = Annotated[Text, flag("--object", about="Only on this object, by name or id.", metavar="OBJECT")]
ObjectKind = Annotated[Text, flag("--object-kind", about="Only on objects of this kind, such as job.", metavar="KIND")]
Since = Annotated[Text, flag("--from", about="Written at this time or later; with an offset.", metavar="TIME")]
Until = Annotated[Text, flag("--to", about="Written before this time.", metavar="TIME")]


@app.command("list")
def list_audit(
    actor: Actor = None,
    verb: Verb = None,
    object_: Object = None,
    object_kind: ObjectKind = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """List writes, newest first."""
    only = _only(actor, verb, object_, object_kind, since, until) | {"limit": limit}
    answer = client_of(server, api_key).page(path_of("audit"), only, everything)
    show_list(answer, as_json, COLUMNS, audit_row)


@app.command()
def verify(
    head: Annotated[
        Text, flag("--head", about="Head published earlier, such as 42:9f86…; must be in the chain.", metavar="HEAD")
    ] = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Recompute the chain of seals. Exits with 1 if a row or a seal was changed."""
    told = _verified(client_of(server, api_key), head)
    if as_json:
        print_json(json.dumps(told).encode())
    else:
        console().print(fields(chain_fields(told)))
    if not told["intact"]:
        raise CommandFailed(
            f"The audit log is not intact: {len(told['faults'])} faults.", "Compare it with an export or a backup."
        )


@app.command()
def export(
    actor: Actor = None,
    verb: Verb = None,
    object_: Object = None,
    object_kind: ObjectKind = None,
    since: Since = None,
    until: Until = None,
    output: Annotated[
        Path | None, flag("--output", "-o", about="File to write; it must not exist (stdout).", metavar="FILE")
    ] = None,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Write all matching rows, oldest first, as JSON lines."""
    only = _only(actor, verb, object_, object_kind, since, until)
    client, path = client_of(server, api_key), path_of("audit", "export")
    stream_to(output, lambda write: client.stream(path, only, write))


def _only(*values: Text) -> dict[str, Any]:
    return dict(zip(("actor", "verb", "object", "objectKind", "from", "to"), values, strict=True))


def _verified(client: RestClient, head: Text) -> Document:
    """Verify the whole chain: the server reads it in parts of at most 20 seconds."""
    told = _part(client, head, None)
    while told["nextSeal"] is not None and told["intact"]:
        part = _part(client, None, told["nextSeal"])
        counts = {name: told[name] + part[name] for name in ("seals", "rows", "dropped")}
        told = {**part, **counts, "signedTo": part["signedTo"] or told["signedTo"]}
    return told


def _part(client: RestClient, head: Text, start: int | None) -> Document:
    return json.loads(client.page(path_of("audit", "verify"), {"head": head, "from": start}, everything=False))


def audit_row(row: Document) -> tuple[str, ...]:
    """Return a write on one line, as in `COLUMNS`."""
    actor, concerned = row["actor"], row["object"]
    named = (
        actor["name"] or actor["id"] or actor["kind"],
        row["verb"],
        f"{concerned['kind']} {concerned['name'] or concerned['id']}",
    )
    seal = "" if row["seal"] is None else str(row["seal"])
    return (row["id"], instant(row["at"]), *named, _change(row)[:SHOWN], seal)


def _change(row: Document) -> str:
    before, after, counts = _fields(row["before"]), _fields(row["after"]), _fields(row["counts"])
    changed = [f"{name}: {_text(before.get(name))} → {_text(after.get(name))}" for name in {**before, **after}]
    return ", ".join([*changed, *(f"{name}: {count}" for name, count in counts.items())])


def _fields(found: Document | None) -> Document:
    return found or {}


def _text(value: Any) -> str:
    return "none" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def chain_fields(told: Document) -> Pairs:
    """Return the result of a verification."""
    faults = [f"{fault['kind']} in seal {fault['seal']}{_of_row(fault)}" for fault in told["faults"]]
    return [
        ("intact", "yes" if told["intact"] else "no"),
        ("head", told["head"] or ""),
        ("seals", str(told["seals"])),
        ("rows", str(told["rows"])),
        ("dropped rows", str(told["dropped"] or "")),
        ("unsealed rows", str(told["unsealed"] or "")),
        ("signed up to", str(told["signedTo"] or "")),
        ("kept from", told["keptFrom"] or ""),
        *(("fault", fault) for fault in faults),
    ]


def _of_row(fault: Document) -> str:
    return "" if fault["row"] is None else f", row {fault['row']}"
