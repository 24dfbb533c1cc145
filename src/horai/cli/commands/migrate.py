"""`horai migrate`: migrate a database to this version."""

import asyncio
import os
from typing import Annotated

import typer

from horai.cli.flags import DatabaseUrl, DataDir, flag, setting
from horai.cli.lazy import new_app
from horai.db.database_location import choose_database, secret

app = new_app()


@app.command()
def migrate(
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    dry_run: Annotated[bool, flag("--dry-run", about="Only print the migrations that would be applied.")] = False,
    plan: Annotated[
        bool, flag("--plan", about="Only print each statement, its lock, its table, and whether it is online.")
    ] = False,
    offline: Annotated[
        bool, flag("--offline", about="Apply migrations that are not online too. Every node must be stopped.")
    ] = False,
    admin_url: Annotated[
        str | None,
        typer.Option(
            help="The same database, as a role that can create roles: create those of row-level security, and grant them. HORAI_ADMIN_URL_FILE may name a file that holds it.",
            metavar="URL",
            envvar="HORAI_ADMIN_URL",
        ),
    ] = None,
    single_role: Annotated[
        bool, flag("--single-role", about="Use no row-level security: for a role that was granted no other roles.")
    ] = False,
    as_json: Annotated[bool, setting("--json", about="Print the plan or the migrations as JSON.")] = False,
) -> None:
    """Migrate a database to this version.

    Prints the applied migrations. Nodes may work meanwhile: a migration that would stop them for longer than a second is
    refused with the reason, and needs --offline. An embedded database that is not running is started, and stopped
    afterwards. A new database gets row-level security between its tenants, which needs the roles horai_api, horai_auth and
    horai_engine.
    """
    from horai.cli.database import apply_migrations, show_plan  # noqa: PLC0415
    from horai.cli.errors import BadUsage, CommandFailed  # noqa: PLC0415
    from horai.cli.migration_views import print_migrations, print_plan  # noqa: PLC0415
    from horai.db.isolation import Isolation  # noqa: PLC0415

    admin_url = admin_url or secret("HORAI_ADMIN_URL", os.environ)
    if single_role and admin_url is not None:
        raise CommandFailed("--single-role and --admin-url exclude each other.", "Give one of them.")
    if plan and (offline or single_role):
        raise BadUsage("--plan applies no migration.", "Leave out --offline and --single-role.")
    place = choose_database(database_url, data_dir, os.environ)
    if plan:
        print_plan(asyncio.run(show_plan(place)), as_json)
        return
    isolation = Isolation(single_role) if single_role or admin_url is not None else None
    applied = asyncio.run(
        apply_migrations(place, dry_run=dry_run, isolation=isolation, admin_url=admin_url, is_offline=offline)
    )
    print_migrations(applied, as_json, dry_run=dry_run)
