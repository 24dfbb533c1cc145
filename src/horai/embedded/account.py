"""The user PostgreSQL runs as. It refuses root, so root lends it an unprivileged user that already exists."""

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
    """A user, and the way to run programs as it."""

    uid: int
    gid: int
    name: str

    @property
    def is_other(self) -> bool:
        """Whether it is not the user this process runs as."""
        return self.uid != os.geteuid()

    @property
    def is_listed(self) -> bool:
        """Whether the system knows a name for it; initdb insists."""
        try:
            pwd.getpwuid(self.uid)
        except KeyError:
            return False
        return True

    def run(self, command: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
        """Run to the end, output captured; a program that cannot even be executed is an exit code as well."""
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
        """Start in a session of its own, so that Ctrl-C at the terminal is for us alone."""
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
        """Whether it may go there. Tried, not computed: access lists and security modules have their say too."""
        return self.run(["/bin/sh", "-c", 'cd "$0"', directory]).returncode == 0


def account_for(*directories: Path) -> Account:
    """Ourselves; for root the first owner of these that is not root, else `postgres`, else `nobody`.

    So what belongs to a user goes on belonging to that user, and root trusts no directory of a third one.
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
        "PostgreSQL does not run as root, and there is neither a user postgres nor nobody to run it as.",
        f"Run Horai as an ordinary user. {GIVE_URL}",
    )


def _by_uid(uid: int, gid: int) -> Account:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return Account(uid, gid, f"#{uid}")
    return Account(uid, entry.pw_gid, entry.pw_name)


def _environment() -> dict[str, str]:
    """Nearly empty: what our environment holds, keys above all, is none of that user's business."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return {**kept, "LC_ALL": "C"}
