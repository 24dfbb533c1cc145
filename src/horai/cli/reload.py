"""`--reload`: one process, started again whenever the code under a directory changes."""

import asyncio
import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import structlog

from horai.cli.processes import Command, ask_to_stop, begin, like_this_one
from horai.cli.serve import SLACK, Service

log = structlog.get_logger(__name__)

LOOK_EVERY = 0.5
NOT_OURS = frozenset({"__pycache__", "node_modules", "site-packages"})

Sources = Mapping[str, int]
"""When each file was last changed, in nanoseconds, by its path."""


def sources_under(root: Path) -> Sources:
    """Every Python file there but those of hidden directories, virtual environments and installed packages."""
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
    """None for one that went away while we looked."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return None


def differing(before: Sources, now: Sources) -> list[str]:
    """The files that were made, changed or removed."""
    return sorted(file for file in {*before, *now} if before.get(file) != now.get(file))


def following(name: str, grace: timedelta, root: Path) -> Service:
    """A service of our own command line that follows the code under `root`."""
    command = like_this_one(name)
    return lambda _stop, _ready: keep_reloading(command, grace, root)


async def keep_reloading(command: Command, grace: timedelta, root: Path) -> NoReturn:
    """Runs the command on the newest code until cancelled. One that ends by itself is left alone until the code changes."""
    while True:
        seen = await asyncio.to_thread(sources_under, root)
        # Compiled files are told apart by whole seconds: two changes within one would run the older code.
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
        log.info("The code has changed: starting again.", files=len(names), first=names[0])


async def _change(seen: Sources, root: Path) -> list[str]:
    """Returns what has changed, once something has."""
    while True:
        await asyncio.sleep(LOOK_EVERY)
        if changed := differing(seen, await asyncio.to_thread(sources_under, root)):
            return changed


def _say_that_it_waits(ended: "asyncio.Task[int]") -> None:
    if not ended.cancelled():
        log.warning("The process has ended: waiting for the code to change.", code=ended.result())
