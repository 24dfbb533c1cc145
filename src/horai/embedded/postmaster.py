"""postmaster.pid: functions that check whether a server runs in a data directory, and that stop it."""

import asyncio
import itertools
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from horai.embedded import sockets
from horai.embedded.area import Area
from horai.embedded.errors import DirectoryNotOurs, EmbeddedError, NotRunning

LOOK_EVERY = 0.02
LOOKS_PER_SIGNAL = 50
IMMEDIATE_WITHIN = timedelta(seconds=10)
PROC = Path("/proc/self")


@dataclass(frozen=True, slots=True)
class PidFile:
    """The content of postmaster.pid. The parts after `pid` appear while the server starts."""

    pid: int
    port: int | None
    socket_directory: Path | None
    is_ready: bool


def read_pid_file(cluster: Path) -> PidFile | None:
    """Return the content of postmaster.pid, None if it is missing or was not written by a postmaster."""
    try:
        lines = (cluster / "postmaster.pid").read_text(errors="surrogateescape").split("\n")
    except FileNotFoundError:
        return None
    lines += [""] * (8 - len(lines))
    if not lines[0].isdigit():
        return None
    return PidFile(
        pid=int(lines[0]),
        port=int(lines[3]) if lines[3].isdigit() else None,
        socket_directory=Path(lines[4]) if lines[4] else None,
        is_ready=lines[7].strip() == "ready",
    )


def is_postmaster_of(pid: int, cluster: Path) -> bool:
    """Return whether the process runs and is a postgres of this cluster: another process may have got the same id."""
    if PROC.exists():
        process = PROC.with_name(str(pid))
        try:
            # The working directory of every postgres is its data directory; a zombie has none.
            return (process / "comm").read_text().strip() == "postgres" and (process / "cwd").samefile(cluster)
        except OSError:
            return False
    command = ["ps", "-ww", "-o", "command=", "-p", str(pid)]
    shown = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)  # noqa: S603
    return f"postgres -D {cluster}" in shown.stdout


async def stop_leftover(cluster: Path, within: timedelta) -> int | None:
    """Stop a postmaster whose supervisor died, and return its process id. The caller holds the lock of the area.

    A postmaster.pid whose process is gone, or whose id now belongs to another process, is no obstacle.
    """
    found = await asyncio.to_thread(read_pid_file, cluster)
    if found is None:
        return None
    if not await asyncio.to_thread(is_postmaster_of, found.pid, cluster):
        _mark_as_stale(cluster / "postmaster.pid")
        return None
    await shut_down(found.pid, lambda: not is_postmaster_of(found.pid, cluster), within)
    return found.pid


def _mark_as_stale(pid_file: Path) -> None:
    """Replace the process id of the dead postmaster, which another process may have got, with our own.

    PostgreSQL treats the id of its parent as stale, and then still checks whether a backend of the old server runs.
    Removing the file instead would remove that last check.
    """
    owner = pid_file.lstat()
    rest = pid_file.read_text(errors="surrogateescape").partition("\n")[2]
    pid_file.unlink()
    with pid_file.open("x", errors="surrogateescape") as fresh:
        if os.geteuid() == 0:
            os.fchown(fresh.fileno(), owner.st_uid, owner.st_gid)
        os.fchmod(fresh.fileno(), 0o600)
        fresh.write(f"{os.getpid()}\n{rest}")


async def shut_down(pid: int, is_gone: Callable[[], bool], within: timedelta) -> None:
    """Shut down fast: disconnect clients and write a checkpoint.

    After `within`, shut down immediately, which is also safe.
    """
    for how, patience in ((signal.SIGINT, within), (signal.SIGQUIT, IMMEDIATE_WITHIN)):
        with suppress(TimeoutError):
            async with asyncio.timeout(patience.total_seconds()):
                return await _signal_until(pid, how, is_gone)
    raise EmbeddedError(f"PostgreSQL (process {pid}) does not stop.", f"End it yourself: kill -9 {pid}")


async def _signal_until(pid: int, how: signal.Signals, is_gone: Callable[[], bool]) -> None:
    """Send the signal every second until the process is gone.

    If Horai runs in the background, a server that has just started ignores the first signal.
    """
    for look in itertools.count():
        if is_gone():
            return
        if look % LOOKS_PER_SIGNAL == 0:
            with suppress(ProcessLookupError):
                os.kill(pid, how)
        await asyncio.sleep(LOOK_EVERY)


def url_of(data_dir: Path) -> str:
    """Return the URL of nodes of the embedded server that runs in this data directory. Does not start it."""
    area = Area.at(data_dir)
    try:
        found = read_pid_file(area.cluster)
    except PermissionError as error:
        raise DirectoryNotOurs(f"{area.root} belongs to another user.", "Ask as that user, or as root.") from error
    is_up = found is not None and found.is_ready and is_postmaster_of(found.pid, area.cluster)
    if not is_up or found is None or found.port is None or found.socket_directory is None:
        raise NotRunning(
            f"No embedded PostgreSQL runs in {area.root}.", "Start Horai with this --data-dir first, then ask again."
        )
    return sockets.url(found.socket_directory, found.port, sockets.NODE_LOGIN)
