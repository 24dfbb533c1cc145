"""A change of state and its event: both or neither when processes are killed, and a sink gets each event in order.

The short form ends 60 database sessions, kills 2 nodes and takes a sink down for 3 s; the long form (HORAI_LONG=1) ends 1,000
sessions, kills 20 nodes and takes the sink down for a minute.
"""

import asyncio
import json
import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import aiohttp
import harness
from databases import Superuser, as_node
from harness import Client, NodeProcess
from receiver import Answer, Receiver

from faults.outside import IS_LONG, until, violations

SESSIONS = 1_000 if IS_LONG else 60
NODES = 20 if IS_LONG else 2
OUTAGE = 60.0 if IS_LONG else 3.0
"""Seconds for which a sink answers 503."""
PATIENCE = 300.0 if IS_LONG else 60.0
BATCHES = {"good": 40, "bad": 6}
"""Instances of each job that are created at once: too few fail for the circuit breaker."""
ONE_OF_OURS = """
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and application_name like 'horai %' and application_name <> 'horai lease'
        and pid <> pg_backend_pid()
    order by state <> 'active', random() limit 1
"""
"""Ends a session of the node, one with a statement in progress if there is one."""


async def prepare(api: Client, receiver: Receiver) -> None:
    receiver.on("/good", Answer(200))
    receiver.on("/bad", Answer(503))
    receiver.on("/events", Answer(200))
    retry = {"maxRetry": 1, "base": "20ms", "cap": "40ms", "jitter": "none", "maxLost": 1000}
    for name in ("good", "bad"):
        target = {"type": "http", "url": receiver.url(f"/{name}")}
        made = await api("POST", "/api/v1/jobs", {"name": name, "target": target, "retry": retry})
        assert made.status == 201, made.json
    sink = {"kind": "webhook", "url": receiver.url("/events"), "batch": 50}
    assert (await api("PUT", "/api/v1/sinks/all", sink)).status == 201


async def feed(api: Client) -> None:
    """Create instances of both jobs; a request that a kill hits is not repeated."""
    for name, count in BATCHES.items():
        try:
            await api("POST", f"/api/v1/jobs/{name}/instances/batch", {"items": [{}] * count})
        except (aiohttp.ClientError, OSError):
            await asyncio.sleep(0.05)


async def settle(connection: Superuser, api: Client) -> None:
    """Wait until every instance has ended and the sink has every event."""

    async def is_quiet() -> bool:
        if await connection.fetchval("select count(*) from horai.instance_live"):
            return False
        ended = await connection.fetchval("select count(*) from horai.instance_history")
        told = await connection.fetchval(
            "select count(*) from horai.outbox where type in ('horai.instance.done', 'horai.instance.dead')"
        )
        if told < ended:
            return False
        shown = await api("GET", "/api/v1/sinks/all")
        is_level = "select sink.position = outbox_cursor.position from horai.sink, horai.outbox_cursor"
        return shown.status == 200 and shown.json["behind"] == 0 and await connection.fetchval(is_level)

    await until(is_quiet, PATIENCE, "every instance has ended and every event was delivered")


def delivered(receiver: Receiver) -> list[dict[str, Any]]:
    """Return the accepted events in the order of their first arrival."""
    found: dict[str, dict[str, Any]] = {}
    for hit in receiver.hits:
        if hit.path == "/events":
            for event in json.loads(hit.body):
                found.setdefault(event["id"], event)
    return list(found.values())


async def account(connection: Superuser, receiver: Receiver) -> None:
    """Compare the states with the events: none is missing, none has no state, and all are in order."""
    events = delivered(receiver)
    by_type: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for event in events:
        if "instanceId" in event["data"]:
            by_type[event["type"]][int(event["data"]["instanceId"])] += 1
    history = await connection.fetch("select id, state from horai.instance_history")
    attempts = await connection.fetch("select instance_id, outcome from horai.attempt where not late")
    outcomes: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for row in attempts:
        outcomes[row["outcome"]][row["instance_id"]] += 1
    assert by_type["horai.instance.done"] == Counter(row["id"] for row in history if row["state"] == 2)
    assert by_type["horai.instance.dead"] == Counter(row["id"] for row in history if row["state"] == 4)
    assert by_type["horai.instance.failed"] == outcomes["FAIL"]
    assert by_type["horai.instance.lost"] == outcomes["LOST"]
    assert len(history) > 40
    positions = [int(event["sequence"]) for event in events]
    assert positions == sorted(positions)
    last: dict[str, str] = {}
    for event in events:
        if (instance := event["data"].get("instanceId")) is not None:
            assert last.get(instance) not in {"horai.instance.done", "horai.instance.dead"}, "nothing after the end"
            last[instance] = event["type"]
    assert await violations(connection) == []


async def test_C26_state_and_event_are_both_there_or_neither_while_sessions_are_ended(
    url: str, connection: Superuser
) -> None:
    async with Receiver() as receiver, harness.node(url) as api:
        await prepare(api, receiver)
        ended = 0
        feeding = asyncio.create_task(feed(api))
        while ended < SESSIONS:
            if feeding.done():
                feeding.result()
                feeding = asyncio.create_task(feed(api))
            ended += len(await connection.fetch(ONE_OF_OURS))
            await asyncio.sleep(random.uniform(0.0, 0.03))
        await feeding
        await settle(connection, api)
        await account(connection, receiver)


async def test_C26_state_and_event_are_both_there_or_neither_while_nodes_are_killed(
    url: str, connection: Superuser, tmp_path: Path
) -> None:
    allowed = ("--callback-allow", "127.0.0.0/8", "--lease-ttl", "2s")
    async with Receiver() as receiver, aiohttp.ClientSession() as session:
        node = NodeProcess(tmp_path / "leader", as_node(url), *allowed).start()
        try:
            await prepare(Client(node.base, session), receiver)
            for number in range(NODES):
                feeding = asyncio.create_task(feed(Client(node.base, session)))
                calls = len(receiver.hits)

                async def has_begun(seen: int = calls) -> bool:
                    return len(receiver.hits) > seen + 10

                await until(has_begun, PATIENCE, "calls are made")
                await asyncio.sleep(random.uniform(0.0, 0.2))
                await asyncio.to_thread(node.kill)
                await feeding
                node = NodeProcess(tmp_path / f"node-{number}", as_node(url), *allowed)
                await asyncio.to_thread(node.start)
            await feed(Client(node.base, session))
            await settle(connection, Client(node.base, session))
            await account(connection, receiver)
        finally:
            await asyncio.to_thread(node.stop)


async def test_F4_a_sink_that_was_down_gets_everything_in_order_and_its_lag_is_zero_again(
    url: str, connection: Superuser
) -> None:
    async with Receiver() as receiver, harness.node(url) as api:
        await prepare(api, receiver)
        receiver.on("/events", Answer(503))
        end = asyncio.get_running_loop().time() + OUTAGE
        while asyncio.get_running_loop().time() < end:
            await feed(api)
            await asyncio.sleep(0.2)
        shown = (await api("GET", "/api/v1/sinks/all")).json
        assert shown["behind"] > 0
        assert shown["lagSeconds"] > OUTAGE / 2
        receiver.on("/events", Answer(200))
        receiver.hits[:] = [hit for hit in receiver.hits if hit.path != "/events"]
        await settle(connection, api)
        await account(connection, receiver)

        async def is_current() -> bool:
            shown = (await api("GET", "/api/v1/sinks/all")).json
            return (shown["behind"], shown["lagSeconds"], shown["status"]) == (0, 0.0, "ACTIVE")

        # An open transaction of the server, also one in another database, counts as a lag until it ends.
        await until(is_current, PATIENCE, "the sink is level and lags behind nothing")
