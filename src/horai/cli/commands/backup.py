"""`horai backup`: back up the embedded database."""

import asyncio
import json
import os
from pathlib import Path
from typing import Annotated

import typer

from horai.cli.backup_flags import OWN_TOOLS
from horai.cli.errors import BadUsage
from horai.cli.flags import DataDir, flag, setting
from horai.cli.lazy import new_app
from horai.db.database_location import choose_database

app = new_app()

AsJson = Annotated[bool, setting("--json", about="Print the result as JSON.")]


@app.command()
def backup(
    directory: Annotated[Path, typer.Argument(help="Directory of the backups; made if it is missing.", metavar="DIR")],
    data_dir: DataDir = None,
    include_keys: Annotated[
        bool,
        flag(
            "--include-keys",
            about="Also copy the encryption key and the audit key: a reader of the backup can then read all secrets.",
        ),
    ] = False,
    show: Annotated[bool, flag("--list", about="Make no backup: list the complete ones of the directory.")] = False,
    as_json: AsJson = False,
) -> None:
    """Back up the embedded database.

    The server may run and work meanwhile: each write that it has acknowledged before is in the backup. The copy is started and checked before it gets its name. Prints the path of the backup.
    """
    from horai.cli.backup_views import counted, facts, show_backups  # noqa: PLC0415

    if show:
        show_backups(directory, as_json)
        return
    place = choose_database(None, data_dir, os.environ)
    if place.url is not None:
        raise BadUsage("`horai backup` needs the embedded database.", OWN_TOOLS)
    from horai.cli.backup_in_database import back_up  # noqa: PLC0415
    from horai.cli.show import say  # noqa: PLC0415

    made, left_out = asyncio.run(back_up(place, directory.absolute(), include_keys=include_keys))
    manifest = made.manifest
    violations = manifest.content.violations or {}
    if as_json:
        print(json.dumps(facts(made) | {"violations": dict(violations), "keysLeftOut": [*map(str, left_out)]}))
        return
    print(made.path)
    say(f"{manifest.size / 1_000_000:,.0f} MB, started and checked: {counted(manifest.content.counts)}.")
    for title, number in violations.items():
        say(f"warning: the database itself violates an invariant, {number} times: {title}.")
    for key in left_out:
        say(f"warning: {key} is not in the backup. Keep a copy of it elsewhere: the restored database needs it.")
