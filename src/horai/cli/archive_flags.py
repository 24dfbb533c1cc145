"""The flags of the archive."""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from horai.cli.errors import BadUsage, refuse_flag
from horai.cli.flags import duration, setting
from horai.core.settings import EngineSettings
from horai.time.durations import format_duration

ArchiveDir = Annotated[
    str | None,
    setting(
        "--archive-dir", about="Directory for old history as Parquet files; the same on every node.", metavar="DIR"
    ),
]
ArchiveAfter = Annotated[
    str, setting("--archive-after", about="Age at which a day of history is archived.", metavar="DURATION")
]

PACKAGE = "duckdb"


def with_archive(engine: EngineSettings, directory: str | None, after: str) -> EngineSettings:
    """Return the settings of the archive. Raises for the flag that is wrong, and if DuckDB is not installed."""
    age = duration("--archive-after", after)
    if not directory:
        return replace(engine, archive_after=age)
    if "://" in directory:
        refuse_flag("--archive-dir", "must be a directory: object storage is not supported, but can be mounted as one")
    if find_spec(PACKAGE) is None:
        raise BadUsage("The archive needs DuckDB, which is not installed.", "Install it: pip install 'horai[archive]'.")
    return replace(engine, archive_dir=str(Path(directory).absolute()), archive_after=age)


def archive_variables(engine: EngineSettings) -> dict[str, str]:
    """Return the variables by which another process uses the same archive."""
    if engine.archive_dir is None:
        return {}
    return {
        "HORAI_ARCHIVE_DIR": engine.archive_dir,
        "HORAI_ARCHIVE_AFTER": format_duration(engine.archive_after),
    }
