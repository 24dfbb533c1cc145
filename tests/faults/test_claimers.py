"""Many claimers over the same rows."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

import make
from sizes import IS_LONG

from horai.core.limits import SHARDS
from horai.core.outcome import Complete
from horai.db import claims, settlements
from horai.db.claims import Claim, ClaimedBy, Position
from horai.db.pool import Platform, connect
from horai.db.verify import verify

CLAIMERS = 8
ROWS = 100_000 if IS_LONG else 20_000
PER_LANE = 50


class Tally:
    """Executions by (instance, attempt)."""

    def __init__(self) -> None:
        self.executions: Counter[tuple[int, int]] = Counter()
        self.by_claimer: Counter[int] = Counter()

    def run(self, claimer: int, claimed: Iterable[claims.ClaimedRow]) -> None:
        for row in claimed:
            self.executions[row.held.id, row.held.attempt] += 1
            self.by_claimer[claimer] += 1


async def claimer(url: str, lane: int, tally: Tally) -> None:
    """Claims, runs and settles until nothing is live any more."""
    connection = await connect(url, "horai test claimer")
    node = await make.node(connection, timedelta(hours=1))
    positions = [Position(shard, lane, make.LONG_AGO, -1) for shard in range(SHARDS)]
    claim_id = 0
    while await connection.fetchval("select exists (select from horai.instance_live)"):
        claim_id += 1
        by = ClaimedBy(node, claim_id, datetime.now(UTC))
        claimed = await claims.claim_due(connection, by, positions, [PER_LANE] * SHARDS)
        tally.run(node, claimed)
        await settle(connection, [row.held for row in claimed])
    await connection.close()


async def settle(connection: Platform, held: Sequence[Claim]) -> None:
    """Settle as the settler does: a row that another transaction has locked is tried again.

    Another claimer's scan may hold it shortly.
    """
    left = list(held)
    while left:
        applied = await settlements.apply(connection, [(claim, Complete()) for claim in left])
        left = [claim for claim in left if claim.id not in applied.ids]
        assert {claim.id for claim in left} == await claims.still_running(connection, left)


async def test_B5_eight_claimers_execute_each_attempt_of_many_rows_once(url: str, connection: Platform) -> None:
    tally = Tally()
    async with make.scope(url) as scope:
        job = await make.job(scope)
        for _ in range(ROWS // 10_000):
            await make.many(scope, 10_000)

    await asyncio.gather(*(claimer(url, job.lane_id, tally) for _ in range(CLAIMERS)))

    assert len(tally.executions) == ROWS
    assert set(tally.executions.values()) == {1}
    assert {attempt for _, attempt in tally.executions} == {1}
    assert len(tally.by_claimer) == CLAIMERS
    assert await connection.fetchval("select count(*) from horai.instance_history where state = 2") == ROWS
    assert [finding for finding in await verify(connection) if not finding.holds] == []
