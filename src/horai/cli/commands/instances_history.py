"""`horai instances history`: the events of all instances of a key in one list."""

import json
from typing import Annotated

import typer

from horai.cli.client import client_of, path_of
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Everything, Limit, Server
from horai.cli.show import show_list
from horai.cli.views import Document, instant

COLUMNS = ("AT", "INSTANCE", "WHAT", "DETAILS")
TIMES = {"executeTime", "was", "occurredAt", "due"}
SAID = {"idemKey"}
"""Fields that are the same in every entry."""


def history(
    job: Annotated[str, typer.Argument(help="A job's name or id.")],
    key: Annotated[str, typer.Argument(help="The business key, such as article:42.")],
    limit: Limit = None,
    everything: Everything = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Show the history of a key: the events of all its instances, oldest first."""
    path = path_of("jobs", job, "instances", key, "history")
    answer = client_of(server, api_key).page(path, {"limit": limit}, everything)
    show_list(answer, as_json, COLUMNS, _row)


def _row(entry: Document) -> tuple[str, ...]:
    what = entry["kind"].removeprefix("INSTANCE_")
    return (instant(entry["at"], exact=True), entry["instanceId"], what, _details(entry))


def _details(entry: Document) -> str:
    data: Document = entry["data"] or {}
    if entry["kind"] == "INSTANCE_RESCHEDULED":
        moved = f"{instant(data['was'])} → {instant(data['executeTime'])}"
        return moved if data.get("version") is None else f"{moved}, version {data['version']}"
    words = [f"{name} {_word(name, value)}" for name, value in data.items() if name not in SAID and value is not None]
    return ", ".join(words)


def _word(name: str, value: object) -> str:
    if name in TIMES and isinstance(value, str):
        return instant(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
