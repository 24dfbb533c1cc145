# ruff: noqa: N999 - the module has the name of its command
"""`horai import`: queues, calendars, jobs and dead letters of an export."""

from pathlib import Path
from typing import Annotated

import typer

from horai.cli.client import client_of
from horai.cli.flags import DEFAULT_SERVER, ApiKey, Server, flag, setting
from horai.cli.lazy import new_app

app = new_app()


@app.command("import")
def import_file(
    file: Annotated[Path, typer.Argument(help="A file that `horai export` wrote.", metavar="FILE")],
    apply: Annotated[bool, flag("--apply", about="Make the changes; without it they are only shown.")] = False,
    paused: Annotated[bool, flag("--paused", about="Create jobs paused, so that none fires on two clusters.")] = False,
    as_json: Annotated[bool, setting("--json", about="Print the result as JSON.")] = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Import queues, calendars, jobs and dead letters that another cluster has exported.

    Shows what would change; --apply does it. A second import of the same file changes nothing. Objects that only this cluster has stay. Needs a key of the tenant's admin.
    """
    from horai.cli.importing import Importer, read_export  # noqa: PLC0415

    Importer(client_of(server, api_key), is_paused=paused).run(read_export(file), apply=apply, as_json=as_json)
