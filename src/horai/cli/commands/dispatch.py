"""`horai dispatch`: pause and resume all dispatch."""

from horai.cli.client import client_of, path_of
from horai.cli.commands.governor import Note, governor_pairs
from horai.cli.flags import DEFAULT_SERVER, ApiKey, AsJson, Server
from horai.cli.lazy import new_app
from horai.cli.show import show_fields

app = new_app("Dispatch: pause and resume all dispatch of the tenant, or of the platform.")


@app.command()
def pause(note: Note = None, as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None) -> None:
    """Start no instance from now on. Running ones finish, due ones wait."""
    answer = client_of(server, api_key).call("POST", path_of("scheduler", "pause"), {"note": note})
    show_fields(answer, as_json, governor_pairs)


@app.command()
def resume(note: Note = None, as_json: AsJson = False, server: Server = DEFAULT_SERVER, api_key: ApiKey = None) -> None:
    """Start instances again. Paused queues stay paused."""
    answer = client_of(server, api_key).call("POST", path_of("scheduler", "resume"), {"note": note})
    show_fields(answer, as_json, governor_pairs)
