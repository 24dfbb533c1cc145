"""The flags of the archive."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from horai.cli.bucket_settings import bucket_of
from horai.cli.errors import BadUsage, refuse_flag
from horai.cli.flags import duration, setting
from horai.core.bucket import SCHEME
from horai.core.settings import EngineSettings
from horai.time.durations import format_duration

ArchiveDir = Annotated[
    str | None,
    setting(
        "--archive-dir",
        about="Directory or s3://bucket/prefix for old history as Parquet files; the same on every node.",
        metavar="DIR",
    ),
]
ArchiveAfter = Annotated[
    str, setting("--archive-after", about="Age at which a day of history is archived.", metavar="DURATION")
]
KeepArchive = Annotated[
    str | None,
    setting(
        "--keep-archive",
        about="Time for which archived days are kept; at least 90d. Without it, for ever.",
        metavar="DURATION",
    ),
]
ArchiveCache = Annotated[
    str | None, setting("--archive-cache", about="Local directory for files of the bucket.", metavar="DIR")
]
ArchiveCacheSize = Annotated[
    str,
    setting("--archive-cache-size", about="Most bytes of such files that a process keeps, as 500MB.", metavar="SIZE"),
]

PACKAGE = "duckdb"
SHORTEST_KEEP = timedelta(days=90)
_SIZE = re.compile(r"(\d{1,6})\s*(MB|GB)")


@dataclass(frozen=True, slots=True)
class ArchiveFlags:
    """The flags as given."""

    directory: str | None
    after: str = "14d"
    keep: str | None = None
    cache: str | None = None
    cache_size: str = "1GB"


def with_archive(engine: EngineSettings, given: ArchiveFlags, environ: Mapping[str, str]) -> EngineSettings:
    """Return the settings of the archive. Raises for the flag that is wrong, and if DuckDB is not installed."""
    engine = replace(
        engine,
        archive_after=duration("--archive-after", given.after),
        archive_keep=_keep(given.keep, engine.history_keep),
        archive_cache=str(Path(given.cache).absolute()) if given.cache else None,
        archive_cache_bytes=_bytes(given.cache_size),
    )
    if not given.directory:
        return engine
    is_bucket = given.directory.startswith(SCHEME)
    if "://" in given.directory and not is_bucket:
        refuse_flag("--archive-dir", "must be a directory, or a bucket such as s3://bucket/prefix")
    if find_spec(PACKAGE) is None:
        raise BadUsage("The archive needs DuckDB, which is not installed.", "Install it: pip install 'horai[archive]'.")
    if is_bucket:
        return replace(engine, archive_dir=given.directory, archive_bucket=bucket_of(given.directory, environ))
    return replace(engine, archive_dir=str(Path(given.directory).absolute()))


def _keep(text: str | None, history: timedelta) -> timedelta | None:
    if not text:
        return None
    kept = duration("--keep-archive", text)
    if kept < SHORTEST_KEEP:
        refuse_flag("--keep-archive", "must be at least 90d")
    if kept < history:
        refuse_flag("--keep-archive", "must not be shorter than --keep-history")
    return kept


def _bytes(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None or not int(match[1]):
        refuse_flag("--archive-cache-size", "must be a size such as 500MB or 2GB")
    return int(match[1]) * {"MB": 1024**2, "GB": 1024**3}[match[2]]


def archive_variables(engine: EngineSettings) -> dict[str, str]:
    """Return the variables by which another process uses the same archive. It inherits those of the bucket."""
    if engine.archive_dir is None:
        return {}
    variables = {
        "HORAI_ARCHIVE_DIR": engine.archive_dir,
        "HORAI_ARCHIVE_AFTER": format_duration(engine.archive_after),
        "HORAI_ARCHIVE_CACHE_SIZE": f"{engine.archive_cache_bytes // 1024**2}MB",
    }
    if engine.archive_keep is not None:
        variables["HORAI_KEEP_ARCHIVE"] = format_duration(engine.archive_keep)
    if engine.archive_cache is not None:
        variables["HORAI_ARCHIVE_CACHE"] = engine.archive_cache
    return variables
