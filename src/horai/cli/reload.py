"""`--reload`: one process that restarts when code under a directory changes."""

import asyncio
import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import structlog

from horai.cli.processes import ChildCommand, ask_to_stop, begin, like_this_one
from horai.cli.serve import SLACK, Service

log = structlog.get_logger(__name__)

LOOK_EVERY = 0.5
NOT_OURS = frozenset({"__pycache__", "node_modules", "site-packages"})

Sources = Mapping[str, int]
"""The time of the last change of each file, in nanoseconds, by its path."""


def sources_under(root: Path) -> Sources:
    """Find every Python file, except in hidden directories, virtual environments and installed packages."""
    found: dict[str, int] = {}
    for place, directories, files in os.walk(root):
        directories[:] = [name for name in directories if name[0] != "." and name not in NOT_OURS]
        if "pyvenv.cfg" in files:
            directories.clear()
            continue
        for name in files:
            if name.endswith(".py") and (changed := _changed_at(Path(place, name))) is not None:
                found[str(Path(place, name))] = changed
    return found


def _changed_at(file: Path) -> int | None:
    """Return the time of the last change, or None if the file was removed meanwhile."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return None


def differing(before: Sources, now: Sources) -> list[str]:
    """Return the files that were added, changed or removed."""
    return sorted(file for file in {*before, *now} if before.get(file) != now.get(file))


def following(name: str, grace: timedelta, root: Path) -> Service:
    """Return a service that runs our command line again after each change under `root`."""
    command = like_this_one(name)
    return lambda _stop, _ready: keep_reloading(command, grace, root)


async def keep_reloading(command: ChildCommand, grace: timedelta, root: Path) -> NoReturn:
    """Run the command on the newest code until cancelled. If it ends by itself, wait for the code to change."""
    while True:
        seen = await asyncio.to_thread(sources_under, root)
        # Python compares compiled files by whole seconds: after two changes in one second the older code would run.
        process = await begin(command, PYTHONDONTWRITEBYTECODE="1")
        ended = asyncio.create_task(process.wait())
        ended.add_done_callback(_say_that_it_waits)
        try:
            changed = await _change(seen, root)
        finally:
            ended.remove_done_callback(_say_that_it_waits)
            ask_to_stop(process)
            if not (await asyncio.wait({ended}, timeout=(grace + SLACK).total_seconds()))[0]:
                log.warning("The process did not stop in time.", pid=process.pid)
                process.kill()
                await ended
        names = [str(Path(file).relative_to(root)) for file in changed]
        log.info("The code has changed: restarting.", files=len(names), first=names[0])


async def _change(seen: Sources, root: Path) -> list[str]:
    """Wait for a change and return the changed files."""
    while True:
        await asyncio.sleep(LOOK_EVERY)
        if changed := differing(seen, await asyncio.to_thread(sources_under, root)):
            return changed


def _say_that_it_waits(ended: "asyncio.Task[int]") -> None:
    if not ended.cancelled():
        log.warning("The process has ended: waiting for the code to change.", code=ended.result())
