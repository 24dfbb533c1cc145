"""kill -9 in the middle of workflows: while nodes of runs are at work, while a run is started, and while a run is open.

Each node of each run takes effect exactly once, in its order, and every run ends in success.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import flows
import pytest
from harness import Client
from sizes import IS_LONG

from faults.cluster import Cluster, cluster
from faults.load import RETRY
from faults.outside import ReceiverProcess, job_document, lost_attempts, receiving, until, violations
from horai.db.pool import Platform

LEASE = 2.0
RUNS = 100 if IS_LONG else 8
ROUNDS = 10 if IS_LONG else 1
HELD = 4711
"""The advisory lock that the start of a run waits for, before it is committed."""
HOLD_STARTS = f"""
create function hold_starts() returns trigger language plpgsql as $$
begin
    perform pg_advisory_xact_lock({HELD});
    return new;
end $$;
create trigger hold_starts before update of node on horai.instance_live
for each row when (new.node = 0) execute function hold_starts();
"""
LET_STARTS_GO = "drop trigger hold_starts on horai.instance_live; drop function hold_starts();"
NOTE_STARTS = """
create table started_by (run_id bigint, node bigint);
create function note_start() returns trigger language plpgsql as $$
begin
    insert into public.started_by values (old.id, old.node);
    return new;
end $$;
create trigger note_start after update of node on horai.instance_live
for each row when (new.node = 0) execute function note_start();
"""


@asynccontextmanager
async def speaking(nodes: Cluster) -> AsyncGenerator[Client]:
    """To the first of the nodes."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=15)) as session:
        yield Client(next(iter(nodes.doors.values())), session)


async def define(api: Client, receiver: ReceiverProcess, **delays: float) -> None:
    """The diamond, each of whose nodes calls the receiver, which answers it after its delay."""
    for name in flows.DIAMOND:
        target = receiver.url(f"/{name}?delay={delays.get(name, 0):g}")
        made = await api("POST", "/api/v1/jobs", job_document(name, target, timeout="10s", retry=RETRY))
        assert made.status == 201, made.json
    nodes = [{"name": name, "after": list(after)} for name, after in flows.DIAMOND.items()]
    made = await api("POST", "/api/v1/workflows", {"name": "nightly", "nodes": nodes})
    assert made.status == 201, made.json


async def trigger(api: Client, count: int, stem: str = "run") -> list[int]:
    """So many runs; their ids."""
    replies = await asyncio.gather(
        *(api("POST", "/api/v1/workflows/nightly/trigger", Idempotency_Key=f"{stem}-{n}") for n in range(count))
    )
    assert {reply.status for reply in replies} == {202}
    return [int(reply.json["run"]["id"]) for reply in replies]


async def all_succeeded(connection: Platform, runs: Sequence[int], within: float) -> None:
    async def are() -> bool:
        found = await connection.fetchval(
            "select count(*) from horai.workflow_run where id = any ($1::bigint[]) and phase = 2", list(runs)
        )
        return found == len(runs)

    await until(are, within, f"{len(runs)} runs end in success")


async def faults(connection: Platform, receiver: ReceiverProcess, runs: Sequence[int]) -> list[str]:
    """Return the evidence against each node of each run having taken effect exactly once."""
    rows: Sequence[Any] = await connection.fetch(
        "select node.run_id, node.name, node.generation, instance.idem_key, instance.state from horai.workflow_node node"
        " join horai.job_instance instance on instance.instance_id = node.instance_id"
    )
    names = sorted((row["run_id"], row["name"]) for row in rows)
    hits, lost = receiver.by_key(), await lost_attempts(connection)
    effects = {row["idem_key"]: sum(hit.is_effective for hit in hits.get(row["idem_key"], ())) for row in rows}
    return [
        *(["a run has other nodes"] if names != sorted((run, name) for run in runs for name in flows.DIAMOND) else []),
        *(f"{row['name']} of {row['run_id']} is {row['state']}" for row in rows if row["state"] != "SUCCESS"),
        *(f"{key} took effect {times} times" for key, times in effects.items() if times != 1),
        *(f"called and unknown: {key}" for key in hits.keys() - effects.keys()),
        *(f"called too often: {key}" for key, calls in hits.items() if len(calls) - 1 > lost.get(key, 0)),
        *await violations(connection),
    ]


@pytest.mark.timeout(900 if IS_LONG else 120)
async def test_C6_C35_nodes_of_runs_that_were_at_work_when_their_process_was_killed_take_effect_once(
    short_place: Path, url: str, connection: Platform
) -> None:
    runs: list[int] = []
    with receiving(short_place / "flows.hits") as receiver:
        async with cluster(short_place, url, "one", "two", lease=LEASE) as nodes:
            async with speaking(nodes) as api:
                await define(api, receiver, left=0.3, right=0.3)
            for number in range(ROUNDS):
                async with speaking(nodes) as api:
                    runs += await trigger(api, RUNS, f"round {number}")
                await until(lambda: in_flight(connection), 30, "nodes of runs are at work on both")
                victim = ("one", "two")[number % 2]
                await nodes.kill(victim)
                await all_succeeded(connection, runs, 60)
                if number + 1 < ROUNDS:
                    await nodes.start(victim)
            lost = await lost_attempts(connection)
            found = await faults(connection, receiver, runs)
    print(f"{ROUNDS} kills: {len(runs)} runs, {len(lost)} attempts lost with their process")
    assert found == []
    assert lost != {}, "nothing was in flight, and this would prove nothing"


async def in_flight(connection: Platform) -> bool:
    """Return true if each process is at work on the second row of a diamond."""
    return (
        await connection.fetchval(
            "select count(distinct live.node) from horai.workflow_node node"
            " join horai.instance_live live on live.id = node.instance_id"
            " where live.state = 1 and node.name in ('left', 'right')"
        )
        == 2
    )


@pytest.mark.timeout(120)
async def test_C6_C35_another_process_decides_the_runs_whose_nodes_a_killed_process_had_only_settled(
    short_place: Path, url: str, connection: Platform
) -> None:
    """The other process has never heard of these runs, and saw none open when it last swept."""
    with receiving(short_place / "undecided.hits") as receiver:
        async with cluster(short_place, url, "one", "two", lease=LEASE) as nodes:
            async with speaking(nodes) as api:
                await define(api, receiver, load=1)
                await connection.execute(NOTE_STARTS)
                runs = await trigger(api, 16)
            await until(lambda: are_there(connection, runs), 30, "the runs are there")
            async with connection.transaction():
                await connection.execute("select from horai.workflow_run for update")  # no process decides
                await until(lambda: have_loaded(connection, runs), 30, "every first node is settled")
                unheard = {name: await known_to(connection, name) for name in ("one", "two")}
                await nodes.kill(max(unheard, key=lambda name: unheard[name]))
            await all_succeeded(connection, runs, LEASE + 25)
            found = await faults(connection, receiver, runs)
    assert found == []
    assert max(unheard.values()) > 0, "the other process knew them all, and this would prove nothing"


async def are_there(connection: Platform, runs: Sequence[int]) -> bool:
    return len(runs) == await connection.fetchval("select count(*) from horai.workflow_run")


async def have_loaded(connection: Platform, runs: Sequence[int]) -> bool:
    """Return true if the first node of each run has succeeded; its own transaction sees what others commit."""
    return len(runs) == await connection.fetchval(
        "select count(*) from horai.workflow_node node join horai.instance_history past on past.id = node.instance_id"
        " where node.name = 'load' and past.state = 2"
    )


async def known_to(connection: Platform, name: str) -> int:
    """Count the runs that a process of this name started, and whose first node it ran too."""
    return await connection.fetchval(
        "select count(*) from horai.workflow_node node join horai.instance_history past on past.id = node.instance_id"
        " join public.started_by tick on tick.run_id = node.run_id join horai.node own on own.incarnation = tick.node"
        " where node.name = 'load' and past.node = tick.node and own.name = $1",
        name,
    )


@pytest.mark.timeout(120)
async def test_C6_C35_a_run_whose_process_was_killed_before_its_start_was_committed_is_started_by_another(
    short_place: Path, url: str, connection: Platform
) -> None:
    with receiving(short_place / "starts.hits") as receiver:
        async with cluster(short_place, url, "one", lease=LEASE) as nodes:
            async with speaking(nodes) as api:
                await define(api, receiver)
                await connection.execute(HOLD_STARTS)
                await connection.execute("select pg_advisory_lock($1)", HELD)
                runs = await trigger(api, 3)
            await until(lambda: is_start_held(connection, runs), 30, "a run is being started")
            await nodes.kill("one")
            await end_what_the_dead_asked(connection)
            await connection.execute("select pg_advisory_unlock($1)", HELD)
            await connection.execute(LET_STARTS_GO)
            await nodes.start("two")
            await all_succeeded(connection, runs, 60)
            found = await faults(connection, receiver, runs)
    assert found == []
    attempts = await connection.fetch("select attempt from horai.instance_history where id = any ($1::bigint[])", runs)
    assert [row["attempt"] for row in attempts] == [2] * len(runs), "each was tried again, and no run was there"


@pytest.mark.timeout(120)
async def test_U6_C35_an_instance_whose_process_was_killed_while_its_run_was_open_ends_with_the_run_at_its_first_attempt(
    short_place: Path, url: str, connection: Platform
) -> None:
    with receiving(short_place / "open.hits") as receiver:
        async with cluster(short_place, url, "one", lease=LEASE) as nodes:
            async with speaking(nodes) as api:
                await define(api, receiver)
                paused = await api("POST", "/api/v1/jobs/load/pause")
                assert paused.status == 200, paused.json
                runs = await trigger(api, 3)
            await until(lambda: are_there(connection, runs), 30, "the runs are there")
            await nodes.kill("one")
            await nodes.start("two")
            await until(lambda: is_rescued(connection), 30, "what the killed process held is given back")
            async with speaking(nodes) as api:
                assert (await api("POST", "/api/v1/jobs/load/resume")).status == 200
            await all_succeeded(connection, runs, 60)
            found = await faults(connection, receiver, runs)
    assert found == []
    rows = await connection.fetch(
        "select state, attempt, retry_count from horai.instance_history where id = any ($1::bigint[])", runs
    )
    assert [tuple(row) for row in rows] == [(2, 1, 0)] * len(runs)


async def is_rescued(connection: Platform) -> bool:
    return await connection.fetchval("select exists (select from horai.node where rescued_at is not null)")


async def is_start_held(connection: Platform, runs: Sequence[int]) -> bool:
    """Every instance is claimed, none of their runs is committed, and the start of one waits."""
    row = await connection.fetchrow(
        "select (select count(*) from horai.workflow_run) as started,"
        " (select count(*) from horai.instance_live where id = any ($1::bigint[]) and state = 1) as running,"
        " exists (select from pg_locks where locktype = 'advisory' and not granted) as is_held",
        list(runs),
    )
    assert row is not None
    return (row["started"], row["running"], row["is_held"]) == (0, len(runs), True)


async def end_what_the_dead_asked(connection: Platform) -> None:
    """A server learns of a client's death when it answers: what is held up would be done after all."""
    await connection.execute(
        "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and not granted"
    )

    async def is_gone() -> bool:
        return not await connection.fetchval(
            "select exists (select from pg_locks where locktype = 'advisory' and not granted)"
        )

    await until(is_gone, 10, "the start is broken off")
