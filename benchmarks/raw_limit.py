"""The denominator: what this PostgreSQL does with the bare shape of our hot path and no product around it.

One narrow hot table, one history, no events, fences or node leases: claim a batch of lanes on one connection while the
batch before is moved to history on another. Nothing that keeps our promises can be faster; the drain is measured in
parts of it.
"""

import asyncio
import time
from dataclasses import dataclass

import asyncpg

from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting
from horai.db.pool import Dedicated

SHARDS, LANES, BATCH, LANES_PER_CLAIM = 32, 25, 500, 64

SCHEMA = """
create schema bare;
create table bare.hot (
    id bigint generated always as identity primary key, job bigint not null, lane integer not null, shard smallint not null,
    state smallint not null default 0, attempt smallint not null default 0, fence bigint not null default 0, node integer,
    due timestamptz not null, fire_time timestamptz not null, idem_key text not null, payload bytea, claimed_at timestamptz
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);
create index on bare.hot (shard, lane, due, id);
create unique index on bare.hot (job, idem_key);
create table bare.history (
    id bigint not null, job bigint not null, state smallint not null, attempt smallint not null, fence bigint not null, node integer,
    fire_time timestamptz not null, claimed_at timestamptz, finished_at timestamptz not null default clock_timestamp(),
    idem_key text, payload bytea
) partition by range (finished_at);
create table bare.history_all partition of bare.history default;
create index on bare.history (job, finished_at);
create index on bare.history using brin (id);
"""

FILL = """
insert into bare.hot (job, lane, shard, due, fire_time, idem_key, payload)
select n, n % $2, n % $3, clock_timestamp() - interval '10 s' * random(), clock_timestamp(), n::text, repeat('x', 100)::bytea
from generate_series(1, $1::integer) n
"""

CLAIM = """
update bare.hot hot set state = 1, attempt = attempt + 1, fence = fence + 1, node = 1, claimed_at = clock_timestamp()
where hot.id = any (array(
    select due.id from unnest($1::smallint[], $2::integer[], $3::timestamptz[], $4::bigint[]) as lane(shard, lane, due, id)
    cross join lateral (
        select id from bare.hot h
        where h.shard = lane.shard and h.lane = lane.lane and h.state = 0 and (h.due, h.id) > (lane.due, lane.id)
            and h.due <= clock_timestamp()
        order by h.due, h.id limit $5 for update skip locked
    ) due
))
returning hot.id, hot.fence, hot.shard, hot.lane, hot.due
"""
CLAIM_FOR_HANDLERS = CLAIM.rstrip() + ", hot.job, hot.attempt, hot.fire_time, hot.idem_key, hot.payload\n"
"""A handler needs the row: its job, its time and its payload."""

SETTLE = """
with done as (
    delete from bare.hot hot using unnest($1::bigint[], $2::bigint[]) as held(id, fence)
    where hot.id = held.id and hot.fence = held.fence and hot.state = 1 and hot.node = 1 returning hot.*
)
insert into bare.history (id, job, state, attempt, fence, node, fire_time, claimed_at, idem_key, payload)
select id, job, 2, attempt, fence, node, fire_time, claimed_at, idem_key, payload from done
"""


@dataclass(slots=True)
class _Scan:
    """Where each lane's scan goes on."""

    cursors: dict[tuple[int, int], tuple[object, int]]

    def columns(self, lanes: list[tuple[int, int]]) -> tuple[list[int], list[int], list[object], list[int]]:
        at = [self.cursors[lane] for lane in lanes]
        return [lane[0] for lane in lanes], [lane[1] for lane in lanes], [c[0] for c in at], [c[1] for c in at]


async def sample(sitting: Sitting) -> Sample:
    """Instances claimed and settled per second."""
    return {"raw_limit": await rate_of(sitting, sitting.size.rows)}


async def rate_of(sitting: Sitting, rows: int, *, has_handlers: bool = False, lanes: int = LANES) -> float:
    """The same of a backlog of `rows`; with handlers, each row is given to a task that does nothing."""
    async with sitting.database("raw_limit", is_empty=True) as url:
        setup, claims, settles = [await asyncpg.connect(url) for _ in range(3)]
        await setup.execute(SCHEMA)
        await setup.execute(FILL, rows, lanes, SHARDS)
        await setup.execute("analyze bare.hot")
        await setup.execute("checkpoint")
        heads = await setup.fetch("select shard, lane, min(due) - interval '1 s' as due from bare.hot group by 1, 2")
        scan = _Scan({(row["shard"], row["lane"]): (row["due"], -1) for row in heads})
        started = time.perf_counter()
        drained = await _drain(claims, settles, scan, has_handlers=has_handlers)
        rate = drained / (time.perf_counter() - started)
        left = await setup.fetchval("select count(*) from bare.hot")
        for connection in (setup, claims, settles):
            await connection.close()
    if drained != rows or left:
        raise RuntimeError(f"drained {drained} of {rows}, {left} left")
    return rate


async def _handle(row: asyncpg.Record) -> None:
    """Do nothing with the row, as the no-op functions of the SDK's drain do."""
    del row


async def _drain(claims: Dedicated, settles: Dedicated, scan: _Scan, *, has_handlers: bool) -> int:
    drained, settling = 0, None
    while scan.cursors:
        lanes = list(scan.cursors)[:LANES_PER_CLAIM]
        each = max(1, BATCH // len(lanes))
        rows = await claims.fetch(CLAIM_FOR_HANDLERS if has_handlers else CLAIM, *scan.columns(lanes), each)
        found = dict.fromkeys(lanes, 0)
        for row in rows:
            lane = (row[2], row[3])
            found[lane] += 1
            scan.cursors[lane] = max(scan.cursors[lane], (row[4], row[0]))
        if has_handlers:
            await asyncio.gather(*map(_handle, rows))
        if settling is not None:
            await settling
        if rows:
            settling = asyncio.create_task(settles.execute(SETTLE, [r[0] for r in rows], [r[1] for r in rows]))
        drained += len(rows)
        for lane in lanes:
            cursor = scan.cursors.pop(lane)
            if found[lane] == each:
                scan.cursors[lane] = cursor  # to the back: every lane has its turn
    if settling is not None:
        await settling
    return drained


SCENARIO = Scenario("raw_limit", "the bare shape on PostgreSQL", sample, (Line("raw_limit", "/s"),))
