"""A node is frozen for three leases with calls in flight, and comes back: what it says then is kept, and changes nothing."""

import asyncio
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import harness
import pytest
from harness import FAST, Client
from receiver import Answer, Receiver
from sizes import IS_LONG

from faults.cluster import Cluster, cluster, database_now, incarnation_of, is_balanced, shares
from faults.load import RETRY, load
from faults.outside import job_document, receiving, until, violations
from faults.proxy import Proxy
from faults.reckoning import reckon
from horai.core.settings import EngineSettings
from horai.db.pool import Platform

NODES = ("one", "two", "three") if IS_LONG else ("one", "two")
ROUNDS = 6 if IS_LONG else 1
RATE = 300 if IS_LONG else 60
LEASE = 8.0 if IS_LONG else 2.0
SLACK = 2.0
"""Seconds for a busy machine."""
CALM = 2.0 if IS_LONG else 0.5
BURST = (300 if IS_LONG else 200) * len(NODES)
HOOK = "/hook?delay=0.3"
"""Long enough that every node has calls in flight at any time."""


async def test_C35_rows_that_a_silent_node_holds_locked_are_rescued_with_its_lease(
    url: str, connection: Platform
) -> None:
    """Cut off in the middle of a transaction, or frozen there: its connections look alive, and so do its locks."""
    lease = FAST.lease.total_seconds()
    async with Receiver() as receiver, Proxy(url).listening() as proxy, harness.node(proxy.url, name="silent") as api:
        receiver.on("/hook", Answer(503), Answer(200))
        document = job_document("publish", receiver.url("/hook"), retry=RETRY)
        assert (await api("POST", "/api/v1/jobs", document)).status == 201
        trap = proxy.stall_before_commit("fail_if_running")
        put = await api("PUT", "/api/v1/jobs/publish/instances/article:42", {})
        await asyncio.wait_for(trap.sprung.wait(), 20)
        async with harness.node(url, name="other") as other:
            done = await other.until_state(put.json["instance"]["id"], "SUCCESS", within=lease + 2 + SLACK)

        proxy.set_mode("pass")
        assert (done["attempt"], [tried["errorCode"] for tried in done["attempts"]]) == (2, ["NODE_LOST", None])
        assert await violations(connection) == []


async def test_C35_a_node_that_does_not_read_the_answer_to_its_claim_is_rescued_with_its_lease(
    url: str, connection: Platform
) -> None:
    """A long answer that is not read keeps its statement open, and with it the row of the node that must be fenced."""
    lease = FAST.lease.total_seconds()
    async with Receiver() as receiver, Proxy(url).listening() as proxy, harness.node(proxy.url, name="silent") as api:
        document = job_document("publish", receiver.url("/hook"), retry=RETRY)
        assert (await api("POST", "/api/v1/jobs", document)).status == 201
        later = (datetime.now(UTC) + timedelta(seconds=2)).isoformat()
        items = [{"executeTime": later, "payload": {"text": os.urandom(2_000).hex()}}] * 200
        for _ in range(5):
            assert (await api("POST", "/api/v1/jobs/publish/instances/batch", {"items": items})).status == 200
        trap = proxy.stall_after("claim_due")
        await asyncio.wait_for(trap.sprung.wait(), 20)
        async with harness.node(url, name="other"):

            async def is_rescued() -> bool:
                return await connection.fetchval("select rescued_at is not null from horai.node where name = 'silent'")

            await until(is_rescued, lease + 2 + SLACK, "what the silent node has claimed is rescued")

        proxy.set_mode("pass")
        assert await violations(connection) == []


async def held_by(connection: Platform, incarnation: int) -> int:
    return await connection.fetchval(
        "select count(*) from horai.instance_live where state = 1 and node = $1", incarnation
    )


async def freeze(connection: Platform, nodes: Cluster, name: str) -> int:
    """Three leases without a sign of life, from a moment on when some calls are with their target and some in line for it.

    How many it had; nothing of them is its own when it thaws.
    """
    frozen = await incarnation_of(connection, name)

    async def has_a_line() -> bool:
        """Claimed a moment ago: the first of them are on their way."""
        begun = "select count(*) from horai.instance_live where node = $1 and claimed_at < clock_timestamp() - interval '50 ms'"
        return await connection.fetchval(begun, frozen) > EngineSettings().per_host

    await until(has_a_line, 10, f"{name} holds more than it may send at once")
    since = await database_now(connection)
    with nodes.frozen(name):
        in_flight = await held_by(connection, frozen)

        async def three_leases_have_passed() -> bool:
            return (await database_now(connection) - since).total_seconds() > 3 * LEASE

        await until(three_leases_have_passed, 4 * LEASE, "three leases")
        fate = await connection.fetchrow("select fenced_at, rescued_at from horai.node where incarnation = $1", frozen)
        assert fate is not None
        assert None not in tuple(fate), "fenced, and rescued"
        assert frozen not in await shares(connection)

    async def is_back() -> bool:
        return (new := await incarnation_of(connection, name)) != frozen and new in await shares(connection)

    await until(is_back, 2 * LEASE, f"{name} has a new incarnation, and shards")
    return in_flight


async def late_results(connection: Platform, nodes: Cluster) -> tuple[int, int]:
    """Return the number of late results that are kept, and the number that the cluster's health counts."""
    kept: int = await connection.fetchval("select count(*) from horai.attempt where late")
    async with aiohttp.ClientSession() as session:
        health = await Client(nodes.doors[NODES[0]], session)("GET", "/api/v1/scheduler/health")
    return kept, health.json["lateResults"]


@pytest.mark.timeout(900 if IS_LONG else 180)
async def test_C38_the_stale_results_of_a_frozen_node_are_refused_counted_and_kept_as_late(
    short_place: Path, url: str, connection: Platform
) -> None:
    in_flight: list[int] = []
    with receiving(short_place / "freeze.hits") as receiver:
        async with cluster(short_place, url, *NODES, lease=LEASE) as nodes:
            async with load(nodes.doors, RATE, receiver.url(HOOK)) as running:
                for number in range(ROUNDS):
                    await until(lambda: is_balanced(connection, len(NODES)), 2 * LEASE, "the nodes share all shards")
                    await running.until_more(CALM)
                    await running.burst(BURST)
                    in_flight.append(await freeze(connection, nodes, NODES[number % len(NODES)]))
                    print(f"round {number + 1}: frozen with {in_flight[-1]} in flight", flush=True)
            ended = await reckon(connection, receiver, running.acknowledged)

            async def all_are_counted() -> bool:
                kept, counted = await late_results(connection, nodes)
                return kept == counted == ended.late

            await until(all_are_counted, LEASE, "health counts every late result that was kept")
    print(f"{ROUNDS} freezes of three leases of {LEASE:g} s, {sum(in_flight)} in flight; {ended}", flush=True)
    assert ended.problems == []
    assert len(ended.stale) <= ROUNDS, (
        ended.stale
    )  # frozen between a look at the lease and the write: never a whole line
    assert 0 < ended.late <= ended.recovered
    accepted = await connection.fetchval(
        "select count(*) from horai.attempt join horai.instance_history past on past.id = instance_id"
        " where late and past.fence <= attempt.fence"
    )
    assert accepted == 0, "the row has gone on with a higher fence, so late results change nothing"
