"""Start a PostgreSQL on a copy of a cluster, and read what it holds."""

from datetime import timedelta
from pathlib import Path

import asyncpg

from horai.db import backups
from horai.db.migrate import newest_known, schema_version
from horai.db.pool import DatabaseUnreachable, Platform, opened
from horai.db.verify import verify
from horai.embedded.admin import SEARCH_PATH, admin_url
from horai.embedded.backup_manifest import DatabaseContent
from horai.embedded.errors import BackupFailed
from horai.embedded.settings import EmbeddedSettings
from horai.embedded.supervisor import EmbeddedPostgres

QUIET = {"autovacuum": "off", "min_wal_size": "32MB", "max_wal_size": "1GB"}
"""A copy is only read: PostgreSQL does no maintenance and keeps little WAL."""
EVER = timedelta(days=3650)
"""A time that no instance has waited. Findings about waiting depend on the clock, not on the copy."""
OF_THE_CLOCK = "every parked instance will be moved"
"""The title of the one question that reads the clock in another way."""


async def inspect(directory: Path) -> DatabaseContent:
    """Start a PostgreSQL in a data directory, read its content, and stop it cleanly.

    Raises `EmbeddedError` if it does not start, or if it cannot read its data.
    """
    postgres = EmbeddedPostgres(EmbeddedSettings(directory, shared_buffers="32MB", extra=QUIET))
    await postgres.start()
    try:
        async with opened(admin_url(postgres.url), "horai backup") as connection:
            await connection.execute(f"set search_path = {SEARCH_PATH}")
            return await _content(connection)
    except (asyncpg.PostgresError, DatabaseUnreachable) as error:
        raise BackupFailed(f"The copy of the database cannot be read: {error}.") from error
    finally:
        await postgres.stop()


async def _content(connection: Platform) -> DatabaseContent:
    schema = await schema_version(connection)
    cluster, postgresql = await backups.identity(connection)
    counts = await backups.count_rows(connection)
    return DatabaseContent(
        cluster, schema, postgresql, counts, await _violations(connection) if schema == newest_known() else None
    )


async def _violations(connection: Platform) -> dict[str, int]:
    findings = await verify(connection, EVER)
    return {
        f"{found.invariant}: {found.title}": found.violations
        for found in findings
        if found.violations and found.title != OF_THE_CLOCK
    }
