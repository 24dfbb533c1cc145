"""Durable functions whose workers are killed, frozen or lose answers: a finished step never runs again, and none is lost.

The ledger has every effect of every step with the fence of its claim. A step that was interrupted may have run, and a frozen
worker ends the step that it was in; but no claim runs a step that an earlier claim has recorded. The long form (HORAI_LONG=1)
kills 200 workers.
"""

import asyncio
import signal
from collections import Counter
from pathlib import Path

import pytest
from sizes import IS_LONG

from faults.outside import until
from faults.proxy import Proxy
from faults.scene import WITHIN, Scene, scene
from faults.worker_process import WorkerProcess
from horai.db.pool import Platform

ROUNDS = 200 if IS_LONG else 2
MANY = 5
"""Instances of each job in one round."""
ROUNDS_AT_ONCE = 2
"""Rounds whose instances are live together: one that was lost twice runs alone in a process, which takes its time."""

CODE = """
import os
from typing import Any
import asyncpg
from horai import Horai, Instance, Retry, gather, sleep, step, step_key, wait_for

app = Horai("faults")
WRITE = "insert into public.ledger (key, fence) values ($1, $2)"
AGAIN = dict(base="10ms", jitter="none", max_lost=1000)


async def note(fence: int, number: int) -> int:
    connection = await asyncpg.connect(os.environ["HORAI_DATABASE_URL"])
    try:
        await connection.execute(WRITE, step_key(), fence)
    finally:
        await connection.close()
    return number


async def debit(connection: asyncpg.Connection, fence: int) -> None:
    await connection.execute(WRITE, step_key(), fence)


@app.job(retry=Retry(max=50, **AGAIN))
async def walk(instance: Instance[Any]) -> int:
    total = 0
    for number in range(4):
        total += await step("note", note, instance.fence, number)
        await sleep(1.05 if number == 1 else 0.02)
    connection = await asyncpg.connect(os.environ["HORAI_DATABASE_URL"])
    try:
        async with connection.transaction():
            await step("debit", debit, connection, instance.fence, conn=connection)
    finally:
        await connection.close()
    return total


@app.job(retry=Retry(max=50, **AGAIN))
async def collect(instance: Instance[Any]) -> list[Any]:
    first = await wait_for("item")
    await step("note", note, instance.fence, 1)
    second, other = await gather(wait_for("item"), wait_for("none", timeout="1s"))
    return [first, second, await wait_for("item"), other]


@app.job(retry=Retry(max=50, **AGAIN))
async def part(instance: Instance[int]) -> int:
    return await step("note", note, instance.fence, instance.payload)


@app.job(retry=Retry(max=50, **AGAIN))
async def order(instance: Instance[Any]) -> list[int]:
    first = await part.call(1)
    rest = await gather(part.options(key="a").call(2), part.options(key="b").call(3))
    await step("note", note, instance.fence, 4)
    return [first, *rest]


@app.job(retry=Retry(max=0, **AGAIN))
async def undo(instance: Instance[Any]) -> None:
    async def back(number: int) -> None:
        await note(instance.fence, number)

    for number in range(3):
        await step("book", note, instance.fence, number, compensate=back, retry=Retry(max=3, base="10ms", jitter="none"))
    await sleep(1.05)
    raise ValueError("no address")
"""

LEDGER = "create table public.ledger (key text not null, fence bigint not null)"
RECORDS = """
    select job.name as job, step.kind, step.name, step.n, count(*) as records
    from horai.step join horai.job_instance instance using (instance_id) join horai.job on job.id = instance.job_id
    where step.kind in (1, 4) and step.progress = 1 group by 1, 2, 3, 4
"""
KEYED = """
    select instance_id, kind, name, n, fence, finished_at,
        instance_id || ':' || name || ':' || n || case kind when 4 then ':compensation' else '' end as key
    from horai.step where kind in (1, 4)
"""
RAN_AGAIN = f"select count(*) from public.ledger join ({KEYED}) step using (key) where ledger.fence > step.fence"
NO_EFFECT = (
    f"select count(*) from ({KEYED}) step where not exists (select from public.ledger where ledger.key = step.key)"
)
OUT_OF_ORDER = """
    select count(*) from horai.step one join horai.step other using (instance_id, kind, name)
    where kind in (1, 4) and (one.n < other.n) = (kind = 1) and one.n <> other.n
        and (one.fence > other.fence or one.finished_at > other.finished_at)
"""
"""Steps of one name are recorded in their order, and compensations in the reverse order, by claims that follow one another."""
CALLS = """
    select count(*), count(distinct (parent_id, name, n)), count(*) filter (where is_open) from horai.child_call
"""
"""Each call has one child, and its end was told."""
IN_THE_MIDDLE = """
    select exists (
        select from horai.step join horai.instance_live live on live.id = step.instance_id
        join horai.node on node.incarnation = live.node
        where node.name = $1 and live.state = 1 and step.fence = live.fence
    )
"""


@pytest.fixture
def place(short_place: Path, request: pytest.FixtureRequest) -> Path:
    return short_place / f"steps-{abs(hash(request.node.nodeid))}"


async def until_in_the_middle(worker: WorkerProcess, connection: Platform) -> None:
    """Wait until the worker has recorded a step of an instance that it runs."""
    name = worker.name
    await until(lambda: connection.fetchval(IN_THE_MIDDLE, name), WITHIN, "a function has finished a step and goes on")


async def results(connection: Platform, job: str) -> Counter[str | None]:
    rows = await connection.fetch(
        "select past.result::jsonb::text as result from horai.instance_history past join horai.job on job.id = past.job_id where job.name = $1",
        job,
    )
    return Counter(row["result"] for row in rows)


async def reckon(connection: Platform, counts: dict[str, int]) -> None:
    """Hold the records against the ledger: every step is recorded once, took effect, and ran in no later claim."""
    expected = {
        "walk": {**{(1, "note", n): counts["walk"] for n in range(1, 5)}, (1, "debit", 1): counts["walk"]},
        "collect": {(1, "note", 1): counts.get("collect")},
        "undo": {(kind, "book", n): counts.get("undo") for kind in (1, 4) for n in range(1, 4)},
        "order": {(1, "note", 1): counts.get("order")},
        "part": {(1, "note", 1): counts.get("part")},
    }
    found: dict[str, dict[tuple[int, str, int], int]] = {}
    for row in await connection.fetch(RECORDS):
        found.setdefault(row["job"], {})[row["kind"], row["name"], row["n"]] = row["records"]
    assert found == {job: expected[job] for job in counts}
    assert await connection.fetchval(RAN_AGAIN) == 0
    assert await connection.fetchval(NO_EFFECT) == 0
    assert await connection.fetchval(OUT_OF_ORDER) == 0
    debits = "select count(*) from public.ledger where key like '%:debit:1'"
    assert await connection.fetchval(debits) == counts["walk"]  # in the transaction of its record: exactly once
    assert await results(connection, "walk") == {"6": counts["walk"]}
    if "collect" in counts:
        assert await results(connection, "collect") == {"[0, 1, 2, null]": counts["collect"]}
    if "order" in counts:
        assert await results(connection, "order") == {"[1, 2, 3]": counts["order"]}
        calls = await connection.fetchrow(CALLS)
        assert calls is not None
        assert tuple(calls.values()) == (counts["part"], counts["part"], 0)
    if "undo" in counts:
        letters = await connection.fetch("select distinct error_code from horai.dead_letter")
        assert [row["error_code"] for row in letters] == ["ValueError"]


async def send(stage: Scene, ids: list[int], *numbers: int) -> None:
    for number in numbers:
        for id_ in ids:
            await stage.app.signal(str(id_), "item", number)


@pytest.mark.timeout(7200 if IS_LONG else 180)
async def test_steps_signals_and_compensations_survive_workers_that_are_killed(
    url: str, place: Path, connection: Platform
) -> None:
    await connection.execute(LEDGER)
    async with scene(url, place, connection, CODE) as stage:
        for number in range(ROUNDS):
            victim = await stage.worker(f"victim-{number}")
            if number and number % ROUNDS_AT_ONCE == 0:
                await stage.until_final()
            await stage.add("walk", [None] * MANY)
            await stage.add("undo", [None] * MANY)
            await stage.add("order", [None] * MANY)
            collecting = await stage.add("collect", [None] * MANY)
            await send(stage, collecting, 0)
            await until_in_the_middle(victim, connection)
            victim.kill()
            await send(stage, collecting, 1, 2)
        await stage.worker("stays")
        ended = await stage.until_final()
    count = MANY * ROUNDS
    assert ended == {
        "walk": Counter(SUCCESS=count),
        "collect": Counter(SUCCESS=count),
        "order": Counter(SUCCESS=count),
        "part": Counter(SUCCESS=3 * count),
        "undo": Counter(DEAD=count),
    }
    assert await connection.fetchval("select count(*) from horai.attempt where error_code = 'NODE_LOST'") > 0
    await reckon(connection, {"walk": count, "collect": count, "undo": count, "order": count, "part": 3 * count})


@pytest.mark.timeout(3600 if IS_LONG else 180)
async def test_a_frozen_worker_records_nothing_after_its_lease(url: str, place: Path, connection: Platform) -> None:
    await connection.execute(LEDGER)
    async with scene(url, place, connection, CODE) as stage:
        frozen = await stage.worker("frozen")
        await stage.add("walk", [None] * MANY)
        await stage.add("undo", [None] * MANY)
        await until_in_the_middle(frozen, connection)
        frozen.signal(signal.SIGSTOP)
        await stage.worker("stays")
        await until(frozen.is_rescued(connection), WITHIN, "its work is given to others")
        frozen.signal(signal.SIGCONT)
        ended = await stage.until_final()
    assert ended == {"walk": Counter(SUCCESS=MANY), "undo": Counter(DEAD=MANY)}
    await reckon(connection, {"walk": MANY, "undo": MANY})


LOST = {
    "record_steps": False,
    "load_steps": False,
    "suspend_if_running": True,
    "take_signals": True,
    "mark_deaths": True,
    "open_calls": True,
    "take_calls": True,
}
"""The statements whose answers are lost; True: the answer to the COMMIT of their transactions."""


@pytest.mark.timeout(3600 if IS_LONG else 180)
async def test_a_lost_answer_neither_repeats_nor_loses_a_step(url: str, place: Path, connection: Platform) -> None:
    await connection.execute(LEDGER)
    async with Proxy(url).listening() as proxy, scene(proxy.url, place, connection, CODE) as stage:
        await stage.worker("unlucky")
        for statement, at_commit in LOST.items():
            trap = proxy.cut_after(statement, at_commit=at_commit)
            await stage.add("walk", [None] * MANY)
            await stage.add("undo", [None] * MANY)
            await stage.add("order", [None] * MANY)
            collecting = await stage.add("collect", [None] * MANY)
            await send(stage, collecting, 0, 1, 2)
            await asyncio.wait_for(trap.sprung.wait(), WITHIN)
        ended = await stage.until_final()
    count = MANY * len(LOST)
    assert ended == {
        "walk": Counter(SUCCESS=count),
        "collect": Counter(SUCCESS=count),
        "order": Counter(SUCCESS=count),
        "part": Counter(SUCCESS=3 * count),
        "undo": Counter(DEAD=count),
    }
    assert await connection.fetchval("select count(*) from horai.attempt where late") == 0
    await reckon(connection, {"walk": count, "collect": count, "undo": count, "order": count, "part": 3 * count})


CUTS = 50 if IS_LONG else 2
CUT_ALL = """
    select count(pg_terminate_backend(pid)) from pg_stat_activity
    where datname = current_database() and application_name like 'horai%' and application_name not like 'horai client%'
        and pid <> pg_backend_pid()
"""
"""Every session of nodes and workers. That of the client, which adds the instances, belongs to the test."""


@pytest.mark.timeout(3600 if IS_LONG else 180)
async def test_steps_sleeps_and_calls_survive_a_database_that_ends_every_session(
    url: str, place: Path, connection: Platform
) -> None:
    """As a restart or a failover does: transactions under way are undone, and every process connects again."""
    await connection.execute(LEDGER)
    async with scene(url, place, connection, CODE) as stage:
        worker = await stage.worker("stays")
        for _ in range(CUTS):
            await stage.add("walk", [None] * MANY)
            await stage.add("order", [None] * MANY)
            await until_in_the_middle(worker, connection)
            await until(
                lambda: connection.fetchval(CUT_ALL), WITHIN, "there were sessions"
            )  # after a cut, they come back
        ended = await stage.until_final()
    count = MANY * CUTS
    assert ended == {
        "walk": Counter(SUCCESS=count),
        "order": Counter(SUCCESS=count),
        "part": Counter(SUCCESS=3 * count),
    }
    await reckon(connection, {"walk": count, "order": count, "part": 3 * count})
