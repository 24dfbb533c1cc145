"""`horai migrate`: migrate a database to this version."""

import asyncio
import os
from typing import Annotated

import typer

from horai.cli.flags import DatabaseUrl, DataDir, flag
from horai.cli.lazy import new_app
from horai.db.database_location import choose_database

app = new_app()


@app.command()
def migrate(
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    dry_run: Annotated[bool, flag("--dry-run", about="Only print the migrations that would be applied.")] = False,
    admin_url: Annotated[
        str | None,
        typer.Option(
            help="The same database, as a role that can create roles: create those of row-level security, and grant them.",
            metavar="URL",
            envvar="HORAI_ADMIN_URL",
        ),
    ] = None,
    single_role: Annotated[
        bool, flag("--single-role", about="Use no row-level security: for a role that was granted no other roles.")
    ] = False,
) -> None:
    """Migrate a database to this version.

    Prints the applied migrations. An embedded database that is not running is started, and stopped afterwards. A new
    database gets row-level security between its tenants, which needs the roles horai_api, horai_auth and horai_engine.
    """
    from horai.cli.database import apply_migrations  # noqa: PLC0415
    from horai.cli.errors import CommandFailed  # noqa: PLC0415
    from horai.cli.show import say  # noqa: PLC0415
    from horai.db.isolation import Isolation  # noqa: PLC0415

    if single_role and admin_url is not None:
        raise CommandFailed("--single-role and --admin-url exclude each other.", "Give one of them.")
    isolation = Isolation(single_role) if single_role or admin_url is not None else None
    place = choose_database(database_url, data_dir, os.environ)
    migrations = asyncio.run(apply_migrations(place, dry_run=dry_run, isolation=isolation, admin_url=admin_url))
    for migration in migrations:
        print(f"{'would apply' if dry_run else 'applied'} {migration.number:04d}_{migration.name}")
    if not migrations:
        say("Nothing to do: the database is at this version.")
