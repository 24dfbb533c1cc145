"""A primary and its streaming standby on Unix sockets. The drill promotes the standby, as a cluster manager would."""

import asyncio
import signal
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import asyncpg

from horai.cli.drills.home import DrillHome
from horai.cli.errors import CommandFailed
from horai.db.isolation import make_login
from horai.db.migrate import migrate
from horai.db.pool import GONE, Platform, connect
from horai.embedded.cluster import INITDB_OPTIONS
from horai.embedded.sockets import DATABASE, SUPERUSER, url

NODE = "horai_drill"
"""The login of the nodes: as on a server of an operator, it owns nothing."""
FIRST, SECOND = "first", "second"
PORTS = {FIRST: 5432, SECOND: 5433}
"""Only parts of the names of the sockets."""
SETTINGS = {
    "listen_addresses": "",
    "max_connections": "120",
    "shared_buffers": "32MB",
    "wal_keep_size": "256MB",
    "hot_standby": "on",
    "unix_socket_permissions": "0700",
    "timezone": "UTC",
}
START_WITHIN = STOP_WITHIN = CATCH_UP_WITHIN = 60.0
LOOK_EVERY = 0.05


@dataclass(slots=True)
class DrillServer:
    """One PostgreSQL of a pair."""

    name: str
    home: DrillHome
    data: Path
    sockets: Path
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def admin_url(self) -> str:
        """Return the URL of the superuser."""
        return url(self.sockets, PORTS[self.name], SUPERUSER)

    async def start(self, **settings: str) -> None:
        """Start it, and return when it answers. A start that meets the last processes of a killed server is repeated."""
        command: list[str | Path] = [self.home.binaries / "postgres", "-D", self.data]
        fixed = {"unix_socket_directories": str(self.sockets), "port": str(PORTS[self.name])}
        for name, value in {**SETTINGS, **fixed, **settings}.items():
            command += ["-c", f"{name}={value}"]

        async def answers() -> bool:
            if self.process is None or self.process.poll() is not None:
                with self.home.log(self.name).open("ab") as log:
                    self.process = self.home.account.spawn(command, log)
            with suppress(asyncpg.PostgresError, *GONE):
                await (await connect(url(self.sockets, PORTS[self.name], SUPERUSER, "postgres"), "horai drill")).close()
                return True
            return False

        try:
            await until(answers, START_WITHIN, f"PostgreSQL {self.name} answers")
        except CommandFailed as error:
            raise CommandFailed(error.detail, self.home.last_lines(self.name) or None) from error

    async def execute(self, statement: str) -> None:
        """Run one statement as the superuser."""
        async with self.opened() as connection:
            await connection.execute(statement)

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Platform]:
        """Open a connection of the superuser."""
        connection = await connect(self.admin_url, "horai drill")
        try:
            yield connection
        finally:
            connection.terminate()

    async def kill(self) -> None:
        """Kill the postmaster with kill -9. Its processes notice it and end."""
        if self.process is not None:
            self.process.kill()
            await asyncio.to_thread(self.process.wait)

    async def stop(self) -> None:
        """Stop it immediately, which is a crash: the drill is over, and its data is removed."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            try:
                await asyncio.to_thread(self.process.wait, STOP_WITHIN)
            except subprocess.TimeoutExpired:
                self.process.kill()


@dataclass(slots=True)
class StreamingPair:
    """`first` is the primary at the beginning, `second` its standby."""

    first: DrillServer
    second: DrillServer

    @property
    def node_url(self) -> str:
        """Return the URL of nodes: it names both hosts."""
        host = quote(str(self.first.sockets))
        return f"postgresql://{NODE}@/{DATABASE}?host={host},{host}&port={PORTS[FIRST]},{PORTS[SECOND]}"

    async def wait_for_standby(self, *, is_synchronous: bool) -> None:
        """Make commits wait for the standby, or not. Return when the first server reports that mode."""
        names = f"'{SECOND}'" if is_synchronous else "''"
        await self.first.execute(f"alter system set synchronous_standby_names = {names}")
        await self.first.execute("select pg_reload_conf()")
        wanted = "sync" if is_synchronous else "async"
        async with self.first.opened() as connection:

            async def has_mode() -> bool:
                return await connection.fetchval("select sync_state from pg_stat_replication") == wanted

            await until(has_mode, CATCH_UP_WITHIN, f"the standby is {wanted}")

    async def release_commits(self) -> None:
        """Make commits of the first server continue without its standby, as a cluster manager does when it has lost it."""
        await self.first.execute("alter system set synchronous_standby_names = ''")
        await self.first.execute("select pg_reload_conf()")

    async def promote(self) -> None:
        """Make the standby the primary, on the next timeline."""
        await self.second.execute("select pg_promote(wait => true, wait_seconds => 60)")

    async def follow(self) -> None:
        """Start the standby, which streams from the first server."""
        source = f"host={self.first.sockets} port={PORTS[FIRST]} user={SUPERUSER} application_name={SECOND}"
        await self.second.start(primary_conninfo=source)


@asynccontextmanager
async def streaming_pair(home: DrillHome) -> AsyncGenerator[StreamingPair]:
    """Start a primary with a migrated database and its standby; stop both at the end."""
    sockets = home.private("socket")
    first, second = (DrillServer(name, home, home.private(f"{name}-data"), sockets) for name in (FIRST, SECOND))
    pair = StreamingPair(first, second)
    try:
        await _run(home, home.binaries / "initdb", "-D", first.data, *INITDB_OPTIONS)
        await first.start()
        await _create_database(first)
        source = ("-h", sockets, "-p", str(PORTS[FIRST]), "-U", SUPERUSER)
        copy = ("-D", second.data, "--wal-method=stream", "--checkpoint=fast")
        await _run(home, home.binaries / "pg_basebackup", *source, *copy)
        await _run(home, "touch", second.data / "standby.signal")
        await pair.follow()
        yield pair
    finally:
        await first.stop()
        await second.stop()


async def _create_database(server: DrillServer) -> None:
    connection = await connect(server.admin_url.replace(f"/{DATABASE}?", "/postgres?"), "horai drill")
    try:
        await connection.execute(f"create database {DATABASE}")
    finally:
        connection.terminate()
    async with server.opened() as connection:
        await make_login(connection, NODE)
        await migrate(connection)


async def _run(home: DrillHome, *command: "str | Path") -> None:
    done = await asyncio.to_thread(home.account.run, command)
    if done.returncode != 0:
        raise CommandFailed(f"{Path(command[0]).name} failed: {done.stdout.strip()}")


async def until(holds: Callable[[], Awaitable[bool]], within: float, what: str) -> None:
    """Return when `holds` does. Raises `CommandFailed` after `within` seconds."""
    try:
        async with asyncio.timeout(within):
            while not await holds():  # noqa: ASYNC110 - the state of other processes
                await asyncio.sleep(LOOK_EVERY)
    except TimeoutError as error:
        raise CommandFailed(f"The drill gave up after {within:g} s. It waited until {what}.") from error
