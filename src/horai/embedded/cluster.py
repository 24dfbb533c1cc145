"""The database cluster: created once by initdb, checked at each start."""

import os
import shutil
import tempfile
import time
from pathlib import Path

from horai.embedded.account import Account
from horai.embedded.area import Area
from horai.embedded.binaries import MAJOR
from horai.embedded.errors import (
    GIVE_OTHER_DIRECTORY,
    GIVE_URL,
    DatabaseStartFailed,
    DirectoryNotOurs,
    OtherMajorVersion,
)
from horai.embedded.sockets import SUPERUSER

INITDB_OPTIONS = (
    f"--username={SUPERUSER}",
    "--locale=C",
    "--encoding=UTF8",
    "--auth-local=trust",
    "--auth-host=reject",  # in case an operator starts it manually with a TCP port
    "--no-instructions",
)
REMOVAL_TRIES = 100
REMOVAL_PAUSE = 0.05


def ensure_cluster(area: Area, binaries: Path, account: Account) -> None:
    """Create the cluster if it is missing; otherwise check that `account` owns it and that it has our version.

    The new cluster is created in a temporary directory and renamed, so a crash leaves a complete cluster or none. The
    caller holds the lock of the area.
    """
    for unfinished in area.root.glob("pgdata.new-*"):
        _remove(unfinished)
    if area.cluster.exists():
        check_cluster(area.cluster, account)
        return
    fresh = Path(tempfile.mkdtemp(prefix="pgdata.new-", dir=area.root))
    try:
        _initdb(fresh, binaries, account)
        fresh.rename(area.cluster)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    _sync(area.root)


def check_cluster(cluster: Path, account: Account) -> None:
    """Raise if the directory belongs to another user, has another version, or is not a cluster."""
    if cluster.stat().st_uid != account.uid:
        raise DirectoryNotOurs(
            f"{cluster} belongs to the user id {cluster.stat().st_uid}, PostgreSQL would run as {account.name}.",
            f"Run Horai as its owner, or give it away: chown -R {account.name} '{cluster}'.",
        )
    try:
        made_by = (cluster / "PG_VERSION").read_text().strip()
    except FileNotFoundError as error:
        raise DirectoryNotOurs(f"{cluster} is not a PostgreSQL data directory.", GIVE_OTHER_DIRECTORY) from error
    if made_by != str(MAJOR):
        raise OtherMajorVersion(
            f"{cluster} was made by PostgreSQL {made_by}; this Horai carries PostgreSQL {MAJOR}.",
            f"Dump it with the Horai that made it (pg_dump of {made_by}) and restore into another --data-dir. {GIVE_URL}",
        )


def _initdb(directory: Path, binaries: Path, account: Account) -> None:
    if not account.is_listed:
        raise DatabaseStartFailed(
            f"PostgreSQL needs a name for the user id {account.uid}, and the system has none.",
            f"Add the user id to /etc/passwd of this container. {GIVE_URL}",
        )
    if account.is_other:
        os.chown(directory, account.uid, account.gid, follow_symlinks=False)
    made = account.run([binaries / "initdb", "-D", directory, *INITDB_OPTIONS])
    if made.returncode != 0:
        raise DatabaseStartFailed(f"initdb failed in {directory.parent}:\n{made.stdout.strip()}", GIVE_URL)


def _remove(unfinished: Path) -> None:
    """Remove the directory of a killed supervisor.

    Its initdb may still write there, and fails when its files are missing.
    """
    for _ in range(REMOVAL_TRIES):
        shutil.rmtree(unfinished, ignore_errors=True)
        if not unfinished.exists():
            return
        time.sleep(REMOVAL_PAUSE)


def _sync(directory: Path) -> None:
    """Make the rename survive a power cut."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
