"""The flags of scheduled backups, and their settings."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from horai.cli.errors import BadUsage, refuse_flag
from horai.cli.flags import duration, setting
from horai.core.settings import BackupSchedule, EngineSettings
from horai.db.database_location import DatabaseLocation

SHORTEST = timedelta(minutes=1)
OWN_TOOLS = (
    "Back up your own PostgreSQL with pgBackRest or WAL-G: docs/guides/backup.md. These flags are for the embedded one."
)

BackupDir = Annotated[
    Path | None,
    setting("--backup-dir", about="Back up the embedded database into this directory, on a schedule.", metavar="DIR"),
]
BackupEvery = Annotated[
    str | None, setting("--backup-every", about="Interval of these backups (24h).", metavar="DURATION")
]
BackupKeep = Annotated[
    int | None, setting("--backup-keep", about="Number of these backups that are kept (7).", limits=(1, 1000))
]


def with_backups(
    engine: EngineSettings, place: DatabaseLocation, data_dir: Path, flags: tuple[Path | None, str | None, int | None]
) -> EngineSettings:
    """Return the settings with the schedule of backups. Raises for a flag that is wrong, and for a given database."""
    directory, every, keep = flags
    if flags == (None, None, None):
        return engine
    if place.url is not None:
        raise BadUsage("--backup-dir, --backup-every and --backup-keep need the embedded database.", OWN_TOOLS)
    if directory is None:
        refuse_flag("--backup-dir", "is missing: name the directory of the backups")
    schedule = BackupSchedule(data_dir.absolute(), directory.absolute())
    if every is not None:
        schedule = replace(schedule, every=duration("--backup-every", every))
    if schedule.every < SHORTEST:
        refuse_flag("--backup-every", "must be 1m or longer")
    if keep is not None:
        schedule = replace(schedule, keep=keep)
    return replace(engine, backups=schedule)
