"""Reads from standbys: which standby may answer a read, and the connection that it lends.

Each connection is asked for its position before it is used, so the answer holds for that server, also behind a proxy that
spreads connections over several standbys. Nothing is asked while there are no reads. A standby that fails is not used for
`RETRY_AFTER` seconds; then it is asked in the background, and reads use the primary until it answers.
"""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Hashable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import asyncpg
import structlog

from horai.core.errors import DatabaseUnavailable
from horai.core.replica_reads import LastWrites, PositionLog, PrimaryPosition, ReplayedPosition
from horai.core.settings import ReplicaSettings
from horai.db.catalog import sql
from horai.db.pool import GONE, AnyRead, Plans, Pool, TenantPool, acquire, close_pool
from horai.db.standby import NotAStandby, OtherDatabase, StandbyRules, open_standby_pool, read_identity
from horai.db.urls import hosts_of

log = structlog.get_logger(__name__)

ANSWER_WITHIN = 1.0
"""Seconds that a standby has to lend a connection, and again to tell its position."""
PROBE_WITHIN = 5.0
"""Seconds that it has in the background. The first connection takes longest: it tests whether a pooler shares sessions."""
RETRY_AFTER = 5.0
"""Seconds after which a standby that failed is asked again."""
PATIENCE = 0.1
"""Seconds that a read waits for a standby to replay what the reader must see."""
LOOK_EVERY = 0.01
POSITION_EVERY = 1.0
"""Seconds for which a position of the primary is used; at most a fifth of the lag that is accepted."""
FAILURES = (asyncpg.PostgresError, DatabaseUnavailable, *GONE)


class StandbyLags(Exception):
    """The standby does not show all that this reader must see."""


class StandbyBusy(Exception):
    """Other reads use all connections to the standby."""


@dataclass(slots=True)
class StandbyHost:
    """One standby: its connections, and the state in which the last question left it."""

    name: str
    pool: Pool
    lag: float | None = None
    """Seconds, at the last question; None before the first, and if it was longer than accepted."""
    is_behind: bool = False
    idle: float | None = None
    """Seconds since the last transaction that the standby has replayed, by its own clock, at the last question."""
    problem: str | None = None
    """The reason why the standby is not used; None while it answers."""
    cause: BaseException | None = None
    retry_at: float = 0.0
    probe: "asyncio.Task[None] | None" = None

    def fail(self, error: BaseException, now: float) -> None:
        """Use the standby no longer."""
        self.cause = error.__cause__ if isinstance(error, DatabaseUnavailable) else error
        problem = "does not answer in time" if isinstance(self.cause, TimeoutError) else str(self.cause)
        if self.problem is None:
            log.warning("reads use the primary", standby=self.name, problem=problem)
        self.problem, self.lag, self.retry_at = problem or type(self.cause).__name__, None, now + RETRY_AFTER

    def recover(self) -> None:
        """Use the standby again."""
        if self.problem is not None:
            log.info("reads use the standby again", standby=self.name)
        self.problem = self.cause = None


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """A standby as an operator sees it. `lag` is in seconds; None if the standby does not answer."""

    host: str
    is_used: bool
    lag: float | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class StandbyAnswer:
    """The answer of a standby: its position, and the time since its last transaction in seconds, by its own clock."""

    position: ReplayedPosition
    idle: float | None


class ReadReplicas:
    """The standbys of one process, and what its callers must see."""

    def __init__(
        self,
        primary: Pool,
        hosts: Sequence[StandbyHost],
        reach: float,
        incarnation: Callable[[], int],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.hosts = hosts
        self.reach = reach
        """The lag in seconds up to which a standby is used."""
        self.answered = {"replica": 0, "primary": 0}
        """The number of reads that a standby could have answered, by the server that did."""
        self.monotonic = monotonic
        self._primary = primary
        self._incarnation = incarnation
        self._positions = PositionLog(reach)
        self._writes = LastWrites(reach)
        self._turn = asyncio.Lock()

    @property
    def lag(self) -> float | None:
        """Return the lag of the standby that is used, at its last read; None while none is used."""
        return next((host.lag for host in self.hosts if host.problem is None and host.lag is not None), None)

    def note_write(self, caller: Hashable) -> None:
        """Record that the caller has written, or was told of a change: its next reads must show it."""
        self._writes.note(caller, self.monotonic())

    def reader(self, caller: Hashable) -> "ReplicaReader | None":
        """Return a reader for one request; None if the request must use the primary."""
        now = self.monotonic()
        for host in self.hosts:
            if host.problem is not None and now >= host.retry_at and (host.probe is None or host.probe.done()):
                host.probe = asyncio.create_task(self._probe(host), name="standby probe")
        usable = sorted((host for host in self.hosts if host.problem is None), key=lambda host: host.is_behind)
        return ReplicaReader(self, usable[0], self._writes.of(caller)) if usable else None

    async def renew_position(self, since: float) -> None:
        """Make sure that there is a recent position of the primary, taken after `since`."""
        async with self._turn:
            newest, now, node = self._positions.newest, self.monotonic(), self._incarnation()
            every = min(POSITION_EVERY, self.reach / 5)
            if newest is not None and newest.incarnation == node and newest.taken_at > max(since, now - every):
                return
            async with acquire(self._primary) as connection:
                row = await connection.fetchrow(sql("primary_position"), node)
            assert row is not None  # noqa: S101 - a select without FROM has one row
            if row["lease_until"] is None:
                raise StandbyLags("this node has no lease yet")
            self._positions.add(PrimaryPosition(now, row["lsn"], row["timeline"], node, row["lease_until"]))

    async def require_replayed(self, connection: AnyRead, host: StandbyHost, since: float) -> float:
        """Return the lag of this connection's server. Raises `StandbyLags` if it does not show all since `since`."""
        end = self.monotonic() + (0.0 if host.is_behind else PATIENCE)
        while True:
            standing = await self._ask(connection)
            now = self.monotonic()
            found = self._positions.covered(standing.position, now)
            host.lag, host.is_behind = None if found is None else now - found.taken_at, found is None
            host.idle = standing.idle
            if found is not None and found.taken_at > since:
                return now - found.taken_at
            if now >= end:
                raise StandbyLags("the standby has not replayed what the reader must see")
            await asyncio.sleep(LOOK_EVERY)

    async def verify(self) -> None:
        """Ask every standby. Raises `OtherDatabase` if one belongs to another database; others may come back."""
        for host in self.hosts:
            await self._probe(host)
            if isinstance(host.cause, OtherDatabase):
                raise host.cause

    async def statuses(self) -> list[ReplicaStatus]:
        """Ask every standby that did not fail within the last seconds, and return what each is used for."""
        since = self.monotonic()
        with suppress(StandbyLags):
            await self.renew_position(since)
        return [await self._status(host, since) for host in self.hosts]

    async def _status(self, host: StandbyHost, since: float) -> ReplicaStatus:
        if host.problem is not None and self.monotonic() < host.retry_at:
            return ReplicaStatus(host.name, False, None, host.problem)
        try:
            async with self._lent(host) as connection:
                await self.require_replayed(connection, host, since)
        except FAILURES as error:
            host.fail(error, self.monotonic())
            return ReplicaStatus(host.name, False, None, host.problem)
        except (StandbyBusy, StandbyLags):
            log.debug("the standby is busy, or does not show the last moments yet", standby=host.name)
        host.recover()
        if host.is_behind:
            return ReplicaStatus(host.name, False, host.idle, f"lags more than {self.reach:g} s")
        return ReplicaStatus(host.name, True, host.lag, None)

    async def _probe(self, host: StandbyHost) -> None:
        try:
            await host.pool.expire_connections()  # those of a server that failed are of no use
            async with self._lent(host, PROBE_WITHIN) as connection:
                await self._ask(connection)
        except (StandbyBusy, *FAILURES) as error:
            host.fail(error, self.monotonic())
        else:
            host.recover()

    async def _ask(self, connection: AnyRead) -> StandbyAnswer:
        node = self._incarnation()
        try:
            async with asyncio.timeout(ANSWER_WITHIN):
                row = await connection.fetchrow(sql("replayed_position"), node)
        except TimeoutError:
            connection.terminate()  # to release it would wait for the server as well
            raise
        assert row is not None  # noqa: S101 - a select without FROM has one row
        if not row["is_standby"]:
            raise NotAStandby("is not a standby: it accepts writes")
        return StandbyAnswer(ReplayedPosition(row["lsn"] or 0, node, row["lease_until"]), row["idle"])

    @asynccontextmanager
    async def _lent(self, host: StandbyHost, limit: float = ANSWER_WITHIN) -> AsyncGenerator[AnyRead]:
        async with AsyncExitStack() as stack:
            yield await _entered(stack, host.pool, acquire(host.pool), limit)


@dataclass(slots=True)
class ReplicaReader:
    """The reads of one request. `lag` is the longest of the answers so far; None if no standby has answered."""

    replicas: ReadReplicas
    host: StandbyHost
    since: float
    lag: float | None = None

    @asynccontextmanager
    async def acquire(self, plans: Plans, tenant_id: int | None) -> AsyncGenerator[Any]:
        """Acquire a read-only connection to a standby that shows all that the caller must see, as `acquire` does.

        Raises `StandbyLags`, `StandbyBusy` or one of `FAILURES` otherwise: the primary then answers the request.
        """
        replicas, host = self.replicas, self.host
        await replicas.renew_position(self.since)
        wanted = acquire(host.pool, plans) if tenant_id is None else acquire(TenantPool(host.pool, tenant_id), plans)
        async with AsyncExitStack() as stack:
            try:
                connection = await _entered(stack, host.pool, wanted)
                lag = await replicas.require_replayed(connection, host, self.since)
            except FAILURES as error:
                host.fail(error, replicas.monotonic())
                raise
            self.lag = max(lag, self.lag or 0.0)
            try:
                yield connection
            except GONE as error:
                host.fail(error, replicas.monotonic())
                raise


async def _entered(stack: AsyncExitStack, pool: Pool, wanted: Any, limit: float = ANSWER_WITHIN) -> Any:
    """Enter the context in a task of its own: a server that does not answer would also delay the end of a wait for it.

    Raises `StandbyBusy` or `TimeoutError` after `limit` seconds.
    """
    is_full = pool.get_size() == pool.get_max_size() and not pool.get_idle_size()
    entering = asyncio.create_task(stack.enter_async_context(wanted))
    try:
        await asyncio.wait({entering}, timeout=limit)
    finally:
        if not entering.done():
            entering.cancel()
            entering.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    if not entering.done():
        raise StandbyBusy if is_full else TimeoutError
    return entering.result()


@asynccontextmanager
async def opened_replicas(
    settings: ReplicaSettings, primary: Pool, incarnation: Callable[[], int]
) -> AsyncGenerator[ReadReplicas]:
    """Open the pools of the standbys. Raises `OtherDatabase` if one of them is no copy of the primary."""
    async with AsyncExitStack() as stack:
        async with acquire(primary) as connection:
            rules = StandbyRules(settings.url, await read_identity(connection))
        hosts: list[StandbyHost] = []
        for host in hosts_of(settings.url, os.environ) or (None,):
            pool = await open_standby_pool(rules, host, "horai reads")
            stack.push_async_callback(close_pool, pool)
            hosts.append(StandbyHost(str(host or "default"), pool))
        replicas = ReadReplicas(primary, hosts, settings.lag.total_seconds(), incarnation)
        await replicas.verify()
        try:
            yield replicas
        finally:
            for host in hosts:
                if host.probe is not None:
                    host.probe.cancel()
