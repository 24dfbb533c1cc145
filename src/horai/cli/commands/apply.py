"""`horai apply`: definitions from YAML files."""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from horai.cli import yaml_text
from horai.cli.client import RestClient, client_of, path_of
from horai.cli.errors import BadUsage, CommandFailed
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Server, flag
from horai.cli.lazy import new_app
from horai.cli.show import console, print_json, say, table
from horai.cli.yaml_text import YamlDocument

app = new_app()

COLUMNS = ("KIND", "NAME", "CHANGE", "DETAIL")
KINDS = ("queue", "job", "workflow", "reconciler")
AT_ONCE = 200
"""Definitions of one request."""
SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class FileDefinition:
    """A definition of a file."""

    file: str
    document: YamlDocument

    @property
    def kind(self) -> str:
        """Return the kind, also one that no server knows."""
        return str(json.loads(self.document.text).get("kind", ""))


@app.command()
def apply(
    file: Annotated[
        list[Path],
        flag("--file", "-f", about="YAML or JSON file or directory; - is stdin; repeatable.", metavar="FILE"),
    ],
    dry_run: Annotated[bool, flag("--dry-run", about="Show what would change; change nothing.")] = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Create or change jobs, workflows, queues and reconcilers to match files.

    Objects that no file names stay, and so do pauses. Secrets given as *** stay. Exits with 1 if a definition is refused; the others are written. `horai definitions` writes such files.
    """
    sources = sorted(_sources(file), key=_order)
    if not sources:
        raise BadUsage("The files have no definition.", "A document begins with `kind: job` and `name: …`.")
    fates = _applied(client_of(server, api_key), sources, dry_run)
    if as_json:
        print_json(msgspec.json.encode({"dryRun": dry_run, "items": fates}))
    else:
        _print(sources, fates, dry_run)
    refused = [_said(source, fate) for source, fate in zip(sources, fates, strict=True) if fate["action"] == "refused"]
    if refused:
        raise CommandFailed(f"{len(refused)} of {len(fates)} definitions are refused.", None, refused)


def _sources(files: Sequence[Path]) -> Iterator[FileDefinition]:
    for file in files:
        if str(file) == "-":
            yield from _read("stdin", sys.stdin.read())
        elif file.is_dir():
            for each in sorted(one for one in file.rglob("*") if one.suffix in SUFFIXES):
                yield from _read(str(each), _text_of(each))
        else:
            yield from _read(str(file), _text_of(file))


def _text_of(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except OSError as error:
        raise CommandFailed(f"{file} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise CommandFailed(f"{file} is not UTF-8.") from error


def _read(name: str, text: str) -> Iterator[FileDefinition]:
    for document in yaml_text.load(text, name):
        yield FileDefinition(name, document)


def _order(source: FileDefinition) -> int:
    """Return the place of a kind: queues and jobs come before the workflows that name them."""
    return KINDS.index(source.kind) if source.kind in KINDS else len(KINDS)


def _applied(client: RestClient, sources: Sequence[FileDefinition], dry_run: bool) -> list[Mapping[str, Any]]:
    fates: list[Mapping[str, Any]] = []
    for start in range(0, len(sources), AT_ONCE):
        raws = [msgspec.Raw(source.document.text.encode()) for source in sources[start : start + AT_ONCE]]
        body = {"definitions": raws, "dryRun": dry_run}
        fates += json.loads(client.call("POST", path_of("definitions", "apply"), body))["items"]
    return fates


def _print(sources: Sequence[FileDefinition], fates: Sequence[Mapping[str, Any]], dry_run: bool) -> None:
    rows = [
        (fate["kind"], fate["name"], fate["action"], _detail(source, fate))
        for source, fate in zip(sources, fates, strict=True)
        if fate["action"] != "unchanged"
    ]
    if rows:
        console().print(table(COLUMNS, rows))
    counts = Counter(fate["action"] for fate in fates)
    say(", ".join(f"{counts[action]} {action}" for action in ("created", "changed", "unchanged", "refused")) + ".")
    for fate in fates:
        if fate["declaredBy"] and fate["action"] == "changed":
            say(f"The code of {fate['declaredBy']} declares {fate['name']}: its next start replaces this change.")
    if dry_run:
        say("Nothing was changed: this was a dry run.")


def _detail(source: FileDefinition, fate: Mapping[str, Any]) -> str:
    if fate["action"] == "refused":
        return _said(source, fate)
    return ", ".join(change["field"] for change in fate["changes"]) if fate["action"] == "changed" else ""


def _said(source: FileDefinition, fate: Mapping[str, Any]) -> str:
    """Return why a definition is refused, with the line of the first wrong field."""
    errors = fate.get("errors") or [{"field": "", "message": fate["reason"]}]
    lines = [
        f"{source.file}:{source.document.line_of(error['field'])}: "
        + (f"{error['field']}: {error['message']}" if error["field"] else error["message"])
        for error in errors
    ]
    return "; ".join(lines)
