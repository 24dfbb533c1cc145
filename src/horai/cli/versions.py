"""The commands `history` and `restore` of jobs, workflows, queues and reconcilers."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from horai.cli.client import client_of, path_of
from horai.cli.errors import BadUsage
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Server, flag
from horai.cli.show import console, print_json, say, show_answer, table
from horai.cli.views import instant

COLUMNS = ("VERSION", "AT", "BY", "VIA", "FIELDS")
CHANGES = ("FIELD", "BEFORE", "AFTER")
LONGEST_VALUE = 200
"""Characters of a value that are shown."""

Name = Annotated[str, typer.Argument(help="A name or id.")]
Version = Annotated[int, typer.Argument(help="A version, as `history` lists it.", min=1)]
DryRun = Annotated[bool, flag("--dry-run", about="Show what would change; change nothing.")]


def add_versions(app: typer.Typer, plural: str) -> None:
    """Add both commands to the commands of one kind of object."""

    @app.command()
    def history(
        name: Name,
        version: Annotated[int | None, flag("--version", about="Show one version and its changes.")] = None,
        as_json: AsJson = False,
        server: Server = DEFAULT_SERVER,
        api_key: ApiKey = None,
    ) -> None:
        """List the kept versions of the definition: who changed what, when and how."""
        client = client_of(server, api_key)
        if version is None:
            show_answer(client.call("GET", path_of(plural, name, "versions")), as_json, _print_versions)
        else:
            show_answer(client.call("GET", path_of(plural, name, "versions", str(version))), as_json, _print_changes)

    @app.command()
    def restore(
        name: Name,
        version: Version,
        dry_run: DryRun = False,
        as_json: AsJson = False,
        server: Server = DEFAULT_SERVER,
        api_key: ApiKey = None,
    ) -> None:
        """Make the definition what it was at a version. It gets a new version; a pause and secret values stay as they are now."""
        client = client_of(server, api_key)
        now = json.loads(client.call("GET", path_of(plural, name, "versions")))["current"]
        if now == version:
            raise BadUsage(f"{name} has version {version} now.", f"horai {plural} history {name} lists the others.")
        path = path_of(plural, name, "versions", str(version), "restore")
        answer = client.call("POST", path, {"dryRun": dry_run}, {"If-Match": f'"{now}"'})
        if as_json:
            print_json(answer)
        else:
            _print_restored(json.loads(answer), version, dry_run)


def _print_versions(found: Mapping[str, Any]) -> None:
    rows = [
        (str(each["version"]), instant(each["at"]), _actor(each["actor"]), each["via"], ", ".join(each["fields"]))
        for each in found["items"]
    ]
    console().print(table(COLUMNS, rows))


def _actor(actor: Mapping[str, str]) -> str:
    return actor["name"] or actor["id"] or actor["kind"]


def _print_changes(found: Mapping[str, Any]) -> None:
    rows = [(each["field"], _value(each["before"]), _value(each["after"])) for each in found["changes"]]
    if rows:
        console().print(table(CHANGES, rows))
    else:
        say("Nothing differs.")


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "…"


def _print_restored(fate: Mapping[str, Any], version: int, dry_run: bool) -> None:
    _print_changes(fate)
    if dry_run:
        say("Nothing was changed: this was a dry run.")
    elif fate["action"] == "changed":
        say(f"{fate['name']} is what it was at version {version}; it has version {fate['version']} now.")
    if fate["declaredBy"]:
        say(f"The code of {fate['declaredBy']} declares {fate['name']}: its next start replaces what is restored.")
