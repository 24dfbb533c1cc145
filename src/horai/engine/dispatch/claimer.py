"""Claims from the places that were picked, within what their queues allow.

Places without limits are one statement. A queue with a rate is asked for tokens first; one with a limit gives each row a
slot in the statement that claims it. The row is the judge: a queue that was limited or paused a moment ago lets
nothing through that this process still thinks free.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from horai.core.health import EngineHealth
from horai.core.outcome import Release
from horai.db import claims, queues
from horai.db.claims import ClaimedBy, ClaimedRow
from horai.db.clock import DatabaseClock
from horai.db.pool import Dedicated
from horai.engine.dispatch.in_flight import InFlight
from horai.engine.dispatch.scans import Scan, Scans
from horai.engine.lease import NodeLease
from horai.engine.settler import Settlement, Settler

PAGE = 1_000

ScanQuota = tuple[Scan, int]
"""A place and how many rows it may give."""


@dataclass(slots=True)
class ClaimResult:
    """What a claim brought: the rows, and how many each place gave.

    `wait_until`: places that their queue's rate holds back, and until when. `passed_over`: places that were not asked,
    because their queue had tokens for a few others only.
    """

    rows: list[ClaimedRow] = field(default_factory=list[ClaimedRow])
    found: dict[Scan, int] = field(default_factory=dict[Scan, int])
    wait_until: dict[Scan, datetime] = field(default_factory=dict[Scan, datetime])
    passed_over: set[Scan] = field(default_factory=set[Scan])


class Claimer:
    """Numbers the claims of this node, and knows when an answer was lost."""

    def __init__(
        self,
        keeper: NodeLease,
        lanes: Scans,
        holdings: InFlight,
        settler: Settler,
        clock: DatabaseClock,
        vitals: EngineHealth,
    ) -> None:
        self._keeper = keeper
        self._lanes = lanes
        self._holdings = holdings
        self._settler = settler
        self._clock = clock
        self._vitals = vitals
        self.begun = 0
        self.answered = 0
        """The number of the last claim whose answer is here: rows of a later one may be ours unknown to us."""
        self.is_answer_lost = False

    async def claim(self, connection: Dedicated, picks: Sequence[ScanQuota]) -> ClaimResult:
        """Claims due rows of these places; they are in hand when it returns."""
        free: list[ScanQuota] = []
        bounded: dict[int, list[ScanQuota]] = defaultdict(list)
        for pick in picks:
            lane = self._lanes[pick[0].lane]
            if lane.limits.max_concurrency is None and lane.limits.rate is None:
                free.append(pick)
            else:
                bounded[lane.queue_id].append(pick)
        harvest = ClaimResult()
        if free:
            await self._take(connection, free, None, harvest)
        for queue_id, some in bounded.items():
            await self._claim_bounded(connection, queue_id, some, harvest)
        return harvest

    async def _claim_bounded(
        self, connection: Dedicated, queue_id: int, picks: list[ScanQuota], harvest: ClaimResult
    ) -> None:
        limits = self._lanes[picks[0][0].lane].limits
        wanted = sum(rows for _, rows in picks)
        if limits.rate is not None:
            grant = await queues.grant(connection, queue_id, wanted)
            if not grant.granted:
                harvest.wait_until |= dict.fromkeys((place for place, _ in picks), self._clock.now() + grant.wait)
                return
            harvest.passed_over.update(place for place, _ in picks[grant.granted :])
            picks, wanted = _within(picks, grant.granted), grant.granted
        taken = await self._take(connection, picks, queue_id if limits.max_concurrency is not None else None, harvest)
        if limits.rate is not None and taken < wanted:
            await queues.return_tokens(connection, queue_id, wanted - taken)

    async def _take(
        self, connection: Dedicated, picks: Sequence[ScanQuota], queue_id: int | None, harvest: ClaimResult
    ) -> int:
        """One claiming statement: of a limited queue, or of places without limits; how many rows it brought."""
        self.begun += 1
        by = ClaimedBy(self._keeper.incarnation, self.begun, self._clock.now())
        positions = self._lanes.starts(place for place, _ in picks)
        self.is_answer_lost = True  # until it is here: without it, rows may be ours unknown to us
        if queue_id is None:
            rows = await claims.claim_due(connection, by, positions, [count for _, count in picks])
        else:
            rows = await queues.claim_limited(connection, by, queue_id, positions, sum(count for _, count in picks))
        self._holdings.add(rows, self._lanes.handler_of)
        self.is_answer_lost, self.answered = False, self.begun
        harvest.rows += rows
        harvest.found |= self._lanes.advance(rows)
        return len(rows)

    async def release_lost(self, connection: Dedicated) -> None:
        """After an error and before the next claim: gives back what the table says is ours and we do not hold.

        No claim is under way while this runs. What was in hand before the look may have been settled during it.
        """
        after, known = 0, self._holdings.known()
        while page := await claims.running_of_node(connection, self._keeper.incarnation, after, PAGE):
            lost = [row.held for row in page if (row.held.id, row.held.fence) not in known]
            for held in lost:
                self._settler.submit(Settlement(held._replace(has_slot=True), Release()))  # it may have one
            self._vitals.released_claims += len(lost)
            after, known = page[-1].held.id, self._holdings.known()
        self.is_answer_lost = False


def _within(picks: Sequence[ScanQuota], rows: int) -> list[ScanQuota]:
    """`rows` rows in all, spread over the first so many places."""
    each, more = divmod(rows, len(picks))
    return [(place, min(count, each + (n < more))) for n, (place, count) in enumerate(picks[:rows])]
