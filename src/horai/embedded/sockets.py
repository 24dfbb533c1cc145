"""The private directory of the unix socket, and the URL that leads there.

Its mode is the access control: every user that can enter it is trusted, and the server listens nowhere else.
"""

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from horai.embedded.account import Account
from horai.embedded.area import Area
from horai.embedded.errors import GIVE_OTHER_DIRECTORY, DirectoryNotOurs

SUPERUSER = "horai"
"""Administers the server and migrates. Its name is that of the schema, of which it owns every object."""
NODE_LOGIN = "horai_embedded"
"""The login of nodes, workers and users: no superuser. A server of the operator's own has logins of other names."""
DATABASE = "horai"
LONGEST_PATH = 90
"""Bytes. The limits of the kernels are 104 and 108, and some clients build longer names."""
SHORT_ROOT = Path("/tmp")  # noqa: S108 - sticky; our directory in it has mode 0700 and its owner is checked


def choose_directory(area: Area, port: int) -> Path:
    """Return the directory in the area, or a short one if its path is too long or has a comma.

    Clients read a comma as a separator of hosts.
    """
    if len(os.fsencode(_socket(area.sockets, port))) <= LONGEST_PATH and "," not in str(area.sockets):
        return area.sockets
    name = sha256(os.fsencode(area.root)).hexdigest()[:16]
    return SHORT_ROOT / f"horai-{name}"


def prepare_directory(directory: Path, account: Account, port: int) -> None:
    """Create the directory with mode 0700, owned by `account`, and remove the files of a dead server.

    Raises `DirectoryNotOurs` for a symlink or a directory of another user.
    """
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise _not_ours(directory) from error
    try:
        if os.fstat(descriptor).st_uid not in {account.uid, os.geteuid()}:
            raise _not_ours(directory)
        if account.is_other:
            os.fchown(descriptor, account.uid, account.gid)
        os.fchmod(descriptor, 0o700)
    finally:
        os.close(descriptor)
    socket = _socket(directory, port)
    for stale in (socket, socket.with_name(f"{socket.name}.lock")):
        # The lock file of a dead server would block the new one if another process has got its id.
        stale.unlink(missing_ok=True)


def forget_directory(directory: Path, area: Area) -> None:
    """Remove the directory if it is outside the area."""
    if directory != area.sockets:
        with suppress(OSError):
            directory.rmdir()


def url(directory: Path, port: int, login: str, database: str = DATABASE) -> str:
    """Return the URL in the form that asyncpg and libpq read."""
    return f"postgresql://{login}@/{database}?host={quote(str(directory))}&port={port}"


def _socket(directory: Path, port: int) -> Path:
    return directory / f".s.PGSQL.{port}"


def _not_ours(directory: Path) -> DirectoryNotOurs:
    return DirectoryNotOurs(
        f"{directory}, the directory of the database socket, is a symlink or belongs to another user.",
        f"Remove it. Or: {GIVE_OTHER_DIRECTORY} With a path under 60 bytes, the socket is inside it.",
    )
