"""Rows written by hand, for tests of single statements that the product's own functions would not lead to."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from databases import Superuser, superuser

from horai.core.states import FINAL, State
from horai.db.claims import Claim
from horai.db.pool import Platform

NODE = 7
CLAIM = 70


async def instance(connection: Platform, state: State, **columns: Any) -> Claim:
    """An instance in `state`, wherever it belongs; the claim that would settle it were it running."""
    row = {"job_id": 1, "lane": 1, "shard": 0, "attempt": 3, "fence": 5, "retry_count": 2, "node": NODE, **columns}
    instance_id = await connection.fetchval("select nextval('horai.instance_id')")
    if state in FINAL:
        await connection.execute(
            "insert into horai.instance_history (id, job_id, fire_time, execute_time, born_for, slot, created_at, finished_at,"
            " fence, node, tenant_id, lane, attempt, retry_count, events, state, reason)"
            " select $1::bigint, $2::bigint, now(), now(), now(), -$1::bigint, now(), now(), $3::bigint, $4::bigint, 1, $5::integer,"
            " $6::integer, $7::integer, 0, $8::smallint, case when $8::smallint = 5 then 1 end",
            instance_id, row["job_id"], row["fence"], row["node"], row["lane"], row["attempt"], row["retry_count"], int(state),
        )  # fmt: skip
    else:
        owner = row["node"] if state is State.RUNNING else None
        await connection.execute(
            "insert into horai.instance_live (id, job_id, due, fire_time, execute_time, born_for, slot, tenant_id, lane, shard,"
            " attempt, fence, retry_count, state, node, claim, claimed_at)"
            " select $1::bigint, $2::bigint, now(), now(), now(), now(), -$1::bigint, 1, $3::integer, $4::smallint, $5::integer, $6::bigint,"
            " $7::integer, $8::smallint, $9::bigint,"
            " case when $9::bigint is not null then $10::bigint end, case when $9::bigint is not null then now() end",
            instance_id, row["job_id"], row["lane"], row["shard"], row["attempt"], row["fence"], row["retry_count"],
            int(state), owner, CLAIM,
        )  # fmt: skip
    return Claim(instance_id, row["job_id"], row["attempt"], row["fence"], row["node"], row["retry_count"])


async def job(connection: Platform, *, paused: bool = False) -> int:
    """Insert a job with a lane of its own, whose definition no test will read; return its id."""
    lane = await connection.fetchval(
        "insert into horai.lane (tenant_id, queue, priority, handler) values (1, 'q', 2, '') returning id"
    )
    return await connection.fetchval(
        "insert into horai.job (tenant_id, name, status, lane_id, definition) values (1, 'j', $1, $2, '{}') returning id",
        int(paused),
        lane,
    )


async def everything(connection: Platform) -> dict[str, list[str]]:
    """All that statements about instances write, as text."""
    tables = ("instance_live", "instance_history", "attempt", "event", "dead_letter")
    return {
        table: [r[0] for r in await connection.fetch(f"select t::text from horai.{table} t order by 1")]
        for table in tables
    }


async def events(connection: Platform, instance_id: int) -> list[tuple[int | None, str]]:
    """(seq, kind) of an instance, as the public stream tells them."""
    rows = await connection.fetch(
        "select seq, kind from horai.instance_event where instance_id = $1 order by seq nulls last, at", instance_id
    )
    return [(row["seq"], row["kind"]) for row in rows]


@asynccontextmanager
async def connections(url: str, count: int, lock_timeout: float = 10.0) -> AsyncGenerator[list[Superuser]]:
    """Further connections to the test's database."""
    opened = [await superuser(url) for _ in range(count)]
    for each in opened:
        await each.execute(f"set lock_timeout = '{lock_timeout}s'")
    try:
        yield opened
    finally:
        for each in opened:
            each.terminate()


async def until_blocked(watcher: Platform, blocked: Platform) -> None:
    """Returns when `blocked` waits for a lock."""
    pid = blocked.get_server_pid()
    await until(lambda: watcher.fetchval("select cardinality(pg_blocking_pids($1)) > 0", pid))


async def until(holds: Callable[[], Coroutine[Any, Any, bool]], within: float = 30.0) -> None:
    """Returns when the question is answered with yes."""
    async with asyncio.timeout(within):
        while not await holds():
            await asyncio.sleep(0.01)


async def nodes_to_rescue(connection: Platform) -> list[int]:
    """Return the fenced or stopped incarnations that may still hold claims."""
    rows = await connection.fetch(
        "select incarnation from horai.node where rescued_at is null and (fenced_at is not null or stopped_at is not null)"
        " order by incarnation"
    )
    return [row["incarnation"] for row in rows]
