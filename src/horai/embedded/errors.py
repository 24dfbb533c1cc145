"""What can go wrong with the embedded PostgreSQL.

    EmbeddedError
    ├── NotShipped          no binaries for this platform, or they do not run here
    ├── DirectoryInUse      another living Horai supervises this data directory
    ├── DirectoryNotOurs    the directory holds something else, or belongs to another user
    ├── OtherMajorVersion   the data was made by another PostgreSQL
    ├── Unreachable         PostgreSQL's user cannot enter the directory
    ├── StartFailed         initdb or the server gave up; the detail has its last words
    └── NotRunning          a URL was asked of a server that is down

All have one code: to a client of the API the database is away, the rest is for whoever starts Horai.
"""

from horai.core.errors import HoraiError

GIVE_URL = "Give the URL of a PostgreSQL of your own: --database-url postgresql://…"
GIVE_OTHER_DIRECTORY = "Give another --data-dir: a new or an empty directory."


class EmbeddedError(HoraiError):
    """The embedded PostgreSQL cannot do what was asked."""

    code = "SCH_503_EMBEDDED_DATABASE"
    status = 503
    title = "Embedded database unavailable"


class NotShipped(EmbeddedError):
    """No binaries for this platform, or they do not run here."""


class DirectoryInUse(EmbeddedError):
    """Another living Horai supervises this data directory."""


class DirectoryNotOurs(EmbeddedError):
    """The directory holds something else, or belongs to another user: nothing in it was touched."""


class OtherMajorVersion(EmbeddedError):
    """The data was made by another major version of PostgreSQL: nothing in it was touched."""


class Unreachable(EmbeddedError):
    """The user that PostgreSQL runs as cannot enter the directory."""


class DatabaseStartFailed(EmbeddedError):
    """PostgreSQL gave up before it was ready."""


class NotRunning(EmbeddedError):
    """No embedded PostgreSQL runs in this data directory."""
