"""The flags of read replicas, and their settings."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated

import typer

from horai.cli.errors import BadUsage, refuse_flag
from horai.cli.flags import duration, setting
from horai.core.settings import ReplicaSettings
from horai.db.database_location import secret
from horai.db.urls import plain_url

SHORTEST = timedelta(milliseconds=100)
VARIABLE = "HORAI_READ_DATABASE_URL"

# typer does not read the variables: `chosen_replica` reads them, and the file that one of them names.
ReadDatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--read-database-url",
        help="Streaming standby that answers lists and the console; the primary does the rest. [env var: HORAI_READ_DATABASE_URL, HORAI_READ_DATABASE_URL_FILE]",
        metavar="URL",
    ),
]
ReadLag = Annotated[
    str,
    setting("--read-lag", about="Longest lag with which the standby is used; at least 100ms.", metavar="DURATION"),
]


def chosen_replica(url: str | None, lag: str, environ: Mapping[str, str]) -> ReplicaSettings | None:
    """Return the settings of the standby; None if there is no URL. Raises for a flag or variable that is wrong."""
    accepted = duration("--read-lag", lag)
    if accepted < SHORTEST:
        refuse_flag("--read-lag", "must be at least 100ms")
    given = url or secret(VARIABLE, environ)
    if given is None:
        return None
    chosen = plain_url(given)
    if not chosen.startswith("postgresql://"):
        if url is not None:
            refuse_flag("--read-database-url", "must begin with postgresql://")
        raise BadUsage(
            f"{VARIABLE}: must begin with postgresql://.", f"Write {VARIABLE}=postgresql://user@host:5432/name."
        )
    return ReplicaSettings(chosen, accepted)
