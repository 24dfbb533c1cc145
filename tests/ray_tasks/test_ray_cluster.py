"""Functions on a real Ray cluster, in a real worker on a real database: outcomes, notes, cancellation and timeouts."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import harness
import pytest
import ray_app
from ray_app import app
from ray_cluster import RayCluster, needs_ray, ray_cluster
from working import working

from horai import InstanceFailed
from horai.db.pool import Platform
from isolation.isolated_calls import is_alive, until

pytestmark = [needs_ray, pytest.mark.timeout(600), pytest.mark.usefixtures("on_ray")]
WITHIN = 90


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with ray_cluster(nodes=2) as cluster:
        yield cluster


def on(cluster: RayCluster, **changes: Any) -> AbstractAsyncContextManager[None]:
    return working(app, reference="ray_app:app", ray_address=cluster.address, **changes)


async def failed(handle: Any) -> InstanceFailed:
    with pytest.raises(InstanceFailed) as raised:
        await handle.result(timeout=WITHIN)
    return raised.value


async def note_of(connection: Platform, instance_id: int | str) -> str:
    """The first message of an instance, when it is there."""
    async with asyncio.timeout(WITHIN):
        while True:
            found = await connection.fetchval(
                "select message from horai.note where instance_id = $1 and message is not null limit 1",
                int(instance_id),
            )
            if found is not None:
                return found
            await asyncio.sleep(0.02)


async def test_functions_run_on_ray_nodes_with_their_resources_beside_other_functions(cluster: RayCluster):
    async with on(cluster):
        squares = [await ray_app.square.enqueue(number) for number in range(20)]
        place: Any = await (await ray_app.place.enqueue()).result(timeout=WITHIN)
        assert [await each.result(timeout=WITHIN) for each in squares] == [number**2 for number in range(20)]
        assert await (await ray_app.beside.enqueue()).result(timeout=WITHIN) == os.getpid()

    assert place["pid"] != os.getpid()
    assert place["resources"] == {"CPU": 0.5, "memory": 10_000_000}


async def test_errors_are_retried_by_their_policy_and_keep_their_names(cluster: RayCluster, connection: Platform):
    async with on(cluster):
        handles = [await ray_app.raises.enqueue(kind) for kind in ("retryable", "never")]
        retried, never = [await failed(handle) for handle in handles]
        later = await ray_app.raises.enqueue("later")
        async with asyncio.timeout(WITHIN):
            while not await connection.fetchval(
                "select count(*) from horai.instance_live where id = $1 and execute_time > now() + interval '50 min'",
                int(later.id),
            ):
                await asyncio.sleep(0.02)

    assert (retried.error_code, never.error_code) == ("Unpicklable", "Unrecoverable")
    assert "no luck" in str(retried)
    counts = "select attempt from horai.instance_history where id = $1"
    assert [await connection.fetchval(counts, int(handle.id)) for handle in handles] == [3, 1]


async def test_progress_and_log_lines_of_a_task_are_shown_with_their_attempt(cluster: RayCluster):
    async with harness.node(app.place.url or "") as api, on(cluster):
        handle = await ray_app.tells.put("k")
        assert await handle.result(timeout=WITHIN) == [str(handle.id), "k", 1]

        async def lines() -> list[Any]:
            return (await api("GET", f"/api/v1/instances/{handle.id}")).json["attempts"][0]["log"]

        async with asyncio.timeout(30):
            while len(told := await lines()) < 2:
                await asyncio.sleep(0.02)
    assert [line["message"] for line in told] == ["begins", "done"]
    assert told[-1]["progress"] == 1.0


async def test_a_cancellation_reaches_the_task(cluster: RayCluster, connection: Platform, tmp_path: Path):
    seen = tmp_path / "seen"
    async with harness.node(app.place.url or "") as api, on(cluster):
        handle = await ray_app.waits.put("k", payload=str(seen))
        await note_of(connection, handle.id)
        assert (await api("DELETE", "/api/v1/jobs/waits/instances/k")).status == 200
        await until(seen.exists, WITHIN)
        await api.until_state(handle.id, "CANCELLED")
        assert await (await ray_app.square.enqueue(3)).result(timeout=WITHIN) == 9

    assert seen.read_text() == "cancelled"


async def test_a_cancelled_task_that_waits_for_resources_never_begins_and_gives_its_place_back(
    cluster: RayCluster, connection: Platform, tmp_path: Path
):
    async with harness.node(app.place.url or "") as api, on(cluster, concurrency=1):
        handle = await ray_app.needs_gpu.put("k", payload=str(tmp_path / "begun"))
        await api.until_state(handle.id, "RUNNING", within=WITHIN)
        assert (await api("DELETE", "/api/v1/jobs/needs_gpu/instances/k")).status == 200
        assert await (await ray_app.square.enqueue(3)).result(timeout=WITHIN) == 9

    assert not (tmp_path / "begun").exists()


async def test_a_timeout_ends_a_task_that_ignores_it(cluster: RayCluster, connection: Platform):
    async with on(cluster):
        stubborn, asleep = await ray_app.ignores_timeout.enqueue(), await ray_app.sleeps.enqueue()
        pid = int(await note_of(connection, stubborn.id))
        assert [(await failed(each)).error_code for each in (stubborn, asleep)] == ["TIMEOUT", "TIMEOUT"]
        await until(lambda: not is_alive(pid))


async def test_a_task_whose_process_dies_is_lost_twice_and_then_fails(cluster: RayCluster, connection: Platform):
    async with on(cluster):
        handle = await ray_app.crashes.enqueue()
        dead = await failed(handle)

    assert dead.error_code == "PROCESS_DIED"
    outcomes = await connection.fetch(
        "select outcome from horai.attempt where instance_id = $1 order by attempt", int(handle.id)
    )
    assert [row["outcome"] for row in outcomes] == ["LOST", "LOST", "FAIL", "DEAD"]


async def test_tasks_end_with_their_worker(cluster: RayCluster, connection: Platform, tmp_path: Path):
    async with on(cluster, engine=harness.FAST):
        handle = await ray_app.waits.enqueue(str(tmp_path / "seen"))
        pid = int(await note_of(connection, handle.id))

    await until(lambda: not is_alive(pid))
    state = await connection.fetchval("select state from horai.instance_live where id = $1", int(handle.id))
    assert state != 1


async def test_without_a_cluster_instances_wait_unclaimed_and_other_functions_run(connection: Platform):
    async with working(app, reference="ray_app:app", ray_address="127.0.0.1:1"):
        waiting = await ray_app.square.enqueue(3)
        assert await (await ray_app.beside.enqueue()).result(timeout=WITHIN) == os.getpid()

    row = await connection.fetchrow("select state, attempt from horai.instance_live where id = $1", int(waiting.id))
    assert row is not None
    assert tuple(row) == (0, 0)
