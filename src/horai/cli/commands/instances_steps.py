"""`horai instances steps`: the records of a durable function, in their order."""

import json
from typing import Annotated

import typer

from horai.cli.client import client_of, path_of
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Everything, Limit, Server
from horai.cli.show import show_list
from horai.cli.views import Document, instant

COLUMNS = ("STARTED", "KIND", "NAME", "STATE", "ENDED", "DETAILS")
SHOWN = 200
"""Characters of a result or an error in a table."""


def steps(
    instance: Annotated[str, typer.Argument(help="An instance's id.")],
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Show what a durable function has done and waits for: steps, sleeps, waits, calls and compensations."""
    path = path_of("instances", instance, "steps")
    answer = client_of(server, api_key).page(path, {"limit": limit}, everything)
    show_list(answer, as_json, COLUMNS, _row)


def _row(step: Document) -> tuple[str, ...]:
    name = step["name"] if step["n"] == 1 else f"{step['name']}#{step['n']}"
    ended = "-" if step["finishedAt"] is None else instant(step["finishedAt"], exact=True)
    return (instant(step["startedAt"], exact=True), step["kind"], name, step["state"], ended, _details(step))


def _details(step: Document) -> str:
    words: list[str] = []
    if step["childId"] is not None:
        words.append(f"instance {step['childId']} of {step['childJob']}, {step['childState']}")
    if step["state"] == "OPEN" and step["until"] is not None:
        words.append(f"until {instant(step['until'])}")
    if step["errorType"] is not None:
        words.append(f"{step['errorType']}: {step['errorMsg']}"[:SHOWN])
    elif step["result"] is not None:
        words.append(json.dumps(step["result"], ensure_ascii=False)[:SHOWN])
    elif step["resultSize"] is not None:
        words.append(f"{step['resultSize']} bytes")
    return ", ".join(words)
