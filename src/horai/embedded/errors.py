"""The errors of the embedded PostgreSQL.

    EmbeddedError
    ├── NotShipped           the extra `embedded` is not installed, or its binaries do not run here
    ├── DirectoryInUse       another running Horai supervises this data directory
    ├── DirectoryNotOurs     the directory contains something else, or belongs to another user
    ├── OtherMajorVersion    the data was created by another major version of PostgreSQL
    ├── Unreachable          PostgreSQL's user cannot enter the directory
    ├── DatabaseStartFailed  initdb or the server failed; the detail has the last lines of the log
    ├── NotRunning           a URL was requested, but the server does not run
    ├── BackupRefused        a backup or a restore was not begun: its directories do not allow it
    └── BackupFailed         a backup or a restore was given up; nothing of it was kept

All have one code: for a client of the API, the database is unavailable; the details are for the operator.
"""

from horai.core.errors import HoraiError

GIVE_URL = "Give the URL of a PostgreSQL of your own: --database-url postgresql://…"
INSTALL_IT = "Install it on Linux or macOS: pip install 'horai[embedded]'."
GIVE_OTHER_DIRECTORY = "Give another --data-dir: a new or an empty directory."


class EmbeddedError(HoraiError):
    """An operation of the embedded PostgreSQL failed."""

    code = "SCH_503_EMBEDDED_DATABASE"
    status = 503
    title = "Embedded database unavailable"


class NotShipped(EmbeddedError):
    """The extra `embedded` is not installed, or its binaries do not run here."""


class DirectoryInUse(EmbeddedError):
    """Another running Horai supervises this data directory."""


class DirectoryNotOurs(EmbeddedError):
    """The directory contains something else, or belongs to another user. Nothing in it was changed."""


class OtherMajorVersion(EmbeddedError):
    """The data was created by another major version of PostgreSQL. Nothing in it was changed."""


class Unreachable(EmbeddedError):
    """The user that PostgreSQL runs as cannot enter the directory."""


class DatabaseStartFailed(EmbeddedError):
    """initdb or the PostgreSQL server failed before the server was ready."""


class NotRunning(EmbeddedError):
    """No embedded PostgreSQL runs in this data directory."""


class BackupRefused(EmbeddedError):
    """A backup or a restore was not begun, because its directories do not allow it. Nothing was changed."""


class BackupFailed(EmbeddedError):
    """A backup or a restore was given up. Nothing of it was kept."""
