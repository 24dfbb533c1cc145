"""The supervisor of the embedded PostgreSQL: start, stop, watch."""

import asyncio
import subprocess
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

import asyncpg
import structlog

from horai.db.dial import FAILURES
from horai.db.isolation import make_login
from horai.db.pool import Platform
from horai.embedded import server_log, sockets
from horai.embedded.account import Account, account_for
from horai.embedded.admin import SEARCH_PATH
from horai.embedded.area import Area
from horai.embedded.binaries import binaries_for
from horai.embedded.cluster import check_cluster, ensure_cluster
from horai.embedded.config import server_command, write_config
from horai.embedded.errors import GIVE_OTHER_DIRECTORY, DatabaseStartFailed, EmbeddedError
from horai.embedded.lock import DirectoryLock
from horai.embedded.postmaster import LOOK_EVERY, read_pid_file, shut_down, stop_leftover
from horai.embedded.settings import EmbeddedSettings

WATCH_EVERY = 0.2
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 10.0
STEADY_AFTER = 30.0
"""Seconds. A server that dies earlier after its start counts as a failed start."""
ANSWER_WITHIN = 30.0

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
Result = TypeVar("Result")


def pause_before(restart: int) -> float:
    """Return the seconds to wait before restart number `restart` in a row (from 1): 0.1, 0.2, 0.4, … at most 10."""
    return min(FIRST_PAUSE * 2 ** min(restart - 1, 10), LONGEST_PAUSE)


@dataclass(frozen=True, slots=True)
class Installation:
    """The results of the first start that each restart reuses."""

    account: Account
    binaries: Path


class EmbeddedPostgres:
    """A PostgreSQL server that runs between `start` and `stop`, and is restarted while `watch` runs."""

    def __init__(self, settings: EmbeddedSettings) -> None:
        self._settings = settings
        self._area = Area.at(settings.data_dir)
        self._sockets = sockets.choose_directory(self._area, settings.port)
        self._lock = DirectoryLock(self._area.lock)
        self._turn = asyncio.Lock()
        self._installation: Installation | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._is_wanted = False
        self._ready_at = 0.0

    @property
    def url(self) -> str:
        """Return the URL of nodes for asyncpg and libpq, over the unix socket; it is the same at each start."""
        return sockets.url(self._sockets, self._settings.port, sockets.NODE_LOGIN)

    @property
    def log_path(self) -> Path:
        """Return the path of the server log."""
        return self._area.log

    @property
    def pid(self) -> int | None:
        """Return the process id of the postmaster, None while it does not run."""
        if self._process is None or self._process.poll() is not None:
            return None
        return self._process.pid

    async def start(self) -> None:
        """Start the server; return when it answers and has its database.

        After a failure, nothing runs and nothing is locked.
        """
        async with self._turn:
            if self._is_wanted and self.pid is not None:
                return
            try:
                await self._prepare_and_launch()
            except BaseException:
                self._is_wanted = False
                await self._end()
                raise
            self._is_wanted = True
            log.info("The embedded PostgreSQL is ready.", pid=self.pid, data_dir=str(self._area.root))

    async def stop(self) -> None:
        """Shut down fast and clean, and release the data directory."""
        self._is_wanted = False
        async with self._turn:
            await self._end()

    async def watch(self) -> None:
        """Restart the postmaster when it dies, until cancelled.

        The pause between restarts grows; there is no limit of tries.
        """
        restarts = 0
        while True:
            await asyncio.sleep(WATCH_EVERY)
            if not self._is_wanted:
                continue
            if self.pid is not None:
                if _now() - self._ready_at > STEADY_AFTER:
                    restarts = 0
                await self._rotate_log()
                continue
            restarts += 1
            pause = pause_before(restarts)
            exit_code = self._process.returncode if self._process else None
            log.warning("The embedded PostgreSQL is down.", exit_code=exit_code, restart=restarts, in_seconds=pause)
            await asyncio.sleep(pause)
            await self._restart()

    async def _restart(self) -> None:
        async with self._turn:
            if not self._is_wanted or self.pid is not None or self._installation is None:
                return
            try:
                # No initdb here: if the data is missing, an empty database must not replace it.
                check_cluster(self._area.cluster, self._installation.account)
                await self._launch(self._installation)
            except Exception as error:  # the watch continues after any error
                log.exception("The embedded PostgreSQL did not start again.", error=str(error))
                await self._end_process()
            else:
                log.info("The embedded PostgreSQL was started again.", pid=self.pid)

    async def _prepare_and_launch(self) -> None:
        try:
            self._installation = await _to_its_end(self._prepare)
            await self._launch(self._installation)
        except OSError as error:
            raise EmbeddedError(
                f"The embedded PostgreSQL cannot start in {self._area.root}: {error}.", GIVE_OTHER_DIRECTORY
            ) from error

    def _prepare(self) -> Installation:
        """Prepare the directory, its lock, the binaries and the cluster. Runs once per start, not per restart."""
        account = account_for(self._area.cluster, self._area.root)
        self._area.make(account)
        self._lock.acquire()
        binaries = binaries_for(self._area, account)
        ensure_cluster(self._area, binaries, account)
        return Installation(account, binaries)

    async def _launch(self, installation: Installation) -> None:
        settings, area = self._settings, self._area
        leftover = await stop_leftover(area.cluster, settings.stop_within)
        if leftover is not None:
            log.warning("Stopped a PostgreSQL whose Horai had died.", pid=leftover, data_dir=str(area.root))
        sockets.prepare_directory(self._sockets, installation.account, settings.port)
        write_config(area, settings)
        await self._rotate_log()
        command = server_command(installation.binaries, area, settings, self._sockets)
        with server_log.open_log(area.log) as output:
            begin = output.tell()
            # Not in a thread: a cancellation in between would leave an unknown process.
            self._process = installation.account.spawn(command, output)
        await self._until_ready(self._process, begin)
        await self._ensure_database()
        self._ready_at = _now()

    async def _until_ready(self, process: subprocess.Popen[bytes], begin: int) -> None:
        within = self._settings.start_within.total_seconds()
        try:
            async with asyncio.timeout(within):
                while not self._is_ready(process):
                    if process.poll() is not None:
                        raise self._failed(f"ended with exit code {process.returncode}", begin)
                    await asyncio.sleep(LOOK_EVERY)
        except TimeoutError as error:
            raise self._failed(f"was not ready within {within:g} s", begin) from error

    def _is_ready(self, process: subprocess.Popen[bytes]) -> bool:
        found = read_pid_file(self._area.cluster)
        return found is not None and found.pid == process.pid and found.is_ready

    def _failed(self, what: str, begin: int) -> DatabaseStartFailed:
        words = server_log.last_words(self._area.log, begin) or "(no output)"
        return DatabaseStartFailed(f"The embedded PostgreSQL {what}:\n{words}", f"The full log is {self._area.log}")

    async def _ensure_database(self) -> None:
        """Create the database and the login of nodes if they are missing. The queries also prove that the server answers."""
        try:
            async with self._administer("postgres") as connection:
                if not await connection.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", sockets.DATABASE):
                    await connection.execute(f"CREATE DATABASE {sockets.DATABASE}")
            async with self._administer(sockets.DATABASE) as connection:
                await make_login(connection, sockets.NODE_LOGIN)
        except FAILURES as error:
            raise DatabaseStartFailed(f"The embedded PostgreSQL started but does not answer: {error!r}") from error

    @asynccontextmanager
    async def _administer(self, database: str) -> AsyncGenerator[Platform]:
        connection = await asyncpg.connect(
            sockets.url(self._sockets, self._settings.port, sockets.SUPERUSER, database),
            timeout=ANSWER_WITHIN,
            command_timeout=ANSWER_WITHIN,
            server_settings={"application_name": "horai-supervisor", "search_path": SEARCH_PATH},
        )
        try:
            yield cast("Platform", connection)
        finally:
            await connection.close(timeout=ANSWER_WITHIN)

    async def _rotate_log(self) -> None:
        if server_log.is_large(self._area.log):
            await asyncio.to_thread(server_log.rotate, self._area.log)

    async def _end(self) -> None:
        await self._end_process()
        self._lock.release()

    async def _end_process(self) -> None:
        process = self._process
        if process is not None:
            await shut_down(process.pid, lambda: process.poll() is not None, self._settings.stop_within)
            sockets.forget_directory(self._sockets, self._area)
            self._process = None


def _now() -> float:
    """Return monotonic seconds, for durations only."""
    return asyncio.get_running_loop().time()


async def _to_its_end(work: Callable[[], Result]) -> Result:
    """Run the work in a thread.

    A cancellation waits for its end, so that no work continues after the caller has left.
    """
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        _ = task.exception()  # retrieved, so that asyncio does not log it; the cancellation is raised
        raise
