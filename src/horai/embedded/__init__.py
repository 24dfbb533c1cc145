"""The embedded PostgreSQL: real PostgreSQL from a wheel, supervised by the Horai process that uses it.

    errors       what can go wrong, each with a way out
    settings     what the caller chooses, and the default place
    area         the files of one data directory
    lock         one living supervisor per data directory
    account      the user PostgreSQL runs as: never root
    binaries     where the wheel has them, or a copy that this user can run
    cluster      initdb, once; its version and owner
    sockets      the private directory of the unix socket, and the URL
    config       postgresql.conf and the command line
    server_log   what the server says
    postmaster   postmaster.pid: is it running, is it ours, stop it
    supervisor   EmbeddedPostgres: start, stop, watch

What happens when a part dies: the postmaster → `watch` starts it again; the supervisor by kill -9 → the postmaster goes
on, and the next start stops it before it starts its own; the machine → crash recovery, as fsync is on.
"""

from horai.embedded.errors import (
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
