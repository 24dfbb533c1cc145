"""Where tests keep their files: in memory where there is room, as most of a small test's time went into waiting for the disk.

Nothing that a test proves needs the disk: what is killed is a process, never the machine, and a process that dies leaves
its files in memory as it leaves them on a disk.
"""

import os
import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
DISK = Path("/tmp")  # with a short name, unlike TMPDIR of some systems: a socket's path has little room
ROOM = 2 * 2**30
"""Bytes for each test process, with all its servers."""


def root_of_files() -> Path:
    """Return a directory that every user may enter."""
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    is_there = MEMORY.is_dir() and os.access(MEMORY, os.W_OK | os.X_OK)
    return MEMORY if is_there and shutil.disk_usage(MEMORY).free >= ROOM * processes else DISK


def keep_files_in_memory() -> None:
    """For this process and those it starts."""
    tempfile.tempdir = os.environ["TMPDIR"] = str(root_of_files())
