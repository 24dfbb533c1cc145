"""Nodes of one database, each a process of its own, and what the database knows of them."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from harness import NodeProcess

from faults.outside import until
from horai.core.limits import SHARDS
from horai.db.pool import Platform

LOG_LINES = 60
"""Of each node, shown when a test fails."""


@dataclass
class Cluster:
    """`horai node` under several names. `doors` are the addresses of those that run and are not frozen."""

    place: Path
    url: str
    flags: tuple[str, ...]
    nodes: dict[str, NodeProcess] = field(default_factory=dict[str, NodeProcess])
    doors: dict[str, str] = field(default_factory=dict[str, str])

    async def start(self, *names: str) -> None:
        """Returns when all of them are ready."""
        started = await asyncio.gather(*(self._start(name) for name in names), return_exceptions=True)
        for failure in filter(None, started):
            raise failure

    async def _start(self, name: str) -> None:
        node = NodeProcess(self.place / name, self.url, *self.flags)
        await asyncio.to_thread(node.start)
        self.nodes[name], self.doors[name] = node, node.base

    async def kill(self, name: str) -> None:
        """kill -9; its door stays in use until it is gone, as with clients who cannot know."""
        await asyncio.to_thread(self.nodes.pop(name).kill)
        del self.doors[name]

    async def stop(self, name: str) -> None:
        """Stop a node with SIGTERM; no client connects to it any more, as behind a load balancer."""
        del self.doors[name]
        assert await asyncio.to_thread(self.nodes.pop(name).stop) == 0

    @contextmanager
    def frozen(self, name: str) -> Generator[None]:
        """SIGSTOP, and SIGCONT in the end."""
        door = self.doors.pop(name)
        self.nodes[name].signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.nodes[name].signal(signal.SIGCONT)
            self.doors[name] = door

    def last_words(self) -> str:
        """The end of every log."""
        tails = (f"--- {log.name}\n" + "\n".join(_tail(log)) for log in sorted(self.place.glob("*.log")))
        return "\n".join(tails)


def _tail(log: Path) -> Sequence[str]:
    return log.read_text().splitlines()[-LOG_LINES:]


@asynccontextmanager
async def cluster(place: Path, url: str, *names: str, lease: float) -> AsyncGenerator[Cluster]:
    """Started together; in the end each must stop cleanly."""
    home = place / f"cluster-{os.urandom(4).hex()}"
    home.mkdir(mode=0o755)
    flags = ("--lease-ttl", f"{lease:g}s", "--callback-allow", "127.0.0.0/8")
    made = Cluster(home, url, flags)
    try:
        await made.start(*names)
        yield made
    except BaseException:
        await asyncio.gather(*(asyncio.to_thread(node.kill) for node in made.nodes.values()))
        print(made.last_words())
        raise
    codes = await asyncio.gather(*(asyncio.to_thread(node.stop) for node in made.nodes.values()))
    assert set(codes) <= {0}, made.last_words()


async def database_now(connection: Platform) -> datetime:
    """The one clock that counts."""
    return await connection.fetchval("select clock_timestamp()")


async def incarnation_of(connection: Platform, name: str) -> int:
    """The latest one of this name."""
    return await connection.fetchval("select max(incarnation) from horai.node where name = $1", name)


async def shares(connection: Platform, duty: str = "dispatch") -> Counter[int | None]:
    """Count the shards that each incarnation holds; under None those whose lease has run out, or that are free."""
    rows = await connection.fetch(
        "select case when lease_until > clock_timestamp() then node end as node from horai.shard_lease where duty = $1",
        duty,
    )
    return Counter(row["node"] for row in rows)


async def is_balanced(connection: Platform, nodes: int) -> bool:
    """Return true if `nodes` nodes hold all shards of both duties, each as many as any other, give or take one."""
    fair = {SHARDS // nodes, -(-SHARDS // nodes)}
    held = [await shares(connection, duty) for duty in ("dispatch", "trigger")]
    return all(None not in each and len(each) == nodes and set(each.values()) <= fair for each in held)


@dataclass(frozen=True)
class TakeOver:
    """Seconds from a kill until others hold all shards of the dead node, and until its last instance was rescued."""

    shards: float
    rescue: float
    in_flight: int


async def taken_over(connection: Platform, incarnation: int, since: datetime, within: float) -> TakeOver:
    """Watches the end of an incarnation that was killed at `since`, by the database's clock."""
    in_flight: int = await connection.fetchval(
        "select count(*) from horai.instance_live where state = 1 and node = $1", incarnation
    )
    done: dict[str, float] = {}

    async def is_over() -> bool:
        row = await connection.fetchrow(
            "select clock_timestamp() as now,"
            " exists (select from horai.shard_lease where node = $1"
            "   or node is null or lease_until < clock_timestamp()) as homeless,"
            " exists (select from horai.instance_live where state = 1 and node = $1) as stuck",
            incarnation,
        )
        assert row is not None
        for what, is_missing in (("shards", row["homeless"]), ("rescue", row["stuck"])):
            if not is_missing:
                done.setdefault(what, (row["now"] - since).total_seconds())
        return len(done) == 2

    await until(is_over, within, f"what incarnation {incarnation} held is taken over (so far {done})")
    return TakeOver(done["shards"], done["rescue"], in_flight)
