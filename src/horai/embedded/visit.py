"""A database that runs, for as long as somebody needs it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from horai.db.database_location import DatabaseLocation, NoDatabase
from horai.embedded.errors import NotRunning
from horai.embedded.postmaster import url_of
from horai.embedded.settings import EmbeddedSettings, default_data_dir
from horai.embedded.supervisor import EmbeddedPostgres


def directory_of(place: DatabaseLocation) -> Path:
    """Where the embedded database of a place is."""
    return place.data_dir or default_data_dir()


def url_if_running(place: DatabaseLocation) -> str | None:
    """The URL of a place's database; None when it is an embedded one that does not run."""
    if place.url is not None:
        return place.url
    try:
        return url_of(directory_of(place))
    except NotRunning:
        return None


def require_url(place: DatabaseLocation) -> str:
    """Return the URL of a place's database; raise `NoDatabase` if it is an embedded one that does not run."""
    if (url := url_if_running(place)) is not None:
        return url
    raise NoDatabase(
        f"No database is named, and no `horai up` runs in {directory_of(place)}: set HORAI_DATABASE_URL, or start "
        "`horai up`."
    )


@asynccontextmanager
async def running(place: DatabaseLocation) -> AsyncGenerator[str]:
    """The URL of a place's database: an embedded one that does not run is started, and stopped after."""
    if (url := url_if_running(place)) is not None:
        yield url
        return
    postgres = EmbeddedPostgres(EmbeddedSettings(directory_of(place)))
    await postgres.start()
    try:
        yield postgres.url
    finally:
        await postgres.stop()
