"""Processes that archive a day and are killed while they wait: for a lock of the database, or for the storage."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from databases import Superuser, as_node, superuser
from s3_server import Hold

from horai.db.archives import PartitionDay

ARCHIVES = """
import asyncio, os, sys
from datetime import date, timedelta
from horai.cli.archive_flags import ArchiveFlags, with_archive
from horai.core.settings import EngineSettings
from horai.db.archives import PartitionDay, is_archived
from horai.db.cluster import cluster_id
from horai.db.pool import connect
from horai.features.archive.archiving import archive_partition
from horai.operations.archive_place import ArchivePlace, store_of

async def main(url, location, cache, day, drops):
    connection = await connect(url, "horai victim", lock_timeout=timedelta(minutes=1))
    store = store_of(with_archive(EngineSettings(), ArchiveFlags(location, cache=cache), os.environ))
    place, part = ArchivePlace(store, await cluster_id(connection)), PartitionDay("instance_history", date.fromisoformat(day))
    await archive_partition(connection, place, part)
    if drops:
        async with connection.transaction():
            assert await is_archived(connection, part.table, part.day)
            await connection.execute(f"drop table horai.instance_history_{part.day:%Y%m%d}")

asyncio.run(main(*sys.argv[1:5], sys.argv[5] == "drops"))
"""


@dataclass(frozen=True)
class Victim:
    """A process that archives a day: the database, the directory or the bucket, the cache, and its variables."""

    url: str
    location: str
    cache: Path
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    def start(self, part: PartitionDay, *, drops: bool = False) -> subprocess.Popen[bytes]:
        """Start it. Only a superuser may drop a day."""
        login = self.url if drops else as_node(self.url)
        words = [login, self.location, str(self.cache), f"{part.day:%Y-%m-%d}", "drops" if drops else "keeps"]
        return subprocess.Popen([sys.executable, "-c", ARCHIVES, *words], env={**os.environ, **self.environment})


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that is alive."""
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(30) == -signal.SIGKILL


@asynccontextmanager
async def waiting_for_lock(
    victim: Victim, connection: Superuser, part: PartitionDay, lock: str, *, drops: bool = False
) -> AsyncGenerator[None]:
    """The process waits for a lock of this test. At the end it is killed, and the lock released."""
    holder = await superuser(victim.url, "horai holder")
    transaction = holder.transaction()
    await transaction.start()
    await holder.execute(lock)
    process = victim.start(part, drops=drops)
    try:
        async with asyncio.timeout(60):
            while not await connection.fetchval(
                "select exists (select from pg_stat_activity where application_name = 'horai victim' and wait_event_type = 'Lock')"
            ):
                assert process.poll() is None, "it has ended before it was killed"
                await asyncio.sleep(0.02)
        yield
        kill(process)
        await transaction.rollback()
    finally:
        process.kill()
        process.wait()
        holder.terminate()


async def killed_at(victim: Victim, part: PartitionDay, hold: Hold) -> None:
    """Kill the process as soon as a request of it waits at the storage."""
    process = victim.start(part)
    try:
        assert await asyncio.to_thread(hold.reached.wait, 60), "no request has arrived"
        kill(process)
    finally:
        process.kill()
        process.wait()
