"""`horai unfreeze`: release what `horai freeze` holds."""

from horai.cli.client import client_of, path_of
from horai.cli.commands.freeze import Frozen
from horai.cli.commands.governor import Note, governor_pairs
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Server
from horai.cli.lazy import new_app
from horai.cli.show import show_fields

app = new_app()


@app.command()
def unfreeze(
    what: Frozen,
    note: Note = None,
    as_json: AsJson = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Release low-priority instances, or accept new backfills again."""
    answer = client_of(server, api_key).call("POST", path_of("scheduler", "unfreeze"), {"what": what, "note": note})
    show_fields(answer, as_json, governor_pairs)
