"""The choice of the database: flag or argument first, then the environment, then a file it names, then the default."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from horai.core.errors import HoraiError
from horai.db.urls import plain_url


class BadLocation(HoraiError):
    """The environment names a file for the database URL that is empty or cannot be read."""

    code = "SCH_500_PLACE"
    title = "No such database"


class NoDatabase(HoraiError):
    """No database was named, and none is running in the data directory."""

    code = "SCH_503_NO_DATABASE"
    status = 503
    title = "No database"


@dataclass(frozen=True, slots=True)
class DatabaseLocation:
    """A database: the one of a URL, or the embedded one of a directory (None: the default directory)."""

    url: str | None = None
    data_dir: Path | None = None


def choose_database(url: str | None, data_dir: Path | None, environ: Mapping[str, str]) -> DatabaseLocation:
    """Return the location of the database: `url`, then `data_dir`, then the environment.

    A URL in the environment never overrides an explicit `data_dir`.
    """
    if url is None and data_dir is None:
        url = secret("HORAI_DATABASE_URL", environ) or environ.get("DATABASE_URL") or None
        named = environ.get("HORAI_DATA_DIR")
        data_dir = Path(named) if named else None
    return DatabaseLocation(url and plain_url(url), data_dir)


def secret(name: str, environ: Mapping[str, str]) -> str | None:
    """Return the variable `name`, or the content of the file that the variable `name`_FILE names.

    Raises `BadLocation` if that file is empty or cannot be read.
    """
    if value := environ.get(name):
        return value
    path = environ.get(f"{name}_FILE")
    if not path:
        return None
    try:
        value = Path(path).read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        raise BadLocation(
            f"{name}_FILE: {path} cannot be read: {getattr(error, 'strerror', None) or error}."
        ) from error
    if not value:
        raise BadLocation(f"{name}_FILE: {path} is empty.")
    return value
