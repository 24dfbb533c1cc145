"""`horai db`: url, verify."""

import asyncio
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from horai.cli.flags import DatabaseUrl, DataDir, flag, setting
from horai.cli.lazy import new_app
from horai.db.database_location import choose_database

app = new_app("Inspect the database.")
COLUMNS = ("INVARIANT", "VIOLATIONS", "WHAT MUST HOLD", "EXAMPLES")


@app.command()
def url(
    data_dir: Annotated[
        Path | None, setting("--data-dir", about="Directory of the embedded database.", metavar="DIR")
    ] = None,
    admin: Annotated[
        bool, flag("--admin", about="Print the URL of the superuser: for dumps, extensions, roles and other databases.")
    ] = False,
) -> None:
    """Print the URL of a running embedded database."""
    from horai.embedded import default_data_dir, url_of  # noqa: PLC0415
    from horai.embedded.admin import admin_url  # noqa: PLC0415

    found = url_of(data_dir or default_data_dir())
    print(admin_url(found) if admin else found)


@app.command()
def verify(
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: Annotated[bool, setting("--json", about="Print the findings as JSON.")] = False,
) -> None:
    """Check every invariant of the database. Exits with 1 if one is violated."""
    from horai.cli.database import find_violations  # noqa: PLC0415
    from horai.cli.show import console, table  # noqa: PLC0415

    findings = asyncio.run(find_violations(choose_database(database_url, data_dir, os.environ)))
    holds = not any(finding.violations for finding in findings)
    if as_json:
        print(json.dumps({"holds": holds, "findings": [asdict(finding) for finding in findings]}))
    else:
        rows = ((f.invariant, str(f.violations), f.title, ", ".join(f.examples)) for f in findings)
        console().print(table(COLUMNS, rows))
    if not holds:
        raise typer.Exit(1)
