"""The failures: a node, the primary, the standby, and a zone, each on a cluster of the drill's own."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from enum import StrEnum

from horai.cli.drills.home import DrillHome
from horai.cli.drills.nodes import DrillNodes
from horai.cli.drills.pair import CATCH_UP_WITHIN, StreamingPair, streaming_pair, until
from horai.cli.drills.plan import DrillPlan
from horai.embedded import EmbeddedPostgres, EmbeddedSettings
from horai.embedded.admin import admin_url
from horai.process import prepare

Say = Callable[[str], None]


class DrillKind(StrEnum):
    """The part that fails."""

    NODE = "node"
    PRIMARY = "primary"
    STANDBY = "standby"
    ZONE = "zone"


class DrillFailure(ABC):
    """A database, and a failure of one part of the cluster on it."""

    node_url: str
    """The URL of the nodes."""
    admin_before: str
    """The URL of the superuser of the server that has the data before the failure."""
    admin_after: str
    replication: str

    @abstractmethod
    async def strike(self, nodes: DrillNodes, say: Say) -> None:
        """Make the part fail, and do what a cluster manager does then."""

    async def mend(self, say: Say) -> None:
        """Repair the part under load. By default it stays away."""
        say("the part that failed stays away")


class NodeFailure(DrillFailure):
    """One of two nodes is killed. The database is embedded and stays."""

    replication = "none"

    def __init__(self, node_url: str, victim: str) -> None:
        self.node_url = node_url
        self.admin_before = self.admin_after = admin_url(node_url)
        self._victim = victim

    async def strike(self, nodes: DrillNodes, say: Say) -> None:
        await nodes.kill(self._victim)
        say(f"the node {self._victim} was killed (kill -9)")


class PrimaryFailure(DrillFailure):
    """The postmaster of the primary is killed, and its standby is promoted."""

    def __init__(self, pair: StreamingPair, replication: str) -> None:
        self._pair = pair
        self.node_url = pair.node_url
        self.admin_before, self.admin_after = pair.first.admin_url, pair.second.admin_url
        self.replication = replication

    async def strike(self, nodes: DrillNodes, say: Say) -> None:
        await self._pair.first.kill()
        say("the primary was killed (kill -9 of the postmaster)")
        await self._pair.promote()
        say("the standby was promoted")


class ZoneFailure(PrimaryFailure):
    """A zone with the primary and one of two nodes is lost, and the standby in the other zone is promoted."""

    def __init__(self, pair: StreamingPair, replication: str, victim: str) -> None:
        super().__init__(pair, replication)
        self._victim = victim

    async def strike(self, nodes: DrillNodes, say: Say) -> None:
        await asyncio.gather(self._pair.first.kill(), nodes.kill(self._victim))
        say(f"the primary and the node {self._victim} were killed (kill -9)")
        await self._pair.promote()
        say("the standby was promoted")


class StandbyFailure(DrillFailure):
    """The standby is killed. Commits wait for it until they are released; then it returns and catches up."""

    def __init__(self, pair: StreamingPair, replication: str) -> None:
        self._pair = pair
        self.node_url = pair.node_url
        self.admin_before = self.admin_after = pair.first.admin_url
        self.replication = replication

    async def strike(self, nodes: DrillNodes, say: Say) -> None:
        await self._pair.second.kill()
        say("the standby was killed (kill -9 of the postmaster)")
        await self._pair.release_commits()
        say("commits no longer wait for the standby")

    async def mend(self, say: Say) -> None:
        await self._pair.follow()
        async with self._pair.first.opened() as first, self._pair.second.opened() as second:
            end = await first.fetchval("select pg_current_wal_flush_lsn()::text")

            async def has_all() -> bool:
                return await second.fetchval("select pg_last_wal_replay_lsn() >= $1::text::pg_lsn", end)

            await until(has_all, CATCH_UP_WITHIN, "the standby has replayed everything")
        say("the standby is back and has caught up")
        await self._pair.wait_for_standby(is_synchronous=True)
        say("commits wait for the standby again")


@asynccontextmanager
async def _node_failure(home: DrillHome, plan: DrillPlan) -> AsyncGenerator[DrillFailure]:
    postgres = EmbeddedPostgres(EmbeddedSettings(home.root / "database", shared_buffers="32MB"))
    await postgres.start()
    try:
        await prepare(postgres.url, plan.engine)
        yield NodeFailure(postgres.url, plan.names[0])
    finally:
        await postgres.stop()


@asynccontextmanager
async def _primary_failure(home: DrillHome, plan: DrillPlan) -> AsyncGenerator[DrillFailure]:
    async with streaming_pair(home) as pair:
        await pair.wait_for_standby(is_synchronous=not plan.asynchronous)
        yield PrimaryFailure(pair, "asynchronous" if plan.asynchronous else "synchronous")


@asynccontextmanager
async def _zone_failure(home: DrillHome, plan: DrillPlan) -> AsyncGenerator[DrillFailure]:
    async with streaming_pair(home) as pair:
        await pair.wait_for_standby(is_synchronous=True)
        yield ZoneFailure(pair, "synchronous", plan.names[0])


@asynccontextmanager
async def _standby_failure(home: DrillHome, plan: DrillPlan) -> AsyncGenerator[DrillFailure]:
    async with streaming_pair(home) as pair:
        await pair.wait_for_standby(is_synchronous=True)
        yield StandbyFailure(pair, "synchronous")


def failure_of(kind: DrillKind, home: DrillHome, plan: DrillPlan) -> AbstractAsyncContextManager[DrillFailure]:
    """Start the database of a drill."""
    started = {
        DrillKind.NODE: _node_failure,
        DrillKind.PRIMARY: _primary_failure,
        DrillKind.STANDBY: _standby_failure,
        DrillKind.ZONE: _zone_failure,
    }
    return started[kind](home, plan)
