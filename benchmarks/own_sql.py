"""The second denominator: our own statements on our own tables, with no engine, no handlers and no objects per row.

Claims run on one connection while the batch before is settled on another. What the engine loses against it is Python.
"""

import asyncio
import time
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import asyncpg

from benchmarks import backlog
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting
from horai.core.limits import SHARDS
from horai.db import nodes
from horai.db.catalog import sql
from horai.db.pool import Dedicated, connect

BATCH, SCANS_PER_CLAIM = 500, 64
Scan = tuple[int, int]
Cursor = tuple[datetime, int]


async def sample(sitting: Sitting) -> Sample:
    """Instances claimed and settled per second."""
    async with sitting.database("own_sql") as url:
        await backlog.make_jobs(url)
        setup, claims, settles = [await connect(url, "bench") for _ in range(3)]
        await backlog.fill(setup, sitting.size.rows)
        store, cursors = await Store.open(setup, claims, settles), await scans_of(setup)
        started = time.perf_counter()
        await store.drain(cursors)
        rate = sitting.size.rows / (time.perf_counter() - started)
        await backlog.require_settled(setup, sitting.size.rows)
        for connection in (setup, claims, settles):
            await connection.close()
    return {"own_sql": rate}


async def scans_of(connection: Dedicated) -> dict[Scan, Cursor]:
    """Every (shard, lane), each with its cursor before all."""
    lanes = await connection.fetch("select id from horai.lane")
    start = await connection.fetchval("select clock_timestamp() - interval '1 day'")
    return {(shard, lane["id"]): (start, -1) for lane in lanes for shard in range(SHARDS)}


class Store:
    """The bare statements of a claim's life, as one node."""

    def __init__(self, node: int, claims: Dedicated, settles: Dedicated, places: Mapping[str, int]) -> None:
        self._node = node
        self._claims = claims
        self._settles = settles
        self._at = tuple(places[name] for name in ("id", "attempt", "fence", "lane", "due"))
        self._settling: asyncio.Task[list[asyncpg.Record]] | None = None
        self._claims_made = 0
        self.settled = 0

    @classmethod
    async def open(cls, setup: Dedicated, claims: Dedicated, settles: Dedicated) -> "Store":
        """Registers a node whose lease outlives the measurement."""
        node, _ = await nodes.register_node(setup, "bench", "bench", 1, "bench", timedelta(hours=1))
        statement = await claims.prepare(sql("claim_due"))
        places = {attribute.name: place for place, attribute in enumerate(statement.get_attributes())}
        return cls(node, claims, settles, places)

    async def drain(self, cursors: dict[Scan, Cursor]) -> None:
        """Claims from every scan until it is empty, and settles; leaves the cursors where it stopped."""
        waiting = deque(cursors)
        while waiting:
            chosen = [waiting.popleft() for _ in range(min(len(waiting), SCANS_PER_CLAIM))]
            each = max(1, BATCH // len(chosen))
            rows = await self._claim(chosen, [cursors[scan] for scan in chosen], each)
            found = dict.fromkeys(chosen, 0)
            row_id, _, _, lane, due = self._at
            for row in rows:
                scan = (row[row_id] % SHARDS, row[lane])
                found[scan] += 1
                cursors[scan] = max(cursors[scan], (row[due], row[row_id]))
            waiting.extend(scan for scan in chosen if found[scan] == each)  # to the back: every scan has its turn
            await self.settle(rows)
        await self.flush()

    async def _claim(self, scans: Sequence[Scan], cursors: Sequence[Cursor], each: int) -> list[asyncpg.Record]:
        self._claims_made += 1
        return await self._claims.fetch(
            sql("claim_due"),
            self._node,
            self._claims_made,
            [scan[0] for scan in scans],
            [scan[1] for scan in scans],
            [cursor[0] for cursor in cursors],
            [cursor[1] for cursor in cursors],
            [each] * len(scans),
        )

    async def settle(self, rows: Sequence[asyncpg.Record]) -> None:
        """Waits for the batch before, and has this one settled meanwhile."""
        await self.flush()
        if rows:
            guards = ["{" + ",".join([str(row[place]) for row in rows]) + "}" for place in self._at[:3]]
            writing = self._settles.fetch(sql("finish_if_running"), *guards, self._node, [])
            self._settling = asyncio.create_task(writing)
            self.settled += len(rows)

    async def flush(self) -> None:
        """Returns when nothing is being settled."""
        if self._settling is not None:
            await self._settling
            self._settling = None


SCENARIO = Scenario("own_sql", "our SQL without engine and handlers", sample, (Line("own_sql", "/s"),))
