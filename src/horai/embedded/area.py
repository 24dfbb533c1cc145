"""The files of one data directory.

    <data_dir>/           ours: 0700, or 0711 and owned by root if PostgreSQL runs as another user
        horai.lock        locked by the live supervisor; marks the directory as Horai's
        postgresql.conf   written at each start
        pg_hba.conf       written at each start
        server.log
        binaries-…/       a copy, only if PostgreSQL's user cannot run the binaries of the wheel
        pgdata/           0700, owned by PostgreSQL's user
        socket/           0700, owned by PostgreSQL's user

Root never opens an existing file for writing where the unprivileged user may have placed a symlink: it removes the file
and creates a new one.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from horai.embedded.account import Account
from horai.embedded.errors import GIVE_OTHER_DIRECTORY, DirectoryNotOurs, Unreachable

HARMLESS = {"lost+found"}  # a new volume contains it


@dataclass(frozen=True, slots=True)
class Area:
    """The paths of one embedded server. `root` is absolute and has no symlinks."""

    root: Path

    @classmethod
    def at(cls, data_dir: Path) -> "Area":
        """Return the area of a data directory, which need not exist."""
        if "\n" in str(data_dir):
            raise DirectoryNotOurs(
                f"The data directory {str(data_dir)!r} has a line break in its name: PostgreSQL cannot use it.",
                GIVE_OTHER_DIRECTORY,
            )
        return cls(data_dir.resolve())

    @property
    def lock(self) -> Path:
        return self.root / "horai.lock"

    @property
    def config(self) -> Path:
        return self.root / "postgresql.conf"

    @property
    def access(self) -> Path:
        return self.root / "pg_hba.conf"

    @property
    def log(self) -> Path:
        return self.root / "server.log"

    @property
    def cluster(self) -> Path:
        return self.root / "pgdata"

    @property
    def sockets(self) -> Path:
        return self.root / "socket"

    def make(self, account: Account) -> None:
        """Create the directory if it is missing; refuse one that is not ours or that `account` cannot enter."""
        missing = [path for path in (self.root, *self.root.parents) if not path.exists()]
        self._refuse_what_cannot_be_entered(account, missing[-1].parent if missing else self.root)
        for path in reversed(missing):
            path.mkdir(exist_ok=True)
            # Only directories that we created; with chmod, because root's umask may be 077.
            path.chmod(0o711 if account.is_other else 0o700)
        self._refuse_what_others_can_change(account)
        self._refuse_what_is_not_ours()

    def _refuse_what_cannot_be_entered(self, account: Account, directory: Path) -> None:
        if not directory.is_dir():
            raise DirectoryNotOurs(f"{directory} is not a directory.", GIVE_OTHER_DIRECTORY)
        if not account.is_other or account.can_enter(directory):
            return
        path_down = [*reversed(directory.parents), directory]
        closed = next((path for path in path_down if not account.can_enter(path)), directory)
        raise Unreachable(
            f"PostgreSQL does not run as root, and the user {account.name} it would run as cannot enter {closed}.",
            f"Give a --data-dir that {account.name} can enter, such as /var/lib/horai, or run Horai as an ordinary user.",
        )

    def _refuse_what_others_can_change(self, account: Account) -> None:
        """Refuse a directory that another user could write to, and so replace configuration or data.

        Our group may write.
        """
        found = self.root.stat()
        if found.st_uid not in {0, os.geteuid(), account.uid}:
            raise DirectoryNotOurs(f"{self.root} belongs to another user.", GIVE_OTHER_DIRECTORY)
        is_shared = found.st_mode & 0o002 or (found.st_mode & 0o020 and found.st_gid not in {os.getegid(), account.gid})
        if is_shared:
            raise DirectoryNotOurs(
                f"Other users can write to {self.root}.", f"Run `chmod go-w {self.root}`, or give another --data-dir."
            )

    def _refuse_what_is_not_ours(self) -> None:
        try:
            names = set(os.listdir(self.root)) - HARMLESS  # noqa: PTH208 - only the names are needed
        except PermissionError as error:
            raise DirectoryNotOurs(f"{self.root} belongs to another user.", GIVE_OTHER_DIRECTORY) from error
        if not names or self.lock.name in names:
            return
        if "PG_VERSION" in names:
            raise DirectoryNotOurs(
                f"{self.root} is the data directory of a PostgreSQL that Horai did not make.",
                "Start that server yourself and give its --database-url, or give another --data-dir.",
            )
        raise DirectoryNotOurs(f"{self.root} is not empty and was not made by Horai.", GIVE_OTHER_DIRECTORY)
