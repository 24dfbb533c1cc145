"""Which database to work on: flag or argument first, then the environment, then a file it names, then the default."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from horai.core.errors import HoraiError
from horai.db.urls import plain_url


class BadLocation(HoraiError):
    """The environment names a database in a way that cannot be followed."""

    code = "SCH_500_PLACE"
    title = "No such database"


class NoDatabase(HoraiError):
    """No database was named, and none is running in the data directory."""

    code = "SCH_503_NO_DATABASE"
    status = 503
    title = "No database"


@dataclass(frozen=True, slots=True)
class DatabaseLocation:
    """The database to work on: that of a URL, or the embedded one of a directory (None: the default one)."""

    url: str | None = None
    data_dir: Path | None = None


def choose_database(url: str | None, data_dir: Path | None, environ: Mapping[str, str]) -> DatabaseLocation:
    """What is named first, `url` before `data_dir`; a URL that lies about in the environment never beats a directory named here."""
    if url is None and data_dir is None:
        url = secret("HORAI_DATABASE_URL", environ) or environ.get("DATABASE_URL") or None
        named = environ.get("HORAI_DATA_DIR")
        data_dir = Path(named) if named else None
    return DatabaseLocation(url and plain_url(url), data_dir)


def secret(name: str, environ: Mapping[str, str]) -> str | None:
    """The variable `name`, or what stands in the file that `name`_FILE names."""
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
