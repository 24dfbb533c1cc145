"""Processes seen from outside: a receiver of its own, the postmaster of a data directory, and waiting for things."""

import asyncio
import json
import os
import signal
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
from forked import Forked
from sizes import IS_LONG

from horai.db.pool import Platform, connect
from horai.db.verify import verify
from horai.embedded import url_of
from horai.embedded.area import Area
from horai.embedded.postmaster import read_pid_file

LOOK_EVERY = 0.05
BUSY = 0.0 if IS_LONG else 10.0
"""Seconds that a machine with other things to do may add to a promise. With them it is still far from the sweep of
every 30 s, which would hide a loss; the long form allows none."""


async def until(holds: Callable[[], Awaitable[object]], within: float, what: str) -> None:
    """Returns when `holds` does; the one place where fault tests pass time."""
    try:
        async with asyncio.timeout(within + BUSY):
            while not await holds():
                await asyncio.sleep(LOOK_EVERY)
    except TimeoutError:
        raise AssertionError(f"not within {within + BUSY:g} s: {what}") from None


@dataclass(frozen=True)
class LoggedHit:
    """A line of the receiver's log; `at` by the wall clock, which the database of a test shares."""

    at: float
    path: str
    unit: str
    key: str
    attempt: int
    fence: int
    is_effective: bool
    """True if the business took it: once for each unit."""


class ReceiverProcess:
    """`python -m tests.support.receiver`, forked: it outlives the processes that a test kills."""

    def __init__(self, log: Path) -> None:
        self._log = log
        said = log.with_name(f"{log.name}.log")
        said.touch()
        self._process = Forked(["--port", "0", "--log", str(log)], os.environ, said, "receiver")
        assert self._process.stdout is not None
        self._port = int(self._process.stdout.readline())

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._port}{path}"

    def hits(self) -> list[LoggedHit]:
        """Every hit so far."""
        complete = self._log.read_text().rpartition("\n")[0]
        lines = [json.loads(line) for line in complete.splitlines()]
        return [
            LoggedHit(
                line["at"],
                line["path"],
                line["unit"],
                line["key"],
                int(line["attempt"]),
                int(line["fence"]),
                line["effective"],
            )
            for line in lines
        ]

    def by_key(self) -> dict[str, list[LoggedHit]]:
        """The hits of each instance, by its Idempotency-Key."""
        grouped: defaultdict[str, list[LoggedHit]] = defaultdict(list)
        for hit in self.hits():
            grouped[hit.key].append(hit)
        return grouped

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


@contextmanager
def receiving(log: Path) -> Generator[ReceiverProcess]:
    receiver = ReceiverProcess(log)
    try:
        yield receiver
    finally:
        receiver.close()


def kill_postmaster(data_dir: Path) -> None:
    """kill -9, as the out-of-memory killer does; its backends notice and go."""
    found = read_pid_file(Area.at(data_dir).cluster)
    assert found is not None
    os.kill(found.pid, signal.SIGKILL)


@asynccontextmanager
async def database(data_dir: Path) -> AsyncGenerator[Platform]:
    """A connection to the embedded server of a data directory, as soon as it answers."""
    opened: list[Platform] = []

    async def answers() -> bool:
        try:
            opened.append(await connect(url_of(data_dir), "horai test"))
        except Exception:  # not up, starting, shutting down, in recovery: all of them pass
            return False
        return True

    await until(answers, 60, "the embedded PostgreSQL answers")
    try:
        yield opened[0]
    finally:
        opened[0].terminate()
        await asyncio.sleep(0)


async def violations(connection: Platform) -> list[str]:
    """Return the violations that `verify` finds, as text."""
    return [f"{found.invariant}: {example}" for found in await verify(connection) for example in found.examples]


async def lost_attempts(connection: Platform) -> dict[str, int]:
    """Count the attempts of each instance that lost their node, by its Idempotency-Key."""
    rows: list[asyncpg.Record] = await connection.fetch(
        "select idem_key, count(*) from horai.job_instance join horai.attempt using (instance_id)"
        " where attempt.error_code = 'NODE_LOST' and not attempt.late group by idem_key"
    )
    return {row["idem_key"]: row["count"] for row in rows}


def job_document(name: str, url: str, **fields: Any) -> dict[str, Any]:
    """An HTTP job as REST takes it."""
    return {"name": name, "target": {"type": "http", "url": url}, **fields}
