"""1,000 diamonds whose middle parents end within a millisecond of each other, settled and decided on by many at once."""

import asyncio
from collections import Counter
from collections.abc import Sequence

import flows
import make

from horai.core.outcome import Complete
from horai.db import claims
from horai.db.claims import ClaimedRow
from horai.db.pool import Platform, connect
from horai.db.verify import verify
from horai.features.workflow import run_store
from horai.features.workflow.run_store import RunStart
from horai.features.workflow.runs import advance_runs, start_run
from horai.operations.scope import Scope

DIAMONDS = 1_000
ACTORS = 8


async def begin(scope: Scope, connection: Platform) -> list[int]:
    """So many runs of one workflow."""
    made = await flows.workflow(scope)
    ticks = [
        RunStart(await connection.fetchval("select nextval('horai.instance_id')"), made.job.created_at, None)
        for _ in range(DIAMONDS)
    ]
    for tick in ticks:
        await start_run(connection, made.job.id, tick)
    return [tick.instance_id for tick in ticks]


async def settle_and_ask(connection: Platform, rows: Sequence[ClaimedRow]) -> Counter[int]:
    """Settle calls and ask for their runs as a node does at the end of calls, until no other process holds the runs."""
    let_go: Counter[int] = Counter()
    for at in range(0, len(rows), 20):
        batch = rows[at : at + 20]
        done = await claims.finish_if_free(connection, [(row.held, Complete()) for row in batch])
        assert len(done) == len(batch)
        asked = await run_store.runs_of(connection, done)
        while asked:
            advanced = await advance_runs(connection, asked)
            let_go.update(row.id for row in advanced.woken)
            asked = advanced.busy
    return let_go


async def step(actors: Sequence[Platform], shares: Sequence[Sequence[ClaimedRow]]) -> Counter[int]:
    """All of them at once."""
    found = await asyncio.gather(*map(settle_and_ask, actors, shares))
    return sum(found, Counter[int]())


async def test_C6_the_last_node_of_a_thousand_diamonds_runs_exactly_once(url: str, connection: Platform):
    actors = [await connect(url, f"horai actor {number}") for number in range(ACTORS)]
    node = await make.node(connection)
    async with make.scope(url) as scope:
        started = await begin(scope, connection)
        roots = await make.claim(connection, node)
        assert len(roots) == DIAMONDS
        middle = await step(actors, [roots[number::ACTORS] for number in range(ACTORS)])
        assert (len(middle), set(middle.values())) == (2 * DIAMONDS, {1})

        parents = sorted(await make.claim(connection, node), key=lambda row: row.held.id)
        assert len(parents) == 2 * DIAMONDS
        # Neighbours are the two parents of one diamond: they end at the same moment, in the hands of two actors.
        last = await step(actors, [parents[number::ACTORS] for number in range(ACTORS)])

        assert (len(last), set(last.values())) == (DIAMONDS, {1}), "each is released once, by one of the nodes"
        ends = await make.claim(connection, node)
        assert len(ends) == DIAMONDS
        assert await make.claim(connection, node) == []
        await step(actors, [ends[number::ACTORS] for number in range(ACTORS)])

        phases = Counter([await flows.phase(connection, run) for run in started])
        assert phases == {"SUCCESS": DIAMONDS}
        assert await connection.fetchval("select count(*) from horai.instance_live") == 0
        assert await connection.fetchval("select count(*) from horai.instance_history where state = 2") == 4 * DIAMONDS
        assert [finding for finding in await verify(connection) if not finding.holds] == []
    for actor in actors:
        actor.terminate()
