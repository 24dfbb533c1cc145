"""The temporary directory of a drill.

It belongs to this user, and only directories below it belong to the user that PostgreSQL runs as: so root writes no
file where another user could place a symlink.
"""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from horai.embedded.account import Account, account_for
from horai.embedded.area import Area
from horai.embedded.binaries import binaries_for

ENDING = 2_000
"""Characters of each log that an error shows."""


@dataclass(frozen=True, slots=True)
class DrillHome:
    """The directory of one drill, the user of its PostgreSQL servers, and their binaries."""

    root: Path
    account: Account
    binaries: Path

    def private(self, name: str) -> Path:
        """Create a directory that only the user of PostgreSQL can enter."""
        made = self.root / name
        made.mkdir(mode=0o700)
        if self.account.is_other:
            os.chown(made, self.account.uid, self.account.gid)
        return made

    def log(self, name: str) -> Path:
        """Return the log file of a process."""
        return self.root / f"{name}.log"

    def last_lines(self, name: str) -> str:
        """Return the end of the log of a process."""
        log = self.log(name)
        return log.read_text(errors="replace")[-ENDING:] if log.exists() else ""


@asynccontextmanager
async def drill_home() -> AsyncGenerator[DrillHome]:
    """Create the directory, and remove it with all data at the end."""
    root = await asyncio.to_thread(_make_root)
    try:
        yield await asyncio.to_thread(_furnish, root)
    finally:
        await asyncio.to_thread(shutil.rmtree, root, ignore_errors=True)


def _make_root() -> Path:
    return Path(tempfile.mkdtemp(prefix="horai-drill-")).resolve()


def _furnish(root: Path) -> DrillHome:
    account = account_for()
    if account.is_other:
        root.chmod(0o711)
    return DrillHome(root, account, binaries_for(Area(root), account))
