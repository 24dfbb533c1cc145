"""`horai restore`: make a data directory of a backup."""

import asyncio
import json
import os
from pathlib import Path
from typing import Annotated

import typer

from horai.cli.errors import BadUsage
from horai.cli.flags import DataDir, setting
from horai.cli.lazy import new_app

app = new_app()


@app.command()
def restore(
    backup: Annotated[
        Path, typer.Argument(help="A backup, or a directory of backups: its newest one.", metavar="BACKUP")
    ],
    data_dir: DataDir = None,
    as_json: Annotated[bool, setting("--json", about="Print the result as JSON.")] = False,
) -> None:
    """Restore a backup of the embedded database.

    The data directory must be new or empty. Every file is compared with the manifest, and the database is started and checked before the directory gets its name. `horai up --data-dir DIR` then runs it.
    """
    named = data_dir or (Path(given) if (given := os.environ.get("HORAI_DATA_DIR")) else None)
    if named is None:
        raise BadUsage("A restore needs a new data directory.", "Give --data-dir.")
    from horai.cli.backup_in_database import restore as restored  # noqa: PLC0415
    from horai.cli.show import say  # noqa: PLC0415

    found = asyncio.run(restored(backup, named))
    manifest = found.manifest
    if as_json:
        facts = {"dataDir": str(named), "startedAt": manifest.started_at.isoformat(), "keys": list(manifest.keys)}
        print(json.dumps(facts | {"counts": dict(manifest.content.counts)}))
        return
    print(named)
    say(f"The database is that of {manifest.started_at:%Y-%m-%d %H:%M:%S} UTC, started and checked.")
    if not manifest.keys:
        say("The backup has no keys: put encryption.key and audit.key into the directory before `horai up`.")
