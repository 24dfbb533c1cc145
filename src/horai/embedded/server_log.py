"""The log of the server: the current file and one older file."""

import os
import shutil
from pathlib import Path
from typing import IO

LARGEST = 16 * 1024 * 1024
LAST_LINES = 20
LAST_BYTES = 16 * 1024


def open_log(log: Path) -> IO[bytes]:
    """Open the log for appending, so that `rotate` can truncate it while the server runs."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(log, flags, 0o600), "ab")


def is_large(log: Path, largest: int = LARGEST) -> bool:
    """Return whether the log is larger than `largest` bytes and has to be rotated."""
    return log.exists() and log.stat().st_size > largest


def rotate(log: Path) -> None:
    """Copy the log over the older file and truncate it. A line written at that moment may be lost."""
    before = log.with_name(f"{log.name}.1")
    before.unlink(missing_ok=True)
    shutil.copy2(log, before)
    os.truncate(log, 0)


def last_words(log: Path, since: int) -> str:
    """Return the last `LAST_LINES` lines written after the offset `since`."""
    with log.open("rb") as text:
        end = text.seek(0, os.SEEK_END)
        text.seek(max(since, end - LAST_BYTES))
        lines = text.read().decode(errors="replace").splitlines()
    return "\n".join(lines[-LAST_LINES:])
