"""The user that PostgreSQL runs as. PostgreSQL refuses root, so root runs it as an existing unprivileged user."""

import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from horai.embedded.errors import GIVE_URL, Unreachable

PREFERRED = ("postgres", "nobody")
NOT_EXECUTABLE = 126


@dataclass(frozen=True, slots=True)
class Account:
    """A user, and methods that run programs as that user."""

    uid: int
    gid: int
    name: str

    @property
    def is_other(self) -> bool:
        """Return whether it is not the user of this process."""
        return self.uid != os.geteuid()

    @property
    def is_listed(self) -> bool:
        """Return whether the system has a name for the user id; initdb requires one."""
        try:
            pwd.getpwuid(self.uid)
        except KeyError:
            return False
        return True

    def run(self, command: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
        """Run a program to its end and capture its output. If it cannot be executed, return exit code 126."""
        try:
            return subprocess.run(  # noqa: S603 - the commands are ours
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                check=False,
                cwd="/",
                env=_environment(),
                start_new_session=True,
                user=self.uid if self.is_other else None,
                group=self.gid if self.is_other else None,
                extra_groups=[] if self.is_other else None,
            )
        except OSError as error:
            return subprocess.CompletedProcess(command, NOT_EXECUTABLE, str(error))

    def spawn(self, command: Sequence[str | Path], output: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start a program in its own session, so that Ctrl-C in the terminal reaches only Horai."""
        return subprocess.Popen(  # noqa: S603 - the commands are ours
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd="/",
            env=_environment(),
            start_new_session=True,
            user=self.uid if self.is_other else None,
            group=self.gid if self.is_other else None,
            extra_groups=[] if self.is_other else None,
        )

    def can_enter(self, directory: Path) -> bool:
        """Return whether the user can enter the directory. Tries it, because ACLs and security modules also decide."""
        return self.run(["/bin/sh", "-c", 'cd "$0"', directory]).returncode == 0


def account_for(*directories: Path) -> Account:
    """Return the user to run PostgreSQL as: the current user, unless that is root.

    For root, it is the first owner of `directories` that is not root, otherwise the first user of `PREFERRED` that
    exists. So a user's data keeps its owner, and root trusts no directory of a third user.
    """
    if os.geteuid() != 0:
        return _by_uid(os.geteuid(), os.getegid())
    for directory in directories:
        if directory.exists() and (owner := directory.stat()).st_uid != 0:
            return _by_uid(owner.st_uid, owner.st_gid)
    for name in PREFERRED:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid, name)
    raise Unreachable(
        "PostgreSQL does not run as root, and neither the user postgres nor the user nobody exists.",
        f"Run Horai as an ordinary user. {GIVE_URL}",
    )


def _by_uid(uid: int, gid: int) -> Account:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return Account(uid, gid, f"#{uid}")
    return Account(uid, entry.pw_gid, entry.pw_name)


def _environment() -> dict[str, str]:
    """Return a nearly empty environment: ours may contain secrets that the other user must not see."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return {**kept, "LC_ALL": "C"}
