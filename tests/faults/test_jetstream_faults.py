"""A replicated stream whose leader is killed under load: every acknowledged instance is stored, and each is stored once.

The short form kills the leader once, the long form (HORAI_LONG=1, `make jetstream`) twenty times.
"""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import harness
from databases import Superuser
from handed_over import stored
from harness import Client
from nats.js import JetStreamContext
from nats_cluster import NatsCluster, nats_cluster

from faults.outside import IS_LONG, until

ROUNDS = 20 if IS_LONG else 1
BATCH = 50
PATIENCE = 120.0 if IS_LONG else 60.0
JOBS = "/api/v1/jobs"
RETRY = {"maxRetry": 1000, "base": "50ms", "cap": "500ms", "jitter": "full"}
ROWS = """
    select horai.idem_key(job_id, born_for, slot) as idem_key, horai.state_name(state) as state, result
    from horai.instance_history
"""
ENDED = "select count(*) from horai.instance_history"


class Load:
    """Instances that are created batch by batch until it is stopped."""

    def __init__(self, api: Client) -> None:
        self._api = api
        self.is_over = asyncio.Event()
        self.created = 0

    async def run(self) -> None:
        while not self.is_over.is_set():
            items = [{"key": f"k{self.created + number}"} for number in range(BATCH)]
            answer = await self._api("POST", f"{JOBS}/orders/instances/batch", {"items": items})
            assert answer.status == 200, answer.json
            self.created += BATCH
            await self._until_taken()

    async def _until_taken(self) -> None:
        """Do not pile up more than a batch while no leader answers."""

        async def is_taken() -> bool:
            lists = [
                await self._api("GET", f"{JOBS}/orders/instances?state={state}&limit={BATCH}")
                for state in ("INIT", "FAIL")
            ]
            return self.is_over.is_set() or sum(len(shown.json["items"]) for shown in lists) < BATCH

        await until(is_taken, PATIENCE, "the instances are taken")


async def kill_leader(cluster: NatsCluster, stream: JetStreamContext, connection: Superuser) -> str:
    """Kill the leader of the stream and wait until another one stores. Return the name of the one that was killed."""
    leader = await cluster.leader(stream, "orders")
    assert leader is not None
    cluster.servers[leader].kill()
    before = await connection.fetchval(ENDED)

    async def goes_on() -> bool:
        followed = await cluster.leader(stream, "orders")
        return followed not in {None, leader} and await connection.fetchval(ENDED) >= before + 2 * BATCH

    await until(goes_on, PATIENCE, "another leader stores messages")
    return leader


async def test_no_acknowledged_instance_is_lost_and_each_is_stored_once_when_the_leader_of_the_stream_is_killed(
    url: str, connection: Superuser, tmp_path: Path
) -> None:
    with nats_cluster(tmp_path) as cluster:
        async with cluster.publisher() as stream:
            await cluster.add_stream(stream, "orders")
            async with harness.node(url, brokers={"main": cluster.url}) as api:
                target = {"type": "nats", "broker": "main", "subject": "orders.new"}
                job: dict[str, Any] = {"name": "orders", "target": target, "retry": RETRY, "timeout": "2s"}
                assert (await api("POST", JOBS, job)).status == 201
                load = Load(api)
                running = asyncio.create_task(load.run())
                for number in range(ROUNDS):
                    killed = await kill_leader(cluster, stream, connection)
                    if number + 1 < ROUNDS:
                        cluster.servers[killed].start()
                        await cluster.until_whole(stream, "orders")
                load.is_over.set()
                await running

                async def is_drained() -> bool:
                    return not await connection.fetchval("select count(*) from horai.instance_live")

                await until(is_drained, PATIENCE, "every instance has ended")
            messages = await stored(stream, "orders")
    rows = await connection.fetch(ROWS)
    assert Counter(row["state"] for row in rows) == {"SUCCESS": load.created}
    acknowledged = {row["idem_key"]: json.loads(row["result"])["sequence"] for row in rows}
    ids = {message.seq: (message.headers or {})["Nats-Msg-Id"] for message in messages}
    assert {key: ids.get(sequence) for key, sequence in acknowledged.items()} == {key: key for key in acknowledged}
    assert Counter(ids.values()) == Counter([*acknowledged])
