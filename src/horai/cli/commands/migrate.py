"""`horai migrate`: migrate a database to this version."""

import asyncio
import os
from typing import Annotated

from horai.cli.flags import DatabaseUrl, DataDir, flag
from horai.cli.lazy import new_app
from horai.db.database_location import choose_database

app = new_app()


@app.command()
def migrate(
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    dry_run: Annotated[bool, flag("--dry-run", about="Only print the migrations that would be applied.")] = False,
) -> None:
    """Migrate a database to this version.

    Prints the applied migrations. An embedded database that is not running is started, and stopped afterwards.
    """
    from horai.cli.database import apply_migrations  # noqa: PLC0415
    from horai.cli.show import say  # noqa: PLC0415

    migrations = asyncio.run(apply_migrations(choose_database(database_url, data_dir, os.environ), dry_run=dry_run))
    for migration in migrations:
        print(f"{'would apply' if dry_run else 'applied'} {migration.number:04d}_{migration.name}")
    if not migrations:
        say("Nothing to do: the database is at this version.")
