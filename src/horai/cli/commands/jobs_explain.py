"""`horai jobs explain`: the reason why a slot fired, waits, was held or skipped."""

import json
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from horai.cli.client import client_of, path_of
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Server
from horai.cli.show import console, fields, print_json
from horai.cli.views import instant


def explain(
    job: Annotated[str, typer.Argument(help="A job's name or id.")],
    at: Annotated[
        str,
        typer.Argument(help="An instant (2026-03-29T01:00:00Z), or a local time of the job's zone (2026-03-29T02:30)."),
    ],
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Explain why a slot fired, waits, was held or skipped, or why there is none."""
    asked = urlencode({"at": at}, errors="surrogateescape")
    answer = client_of(server, api_key).call("GET", f"{path_of('jobs', job, 'explain')}?{asked}")
    if as_json:
        print_json(answer)
        return
    told = json.loads(answer)
    for each in filter(None, (told, told["also"])):
        console().print(fields(_rows(each)))


def _rows(told: Mapping[str, Any]) -> list[tuple[str, str]]:
    skip, instance = told["skip"], told["instance"]
    return [
        ("at", instant(told["at"])),
        ("local", told["local"]),
        ("verdict", told["verdict"]),
        ("why", told["why"]),
        ("instance", instance["id"] if instance else ""),
        ("skipped", f"{instant(skip['from'])} to {instant(skip['to'])} ({skip['reason']})" if skip else ""),
        ("previous", instant(told["previous"])),
        ("next", instant(told["next"])),
    ]
