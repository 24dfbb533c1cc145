"""`horai export`: the data of a tenant in a file."""

from pathlib import Path
from typing import Annotated

import typer

from horai.cli.client import client_of, path_of
from horai.cli.flags import DEFAULT_SERVER, ApiKey, Server
from horai.cli.lazy import new_app
from horai.cli.output import stream_to

app = new_app()


@app.command()
def export(
    file: Annotated[Path, typer.Argument(help="File to write; it must not exist.", metavar="FILE")],
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Export the data of your tenant into a file, for `horai import` or for your own use.

    The same as `horai tenants export`. Values that may be secret are ***. Needs a key of the tenant's admin.
    """
    client = client_of(server, api_key)
    stream_to(file, lambda write: client.stream(path_of("export"), {}, write))
