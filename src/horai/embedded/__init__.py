"""The embedded PostgreSQL: real PostgreSQL from a wheel, supervised by the Horai process that uses it.

    errors       the errors, each with a hint
    settings     the settings of the caller, and the default directory
    area         the files of one data directory
    lock         the lock that allows one live supervisor per data directory
    account      the user that PostgreSQL runs as: never root
    binaries     the binaries of the wheel, or a copy that this user can run
    cluster      the database cluster: initdb once, then checks of version and owner
    sockets      the private directory of the unix socket, and the URLs
    config       postgresql.conf, pg_hba.conf and the command line
    server_log   the log of the server
    postmaster   postmaster.pid: checks if the server runs and is ours, and stops it
    admin        the superuser, whose sessions migrate
    supervisor   EmbeddedPostgres: start, stop, watch
    visit        a running database for one task
    inspection   starts a server on a copy and reads its content
    backup       makes, checks and removes backups; backup_files and backup_manifest are their parts
    restore      makes a data directory of a backup

Recovery after a crash: if the postmaster dies, `watch` restarts it. If the supervisor dies by kill -9, the postmaster
goes on, and the next start stops it before it starts its own. If the machine fails, PostgreSQL runs crash recovery, as
fsync is on.
"""

from horai.embedded.errors import (
    BackupFailed,
    BackupRefused,
    DatabaseStartFailed,
    DirectoryInUse,
    DirectoryNotOurs,
    EmbeddedError,
    NotRunning,
    NotShipped,
    OtherMajorVersion,
    Unreachable,
)
from horai.embedded.postmaster import url_of
from horai.embedded.settings import EmbeddedSettings, default_data_dir
from horai.embedded.supervisor import EmbeddedPostgres

__all__ = [
    "BackupFailed",
    "BackupRefused",
    "DatabaseStartFailed",
    "DirectoryInUse",
    "DirectoryNotOurs",
    "EmbeddedError",
    "EmbeddedPostgres",
    "EmbeddedSettings",
    "NotRunning",
    "NotShipped",
    "OtherMajorVersion",
    "Unreachable",
    "default_data_dir",
    "url_of",
]
