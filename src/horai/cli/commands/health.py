"""`horai health`: the health of the scheduler, once or continuously."""

import json
import time
from typing import Annotated

from rich.console import Group, RenderableType
from rich.live import Live

from horai.cli import views
from horai.cli.client import RestClient, client_of, path_of
from horai.cli.errors import CommandFailed, lines_of
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Server, flag
from horai.cli.lazy import new_app
from horai.cli.show import console, fields, print_json, say, table

app = new_app()
EVERY = 2.0


@app.command()
def health(
    watch: Annotated[bool, flag("--watch", about="Refresh every 2 s, until Ctrl-C.")] = False,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Show the health of the scheduler."""
    client = client_of(server, api_key)
    if not watch:
        _print(client, as_json)
        return
    try:
        _watch(client, as_json)
    except KeyboardInterrupt:
        return


def _ask(client: RestClient) -> bytes:
    return client.call("GET", path_of("scheduler", "health"))


def _print(client: RestClient, as_json: bool) -> None:
    answer = _ask(client)
    if as_json:
        print_json(answer)
    else:
        console().print(_drawn(answer))


def _watch(client: RestClient, as_json: bool) -> None:
    """Refresh in place on a terminal, otherwise print one after the other. Keep trying while the server is away."""
    out = console()
    if out.is_terminal and not as_json:
        with Live(console=out, auto_refresh=False) as live:
            while True:
                live.update(_drawn_or_told(client), refresh=True)
                time.sleep(EVERY)
    while True:
        try:
            _print(client, as_json)
        except CommandFailed as failure:
            say(lines_of(failure)[0])
        out.file.flush()
        time.sleep(EVERY)


def _drawn_or_told(client: RestClient) -> RenderableType:
    try:
        return _drawn(_ask(client))
    except CommandFailed as failure:
        return lines_of(failure)[0]


def _drawn(answer: bytes) -> RenderableType:
    shown = json.loads(answer)
    nodes = table(views.NODE_COLUMNS, map(views.node_row, shown["nodes"]))
    return (
        Group(fields(views.health_fields(shown)), "", nodes) if shown["nodes"] else fields(views.health_fields(shown))
    )
