"""`horai definitions`: jobs, workflows, queues and reconcilers as YAML."""

import sys
from typing import Annotated, Any

import msgspec
import typer

from horai.cli import yaml_text
from horai.cli.client import RestClient, client_of, path_of
from horai.cli.errors import BadUsage, NotThere
from horai.cli.flags import DEFAULT_SERVER, ApiKey, Server, flag
from horai.cli.lazy import new_app

app = new_app()

KINDS = ("queue", "job", "workflow", "reconciler")


class _ListedDefinition(msgspec.Struct):
    kind: str
    name: str
    definition: dict[str, msgspec.Raw]


class _DefinitionPage(msgspec.Struct):
    items: list[_ListedDefinition]


@app.command()
def definitions(
    name: Annotated[list[str] | None, typer.Argument(help="Names of objects; without one, all of them.")] = None,
    kind: Annotated[
        list[str] | None, flag("--kind", about="queue, job, workflow or reconciler; repeatable.", metavar="KIND")
    ] = None,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Write definitions as YAML, for `horai apply`.

    Secret values are ***, which keeps the stored ones when the file is applied to the same server. Payloads of encrypted jobs are left out.
    """
    if unknown := set(kind or ()) - set(KINDS):
        raise BadUsage(f"There is no kind {min(unknown)!r}.", f"There are: {', '.join(KINDS)}.")
    client = client_of(server, api_key)
    found = [one for each in kind or KINDS for one in _all_of(client, each) if not name or one.name in name]
    if missing := set(name or ()) - {one.name for one in found}:
        raise NotThere(f"There is no definition named {min(missing)!r}.")
    texts = [msgspec.json.encode(_as_file(one)).decode() for one in found]
    sys.stdout.write(yaml_text.dump(texts) if texts else "")


def _all_of(client: RestClient, kind: str) -> list[_ListedDefinition]:
    answer = client.page(path_of("definitions", kind), {}, everything=True)
    return msgspec.json.decode(answer, type=_DefinitionPage).items


def _as_file(one: _ListedDefinition) -> dict[str, Any]:
    return {"kind": one.kind, **one.definition}
