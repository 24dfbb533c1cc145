"""A backup of the embedded database by hand, and its restore."""

import logging
from datetime import UTC, datetime
from pathlib import Path

from horai.cli.database import opened_database
from horai.core.actor import ActorKind
from horai.db.database_location import DatabaseLocation
from horai.embedded.backup_manifest import MadeBackup
from horai.embedded.restore import restore_backup
from horai.embedded.visit import directory_of
from horai.features.audit.signing import key_file_in
from horai.logs import write_to_stderr
from horai.operations.backups import attempt_backup, record_backup
from horai.operations.keyring import encryption_key_in
from horai.operations.process_actor import process_actor


async def back_up(place: DatabaseLocation, into: Path, *, include_keys: bool) -> tuple[MadeBackup, list[Path]]:
    """Back up the embedded database and record it. Return the backup, and the key files that are not in it.

    A database that does not run is started, and stopped afterwards.
    """
    data_dir = directory_of(place).absolute()
    async with opened_database(place, may_create=False) as connection:
        keys = [path for path in (Path(encryption_key_in(data_dir)), Path(key_file_in(data_dir))) if path.exists()]
        attempt = await attempt_backup(data_dir, into, datetime.now(UTC), keys if include_keys else ())
        await record_backup(connection, process_actor(ActorKind.SYSTEM), attempt.run)
    if attempt.made is None:
        assert attempt.error is not None  # noqa: S101 - one of them is set
        raise attempt.error
    return attempt.made, [] if include_keys else keys


async def restore(path: Path, data_dir: Path) -> MadeBackup:
    """Restore a backup into a new data directory."""
    write_to_stderr(logging.WARNING)
    return await restore_backup(path, data_dir)
