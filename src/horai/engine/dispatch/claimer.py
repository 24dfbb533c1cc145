"""The claimer: it claims from the picked scans, within the limits of their queues.

Scans without limits are claimed in one statement. A queue with a rate is asked for tokens first; a queue with a
concurrency limit gives each row a permit in the statement that claims it, and so does the pool of a tenant with the
quota `concurrency`. The queue's row decides: even if this process does not yet know a new limit or pause, the statement
enforces it. The queues of a pool take turns. While the governor halves low-priority work, its rows need tokens too.
Scans of lanes with concurrency keys are claimed in a statement of their own, which checks the keys.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from horai.core.errors import Invalid, RetryLimited, TooLarge
from horai.core.health import EngineHealth
from horai.core.job import Priority
from horai.core.outcome import Release
from horai.db import claims, concurrency_keys, controls, queues
from horai.db.claims import ClaimedBy, ClaimedRow
from horai.db.clock import DatabaseClock
from horai.db.concurrency_keys import KeyedRows
from horai.db.controls import GovernedRate
from horai.db.pool import Platform
from horai.engine.dispatch.in_flight import InFlight
from horai.engine.dispatch.permit_waits import NOTHING_AHEAD, Ahead, PermitWaits
from horai.engine.dispatch.scans import Scan, ScanQuota, Scans
from horai.engine.lease import Lease
from horai.engine.settler import Settlement, Settler
from horai.operations.traces import Traces

PAGE = 1_000
REFUSALS = (Invalid, RetryLimited, TooLarge)
"""The errors of a quota: the database has refused the statement, which has claimed nothing."""


@dataclass(slots=True)
class ClaimResult:
    """The result of a claim: the rows, and how many each scan gave.

    `wait_until`: scans that their queue's rate holds back, and until when. `passed_over`: scans that were not read,
    because their queue had tokens for only a few others.
    """

    rows: list[ClaimedRow] = field(default_factory=list[ClaimedRow])
    found: dict[Scan, int] = field(default_factory=dict[Scan, int])
    wait_until: dict[Scan, datetime] = field(default_factory=dict[Scan, datetime])
    passed_over: set[Scan] = field(default_factory=set[Scan])
    parked: dict[Scan, int] = field(default_factory=dict[Scan, int])
    """The number of rows of each scan that now wait for a place of their concurrency key."""


class Claimer:
    """The claims of this node, numbered, with a record of lost answers."""

    def __init__(
        self,
        lease: Lease,
        scans: Scans,
        in_flight: InFlight,
        settler: Settler,
        clock: DatabaseClock,
        health: EngineHealth,
    ) -> None:
        self._lease = lease
        self._scans = scans
        self._in_flight = in_flight
        self._settler = settler
        self._clock = clock
        self._health = health
        self.permit_waits = PermitWaits(scans)
        self.begun = 0
        self._unanswered: set[int] = set()
        self._lost: set[int] = set()
        """The unanswered claims whose answers will not come."""
        self.is_idle = asyncio.Event()
        """Set while no answer is to come."""
        self.is_idle.set()
        self.is_answer_lost = False
        self._turns: dict[int, int] = {}
        """The last claim that gave rows of each queue that shares a pool."""
        self.traces: Traces | None = None

    @property
    def answered(self) -> int:
        """Return the number up to which claims are answered: rows of a later one may be ours without our knowledge."""
        return min(self._unanswered, default=self.begun + 1) - 1

    @contextmanager
    def numbered(self) -> Generator[ClaimedBy]:
        """Begin a claim. Put its rows in flight before the block ends. After an error, they may be ours without our knowledge."""
        self.begun += 1
        number = self.begun
        self._unanswered.add(number)
        self.is_idle.clear()
        try:
            yield ClaimedBy(self._lease.incarnation, number, self._clock.now())
        except REFUSALS:
            self._unanswered.remove(number)
            raise
        except BaseException:
            self._lost.add(number)
            self.is_answer_lost = True
            raise
        else:
            self._unanswered.remove(number)
        finally:
            if self._unanswered == self._lost:
                self.is_idle.set()

    async def claim(
        self, connection: Platform, quotas: Sequence[ScanQuota], ahead: Ahead = NOTHING_AHEAD
    ) -> ClaimResult:
        """Claim due rows of these scans, and rows of the scans `ahead` in their place. The rows are in flight when it returns."""
        claimed = ClaimResult()
        if self._scans.controls.current.low_rate is None:
            await self._claim_from(connection, quotas, ahead, claimed)
            return claimed
        low = [pick for pick in quotas if self._scans[pick[0].lane].priority is Priority.low]
        await self._claim_from(connection, [pick for pick in quotas if pick not in low], ahead, claimed)
        await self._claim_governed(connection, low, ahead, claimed)
        return claimed

    async def _claim_governed(
        self, connection: Platform, low: list[ScanQuota], ahead: Ahead, claimed: ClaimResult
    ) -> None:
        """Claim low-priority rows within the rate of the governor, which all processes share."""
        wanted = sum(rows for _, rows in low)
        grant = await controls.grant_governed(connection, GovernedRate.LOW, wanted) if wanted else None
        if grant is None:
            await self._claim_from(connection, low, ahead, claimed)
            return
        if not grant.granted:
            claimed.wait_until |= dict.fromkeys((scan for scan, _ in low), self._clock.now() + grant.wait)
            return
        claimed.passed_over.update(scan for scan, _ in low[grant.granted :])
        before = len(claimed.rows)
        await self._claim_from(connection, _share_out(low, grant.granted), ahead, claimed)
        if (unused := grant.granted - (len(claimed.rows) - before)) > 0:
            await controls.return_governed(connection, GovernedRate.LOW, unused)

    async def _claim_from(
        self, connection: Platform, quotas: Sequence[ScanQuota], ahead: Ahead, claimed: ClaimResult
    ) -> None:
        """Claim rows within the limits of their queues."""
        free: list[ScanQuota] = []
        keyed: list[ScanQuota] = []
        bounded: dict[int, list[ScanQuota]] = defaultdict(list)
        for pick in quotas:
            lane = self._scans[pick[0].lane]
            if not lane.is_limited and lane.limits.rate is None:
                (keyed if lane.is_keyed else free).append(pick)
            else:
                bounded[lane.queue_id].append(pick)
        if free:
            await self._take(connection, free, None, claimed)
        if keyed:
            await self._take(connection, keyed, None, claimed)
        for queue_id, some in sorted(bounded.items(), key=lambda each: self._turns.get(each[0], 0)):
            await self._claim_bounded(connection, queue_id, some, ahead.get(queue_id, ()), claimed)

    async def _claim_bounded(
        self,
        connection: Platform,
        queue_id: int,
        quotas: list[ScanQuota],
        ahead: Sequence[Scan],
        claimed: ClaimResult,
    ) -> None:
        lane = self._scans[quotas[0][0].lane]
        limits = lane.limits
        wanted = sum(rows for _, rows in quotas)
        if limits.rate is not None:
            grant = await queues.grant(connection, queue_id, wanted)
            if not grant.granted:
                claimed.wait_until |= dict.fromkeys((scan for scan, _ in quotas), self._clock.now() + grant.wait)
                return
            claimed.passed_over.update(scan for scan, _ in quotas[grant.granted :])
            quotas, wanted = _share_out(quotas, grant.granted), grant.granted
        if lane.is_limited:
            taken = await self._take(connection, quotas, queue_id, claimed, ahead)
            self.permit_waits.note(quotas, claimed.found, time.monotonic())
        else:
            taken = await self._take(connection, quotas, None, claimed)
        if lane.pool_id is not None and taken:
            self._turns[queue_id] = self.begun
        if limits.rate is not None and taken < wanted:
            await queues.return_tokens(connection, queue_id, wanted - taken)

    async def _take(
        self,
        connection: Platform,
        quotas: Sequence[ScanQuota],
        queue_id: int | None,
        claimed: ClaimResult,
        ahead: Sequence[Scan] = (),
    ) -> int:
        """Run one claiming statement, of a limited queue or of scans without limits. Return the number of rows."""
        with self.numbered() as by:
            scans, counts = [*(scan for scan, _ in quotas), *ahead], [count for _, count in quotas]
            positions = self._scans.starts(scans)
            if queue_id is not None:
                now = time.monotonic()
                urgencies = [self.permit_waits.urgency(scan, now) for scan in scans]
                rows = await queues.claim_limited(connection, by, queue_id, positions, sum(counts), urgencies)
            elif self._scans[quotas[0][0].lane].is_keyed:
                rows = await concurrency_keys.claim_keyed(connection, by, positions, counts)
            else:
                rows = await claims.claim_due(connection, by, positions, counts)
            claimed.found |= self.take_in(rows)
        claimed.rows += rows
        if isinstance(rows, KeyedRows):
            if any(row.held.concurrency_key is not None for row in rows):
                self._settler.expect_keys()
            claimed.parked |= {Scan(*place): count for place, count in rows.parked.items()}
        return len(rows)

    def take_in(self, rows: Sequence[ClaimedRow]) -> dict[Scan, int]:
        """Put claimed rows in flight, and move the cursors behind them. Return how many rows each scan gave."""
        self._in_flight.add(rows, self._scans.owner_of)
        if rows:
            self._settler.rouse()
        if self.traces is not None:
            self.traces.claimed(rows, self._scans.__getitem__)
        return self._scans.advance(rows)

    async def release_lost(self, connection: Platform) -> None:
        """Release rows that the table assigns to this node but that are not in flight here.

        Call this after an error and before the next claim. A claim at birth may be under way: its rows are not lost yet.
        A row that was in flight before the read may have been settled during it.
        """
        self.is_answer_lost, sought = False, frozenset(self._lost)  # before reading: an answer may be lost meanwhile
        try:
            await self._release_unknown(connection)
        except BaseException:
            self.is_answer_lost = True
            raise
        self._lost -= sought
        self._unanswered -= sought

    async def _release_unknown(self, connection: Platform) -> None:
        after = 0
        while True:
            begun, coming, known = self.begun, self._unanswered - self._lost, self._in_flight.known()
            page = await claims.running_of_node(connection, self._lease.incarnation, after, PAGE)
            if not page:
                return
            ended = [row.held for row in page if row.claim <= begun and row.claim not in coming]
            lost = [held for held in ended if (held.id, held.fence) not in known]
            if any(held.concurrency_key is not None for held in lost):
                self._settler.expect_keys()
            for held in lost:
                self._settler.submit(Settlement(held._replace(has_slot=True), Release()))  # it may have one
            self._health.released_claims += len(lost)
            after = page[-1].held.id


def _share_out(quotas: Sequence[ScanQuota], rows: int) -> list[ScanQuota]:
    """Return picks of `rows` rows in all, spread over the first `rows` scans at most."""
    each, more = divmod(rows, len(quotas))
    return [(scan, min(count, each + (n < more))) for n, (scan, count) in enumerate(quotas[:rows])]
