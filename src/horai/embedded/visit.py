"""A running database for the duration of one task."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from horai.db.database_location import DatabaseLocation, NoDatabase
from horai.embedded.errors import NotRunning
from horai.embedded.postmaster import url_of
from horai.embedded.settings import EmbeddedSettings, default_data_dir
from horai.embedded.supervisor import EmbeddedPostgres


def directory_of(place: DatabaseLocation) -> Path:
    """Return the data directory of the embedded database of a location."""
    return place.data_dir or default_data_dir()


def url_if_running(place: DatabaseLocation) -> str | None:
    """Return the URL of a location's database; None if it is an embedded one that does not run."""
    if place.url is not None:
        return place.url
    try:
        return url_of(directory_of(place))
    except NotRunning:
        return None


def require_url(place: DatabaseLocation) -> str:
    """Return the URL of a location's database; raise `NoDatabase` if it is an embedded one that does not run."""
    if (url := url_if_running(place)) is not None:
        return url
    raise NoDatabase(
        f"No database is named, and no `horai up` runs in {directory_of(place)}: set HORAI_DATABASE_URL, or start "
        "`horai up`."
    )


@asynccontextmanager
async def running(place: DatabaseLocation) -> AsyncGenerator[str]:
    """Yield the URL of a location's database.

    Starts an embedded database that does not run, and stops it afterwards.
    """
    if (url := url_if_running(place)) is not None:
        yield url
        return
    postgres = EmbeddedPostgres(EmbeddedSettings(directory_of(place)))
    await postgres.start()
    try:
        yield postgres.url
    finally:
        await postgres.stop()
