"""Jobs of `isolation="process"` in a real worker, on a real database."""

import asyncio
import os
from collections import Counter
from datetime import timedelta
from typing import Any

import harness
import pytest
from isolated_calls import pythons
from isolated_shop import adds_another, app, endless, inside, long, poison, quick, telling
from working import working

from horai.db.pool import Platform


@pytest.fixture(autouse=True)
def on_the_database(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The application and its children find it by the environment, as under `horai worker`."""
    monkeypatch.setenv("HORAI_DATABASE_URL", url)


def isolated(**changes: Any) -> Any:
    return working(app, reference="isolated_shop:app", isolated=2, **changes)


async def test_poison_reaches_the_dead_letters_after_its_retries_and_its_neighbours_are_unharmed(
    connection: Platform,
):
    async with isolated():
        await poison.enqueue_many([None] * 3)
        await quick.enqueue_many([None] * 300)
        await inside.enqueue_many([None] * 300)
        async with asyncio.timeout(120):
            while await connection.fetchval("select count(*) from horai.instance_live"):
                await asyncio.sleep(0.05)
    rows = await connection.fetch(
        "select job.name, ended.state, ended.retry_count, ended.error_code"
        " from horai.instance_history ended join horai.job on job.id = ended.job_id"
    )

    assert Counter(tuple(row) for row in rows) == {
        ("poison", 4, 3, "PROCESS_DIED"): 3,
        ("quick", 2, 0, None): 300,
        ("inside", 2, 0, None): 300,
    }


async def test_a_timeout_really_ends_the_work_and_the_worker_goes_on():
    async with harness.node(app.place.url or "") as api, isolated():
        handle = await endless.enqueue()
        dead = await api.until_state(handle.id, "DEAD", within=30)
        assert isinstance(await (await quick.enqueue()).result(timeout=30), int)

    assert dead["attempts"][0]["errorCode"] == "TIMEOUT"


async def test_progress_and_log_lines_of_an_isolated_function_are_shown_with_their_attempt():
    async with harness.node(app.place.url or "") as api, isolated():
        handle = await telling.enqueue()
        await handle.result(timeout=30)

        async def told() -> list[Any]:
            return (await api("GET", f"/api/v1/instances/{handle.id}")).json["attempts"][0]["log"]

        async with asyncio.timeout(30):
            while not (lines := await told()):
                await asyncio.sleep(0.02)
    assert [(line["message"], line["progress"]) for line in lines] == [("half way", 0.5)]


async def test_an_isolated_function_is_told_that_its_instance_was_cancelled(connection: Platform):
    async with harness.node(app.place.url or "") as api, isolated():
        handle = await long.put("k")
        async with asyncio.timeout(30):
            while not await connection.fetchval("select count(*) from horai.note"):
                await asyncio.sleep(0.02)
        assert (await api("DELETE", "/api/v1/jobs/long/instances/k")).status == 200
        ended = await api.until_state(handle.id, "CANCELLED")
    assert ended["reason"] == "USER"


async def test_an_isolated_function_adds_instances_to_the_database_of_its_worker():
    async with isolated():
        added = await (await adds_another.enqueue()).result(timeout=30)
        assert await inside._handle(int(added)).result(timeout=30) == os.getpid()


async def test_an_isolated_function_that_outlasts_the_grace_period_is_killed_and_its_attempt_fails(
    connection: Platform,
):
    before = pythons()
    async with isolated(engine=harness.replace(harness.FAST, grace=timedelta(milliseconds=50))):
        await long.enqueue()
        async with asyncio.timeout(30):
            while not await connection.fetchval("select count(*) from horai.note"):
                await asyncio.sleep(0.02)
    assert not pythons() - before
    row = await connection.fetchrow("select state, error_code from horai.instance_live")

    assert row is not None
    assert (row["state"], row["error_code"]) == (3, "NODE_STOPPED")
