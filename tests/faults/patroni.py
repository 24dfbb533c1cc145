"""The reference cluster of deploy/patroni, started by its script as an operator starts it."""

import asyncio
import json
import os
import shutil
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import aiohttp
import asyncpg
import pytest
from sizes import IS_LONG

from faults.load import Load
from faults.outside import until
from horai.core.errors import DatabaseUnavailable
from horai.db.pool import Platform, connect
from horai.db.route import ServerUnfit
from horai.embedded.postmaster import read_pid_file

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "deploy" / "patroni" / "reference.py"
MISSING = "patroni or etcd is not installed: apt-get install --no-install-recommends patroni etcd-server"
READY = b"Ready: "
ANSWER = aiohttp.ClientTimeout(total=60)
LOOK_EVERY = 0.02
IS_FOLLOWED = """
    select exists (
        select from pg_stat_replication where state = 'streaming' and pg_current_wal_lsn() - replay_lsn < 1000000
    )
"""


def require_patroni() -> None:
    """Skip the test without the programs; in the long form it fails."""
    if shutil.which("patroni") is None or shutil.which("etcd") is None:
        pytest.fail(MISSING) if IS_LONG else pytest.skip(MISSING)


@dataclass
class PatroniCluster:
    """The members of the cluster by name, and the URLs of nodes and of the superuser."""

    place: Path
    url: str
    superuser: str
    members: dict[str, dict[str, Any]]
    session: aiohttp.ClientSession
    is_synchronous: bool = True

    async def roles(self) -> dict[str, str]:
        """The role of each running member, as the first member that answers sees it."""
        for member in self.members.values():
            with suppress(aiohttp.ClientError, TimeoutError):
                limit = aiohttp.ClientTimeout(total=1)
                async with self.session.get(f"{member['api']}/cluster", timeout=limit) as answer:
                    told = await answer.json(content_type=None)
                return {m["name"]: m["role"] for m in told["members"] if m["state"] in ("running", "streaming")}
        return {}

    async def leader(self) -> str:
        """The name of the primary, once a standby follows it, a synchronous one if the cluster is."""
        found: list[str] = []
        standby = "sync_standby" if self.is_synchronous else "replica"

        async def is_safe() -> bool:
            roles = await self.roles()
            found[:] = [name for name, role in roles.items() if role == "leader"]
            return bool(found) and standby in roles.values() and await self._is_followed()

        await until(is_safe, 90, f"a primary with a {standby}")
        return found[0]

    async def _is_followed(self) -> bool:
        """Tell whether the standby streams and has almost all of the log. Patroni calls it running before that."""
        with suppress(DatabaseUnavailable, ServerUnfit, OSError, asyncpg.PostgresError):
            connection = await self.connect()
            try:
                return bool(await connection.fetchval(IS_FOLLOWED))
            finally:
                await connection.close()
        return False

    async def switch_over(self, leader: str) -> None:
        """Hand the lead over to the other member, as an operator plans it."""
        (candidate,) = (name for name in self.members if name != leader)
        body = {"leader": leader, "candidate": candidate}
        async with self.session.post(f"{self.members[leader]['api']}/switchover", json=body, timeout=ANSWER) as answer:
            assert answer.status == 200, await answer.text()

    def kill_postmaster(self, name: str) -> None:
        """kill -9."""
        found = read_pid_file(Path(self.members[name]["directory"]) / "data")
        assert found is not None
        os.kill(found.pid, signal.SIGKILL)

    async def connect(self) -> Platform:
        """A connection of the superuser to the primary."""
        return await connect(self.superuser, "horai test")

    async def names_on_the_standby(self, statement: str) -> set[str]:
        """The first column of a statement that runs on the member that does not lead."""
        leader = await self.leader()
        (standby,) = (member for name, member in self.members.items() if name != leader)
        parts = urlsplit(self.superuser)
        login, _, _ = parts.netloc.rpartition("@")
        connection = await asyncpg.connect(
            urlunsplit(parts._replace(netloc=f"{login}@{standby['host']}:{standby['port']}"))
        )
        try:
            return {row[0] for row in await connection.fetch(statement)}
        finally:
            await connection.close()

    def last_words(self) -> str:
        """The end of every log."""
        logs = sorted(self.place.glob("*.log"))
        return "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')[-4_000:]}" for log in logs)


@asynccontextmanager
async def patroni(place: Path, *flags: str) -> AsyncGenerator[PatroniCluster]:
    """Start the script, and stop it in the end."""
    require_patroni()
    home = place / f"patroni-{os.urandom(3).hex()}"
    process = await asyncio.create_subprocess_exec(sys.executable, SCRIPT, home, *flags, stdout=PIPE)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(180):
            line = await process.stdout.readline()
        async with aiohttp.ClientSession() as session:
            assert line.startswith(READY), f"the script ended: {_logs(home)}"
            told = json.loads((home / "cluster.json").read_text())
            members = {member["name"]: member for member in told["members"]}
            made = PatroniCluster(
                home, told["url"], told["superuser"], members, session, is_synchronous="--asynchronous" not in flags
            )
            try:
                yield made
            except BaseException:
                print(made.last_words())
                raise
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await asyncio.wait_for(process.wait(), 120)


def _logs(home: Path) -> str:
    return "\n".join(log.read_text(errors="replace")[-3_000:] for log in home.glob("*.log"))


class Pulse:
    """Watches when a load has acknowledgements, and so knows the pauses that its clients see."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._times: list[float] = []
        self._task = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        loop, known = asyncio.get_running_loop(), -1
        while True:
            if (count := len(self._load.acknowledged)) != known:
                known = count
                self._times.append(loop.time())
            await asyncio.sleep(LOOK_EVERY)

    def pause_since(self, moment: float) -> float:
        """The longest time without an acknowledgement from then to the last one."""
        times = [moment, *(at for at in self._times if at > moment)]
        return max((later - earlier for earlier, later in pairwise(times)), default=0.0)

    def end(self) -> None:
        self._task.cancel()
