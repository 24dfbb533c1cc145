"""`horai freeze`: hold low-priority work or the entry of backfills by hand."""

from typing import Annotated

import typer

from horai.cli.client import client_of, path_of
from horai.cli.commands.governor import Lasts, Note, governor_pairs
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Server
from horai.cli.lazy import new_app
from horai.cli.show import show_fields

app = new_app()
Frozen = Annotated[str, typer.Argument(help="low-priority or backfill.", metavar="low-priority|backfill")]


@app.command()
def freeze(
    what: Frozen,
    lasts: Lasts = None,
    note: Note = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Hold low-priority instances, or refuse new backfills."""
    body = {"what": what, "expiresIn": lasts, "note": note}
    answer = client_of(server, api_key).call("POST", path_of("scheduler", "freeze"), body)
    show_fields(answer, as_json, governor_pairs)
