"""Two real PostgreSQL servers, a primary and its standby, each behind a proxy that a node connects to."""

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from faults.outside import until
from faults.proxy import Proxy
from horai.db.migrate import migrate
from horai.db.pool import Dedicated, connect
from horai.embedded.account import Account, account_for
from horai.embedded.area import Area
from horai.embedded.binaries import binaries_for

USER = "horai"
SETTINGS = """
listen_addresses = ''
max_connections = 120
shared_buffers = '16MB'
max_wal_size = '256MB'
min_wal_size = '32MB'
wal_keep_size = '64MB'
hot_standby = on
wal_receiver_timeout = '2s'
wal_retrieve_retry_interval = '100ms'
"""


@dataclass
class Server:
    """One PostgreSQL on a Unix socket in its own directory."""

    name: str
    place: Path
    binaries: Path
    account: Account
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def data(self) -> Path:
        return self.place / f"{self.name}-data"

    @property
    def url(self) -> str:
        """The server itself, without the proxy."""
        return f"postgresql://{USER}@/{USER}?host={self.place}&port={self.port}"

    @property
    def port(self) -> int:
        """The number in the name of the socket."""
        return 5432 if self.name == "first" else 5433

    def run(self, *command: "str | Path") -> None:
        done = self.account.run(command)
        assert done.returncode == 0, done.stdout

    async def start(self) -> None:
        """Return when it answers."""
        with (self.place / f"{self.name}.log").open("ab") as log:
            command = [self.binaries / "postgres", "-D", self.data, "-k", self.place, "-p", str(self.port)]
            self.process = self.account.spawn(command, log)

        async def answers() -> bool:
            with suppress(OSError, asyncpg.PostgresError):
                await (await self.connect("postgres")).close()
                return True
            return False

        await until(answers, 30, f"{self.name} answers")

    async def connect(self, database: str = USER) -> Dedicated:
        return await asyncpg.connect(self.url, database=database)

    async def execute(self, statement: str, database: str = USER) -> None:
        connection = await self.connect(database)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    async def promote(self) -> None:
        """Make a primary of a standby, on the next timeline."""
        await self.execute("select pg_promote(wait => true)")

    async def pause_replay(self) -> None:
        """Let a standby receive its primary's log and show none of it."""
        await self.execute("select pg_wal_replay_pause()")

        async def is_paused() -> bool:
            return await self.fetchval("select pg_get_wal_replay_pause_state()") == "paused"

        await until(is_paused, 10, "the replay is paused")

    async def resume_replay(self) -> None:
        await self.execute("select pg_wal_replay_resume()")

    async def fetchval(self, statement: str) -> object:
        connection = await self.connect()
        try:
            return await connection.fetchval(statement)
        finally:
            await connection.close()

    @asynccontextmanager
    async def frozen(self) -> AsyncGenerator[None]:
        """Stop all its processes (SIGSTOP): connections stay open, and no one answers."""
        assert self.process is not None
        listed = await self.fetchval("select array_agg(pid) from pg_stat_activity where pid <> pg_backend_pid()")
        assert isinstance(listed, list)
        pids = [self.process.pid, *listed]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    async def log_statements(self) -> None:
        """Write every statement into the log from now on."""
        with (self.data / "postgresql.conf").open("a") as config:
            config.write("log_statement = 'all'\n")
        await self.execute("select pg_reload_conf()")

        async def logs() -> bool:
            return await self.fetchval("show log_statement") == "all"

        await until(logs, 10, "statements are logged")

    @property
    def log(self) -> str:
        return (self.place / f"{self.name}.log").read_text()

    async def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """End it; SIGQUIT is a crash, SIGINT a clean shutdown."""
        if self.process is not None:
            self.process.send_signal(how)
            await asyncio.to_thread(self.process.wait, 30)
            self.process = None


@dataclass
class Replicas:
    """`first` is the primary at the beginning, `second` its standby."""

    first: Server
    second: Server
    first_door: Proxy
    second_door: Proxy

    @property
    def url(self) -> str:
        """Both hosts, the first one first."""
        doors = ",".join(door.url.split("@")[1].split("/")[0] for door in (self.first_door, self.second_door))
        return f"postgresql://{USER}@{doors}/{USER}?sslmode=disable"


async def primary_template(place: Path) -> Path:
    """Return the data directory of a stopped primary with a migrated database; the first call makes it.

    `place` is that of the test server, whose PostgreSQL binaries it uses.
    """
    home, account = place / "twins-template", account_for()
    made = Server("first", home, await asyncio.to_thread(binaries_for, Area.at(place / "server"), account), account)
    if home.exists():
        return made.data
    _make_home(home, account)
    options = (f"--username={USER}", "--locale=C", "--encoding=UTF8", "--auth=trust", "--no-sync", "--no-instructions")
    await asyncio.to_thread(made.run, made.binaries / "initdb", "-D", made.data, *options)
    with (made.data / "postgresql.conf").open("a") as config:
        config.write(SETTINGS)
    try:
        await made.start()
        await made.execute(f"create database {USER}", "postgres")
        connection = await connect(made.url, "horai tests")
        await migrate(connection)
        await connection.close()
    finally:
        await made.stop(signal.SIGINT)
    return made.data


def _make_home(home: Path, account: Account) -> None:
    home.mkdir(mode=0o755)
    if account.is_other:
        os.chown(home, account.uid, account.gid)


@asynccontextmanager
async def replicas(place: Path) -> AsyncGenerator[Replicas]:
    """Start both: each is a copy of a stopped primary, and the standby streams from the first one.

    `place` is that of the test server.
    """
    template = await primary_template(place)
    home, account = place / f"twins-{os.urandom(3).hex()}", account_for()
    _make_home(home, account)
    binaries = await asyncio.to_thread(binaries_for, Area.at(place / "server"), account)
    first, second = (Server(name, home, binaries, account) for name in ("first", "second"))
    for server in (first, second):
        await asyncio.to_thread(server.run, "cp", "-a", template, server.data)
    with (second.data / "postgresql.conf").open("a") as config:
        config.write(f"primary_conninfo = 'host={home} port={first.port} user={USER}'\n")
    (second.data / "standby.signal").touch()
    async with AsyncExitStack() as stack:
        for server in (first, second):
            stack.push_async_callback(server.stop)
        await asyncio.gather(first.start(), second.start())
        await caught_up(first, second)  # a standby that has not connected yet would be promoted without the last writes
        doors = [await stack.enter_async_context(Proxy(server.url).listening()) for server in (first, second)]
        yield Replicas(first, second, *doors)
    shutil.rmtree(home, ignore_errors=True)


async def caught_up(first: Server, second: Server) -> None:
    """Return when the standby has replayed all that the primary has written."""
    primary, standby = await first.connect(), await second.connect()
    try:
        end = await primary.fetchval("select pg_current_wal_flush_lsn()::text")

        async def streams() -> bool:
            return await standby.fetchval("select exists (select from pg_stat_wal_receiver where status = 'streaming')")

        async def replayed() -> bool:
            return await standby.fetchval("select pg_last_wal_replay_lsn() >= $1::text::pg_lsn", end)

        await until(streams, 20, "the standby streams from the primary")
        await until(replayed, 20, "the standby has replayed everything")
    finally:
        await primary.close()
        await standby.close()
