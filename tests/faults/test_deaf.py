"""Nodes that do not hear each other: every notification lost, some lost, or the listening connection cut."""

import statistics
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import harness
import pytest
from harness import Client
from receiver import Receiver
from sizes import IS_LONG

from faults.cluster import cluster, incarnation_of, is_balanced
from faults.load import load
from faults.outside import job_document, receiving, until, violations
from faults.proxy import Proxy
from faults.reckoning import reckon
from horai.core.settings import EngineSettings
from horai.core.shards import Role
from horai.core.wakes import is_beat
from horai.db.pool import Platform

SWEEP = EngineSettings().sweep if IS_LONG else timedelta(seconds=3)
LEASE = 4.0
SLACK = 2.0
"""Seconds for a busy machine."""
PACED = replace(harness.FAST, sweep=SWEEP, horizon=2 * SWEEP)
"""The trigger looks again every half horizon."""
HOUR = timedelta(hours=1)
WORKERS = frozenset({Role.scheduler, Role.executor})


async def give_work(api: Client, target: str) -> None:
    """Twenty for now, twenty for soon, and a schedule; the one who takes them runs none of them."""
    assert (await api("POST", "/api/v1/jobs", job_document("publish", target))).status == 201
    assert (await api("POST", "/api/v1/jobs", job_document("tick", target, every="1s"))).status == 201
    soon = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    items = [{}] * 20 + [{"executeTime": soon}] * 20
    assert (await api("POST", "/api/v1/jobs/publish/instances/batch", {"items": items})).status == 200


async def latest(connection: Platform) -> float:
    """Seconds that anything started after it was due, at most."""
    rows = await connection.fetch("select claimed_at - execute_time as late from horai.instance_history")
    return max(row["late"] for row in rows).total_seconds()


async def all_run(connection: Platform, within: float) -> None:
    """All forty, and the schedule goes on."""

    async def are_there() -> bool:
        rows = await connection.fetch(
            "select job.name, count(*) from horai.instance_history past join horai.job on job.id = past.job_id group by 1"
        )
        ended = {row["name"]: row["count"] for row in rows}
        return ended.get("publish") == 40 and ended.get("tick", 0) > 1

    await until(are_there, within, "all forty and two slots have run")


@asynccontextmanager
async def deaf_to_wakes(url: str) -> AsyncGenerator[Proxy]:
    """A node that hears its own heartbeat and nothing else: it has no reason to think that it is deaf."""
    async with Proxy(url, lambda payload: not is_beat(payload)).listening() as proxy:
        async with harness.node(proxy.url, PACED, name="deaf", roles=WORKERS):
            yield proxy


@pytest.mark.timeout(300 if IS_LONG else 180)
async def test_E10_with_every_wake_lost_all_still_runs_within_one_sweep(url: str, connection: Platform) -> None:
    async with (
        Receiver() as receiver,
        harness.node(url, name="door", roles=frozenset({Role.api})) as api,
        deaf_to_wakes(url) as proxy,
    ):

        async def hears_itself() -> bool:
            return any(is_beat(payload) for payload in proxy.heard)

        await until(hears_itself, 10, "the deaf node hears its heartbeat")
        await give_work(api, receiver.url("/hook"))
        await all_run(connection, SWEEP.total_seconds() + SLACK + 3)

        late = await latest(connection)
        print(
            f"{len(proxy.dropped)} notifications dropped: at most {late:.2f} s late, sweeps every {SWEEP}", flush=True
        )
        assert late < SWEEP.total_seconds() + SLACK
        assert any(payload.startswith("w:") for payload in proxy.dropped)
        assert all(is_beat(payload) for payload in proxy.heard)
        assert await violations(connection) == []


@pytest.mark.timeout(180)
async def test_E10_a_node_that_hears_nothing_at_all_knows_it_and_looks_every_second(
    url: str, connection: Platform
) -> None:
    async with (
        Receiver() as receiver,
        harness.node(url, name="door", roles=frozenset({Role.api})) as api,
        Proxy(url, lambda _: True).listening() as proxy,
        harness.node(proxy.url, name="deaf", roles=WORKERS, lease=timedelta(seconds=LEASE), sweep=HOUR, horizon=HOUR),
    ):
        await give_work(api, receiver.url("/hook"))
        await all_run(connection, LEASE + SLACK + 3)

        late = await latest(connection)
        print(f"{len(proxy.dropped)} notifications dropped: at most {late:.2f} s late", flush=True)
        assert late < LEASE + SLACK  # the schedule; it is looked for with every new attempt to listen
        assert proxy.heard == []
        assert await violations(connection) == []


async def listeners(connection: Platform) -> set[int]:
    rows = await connection.fetch(
        "select pid from pg_stat_activity where datname = current_database() and application_name = 'horai listener'"
    )
    return {row["pid"] for row in rows}


async def delays_between(api: Client, connection: Platform, door: str) -> list[float]:
    """Seconds from the put of twenty instances, one by one, to their claims by other nodes than the one that took them."""
    ids: list[int] = []
    for number in range(20):
        put = await api("PUT", f"/api/v1/jobs/load/instances/after-{number}", {})
        ids.append(int(put.json["instance"]["id"]))
        await api.until_state(put.json["instance"]["id"], "SUCCESS")
    rows = await connection.fetch(
        "select claimed_at - created_at as delay from horai.instance_history where id = any ($1) and node <> $2",
        ids, await incarnation_of(connection, door),
    )  # fmt: skip
    return [row["delay"].total_seconds() for row in rows]


@pytest.mark.timeout(300 if IS_LONG else 180)
async def test_nodes_whose_listening_connection_is_cut_listen_again_and_nothing_is_lost(
    short_place: Path, url: str, connection: Platform
) -> None:
    with receiving(short_place / "deaf.hits") as receiver:
        async with cluster(short_place, url, "one", "two", lease=LEASE) as nodes:
            await until(lambda: is_balanced(connection, 2), 2 * LEASE, "both nodes have their shards")
            async with load(nodes.doors, 50, receiver.url("/hook")) as running:
                for _ in range(10 if IS_LONG else 2):
                    await running.until_more(0.5)
                    before = await listeners(connection)
                    await connection.fetch("select pg_terminate_backend(pid) from unnest($1::int[]) pid", list(before))

                    async def both_listen_again() -> bool:
                        return len(await listeners(connection) - before) == 2  # noqa: B023 — awaited before it changes

                    await until(both_listen_again, LEASE, "both nodes listen again")
                delays = await delays_between(Client(nodes.doors["one"], running.session), connection, "one")
            ended = await reckon(connection, receiver, running.acknowledged)
    print(
        f"LISTEN cut: woken within {statistics.median(delays) * 1000:.1f} ms (median) afterwards; {ended}", flush=True
    )
    assert ended.problems + ended.stale == []
    assert statistics.median(delays) < 0.25, "a wake, not a look every second"
