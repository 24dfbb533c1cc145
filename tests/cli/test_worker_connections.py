"""The connections to the database that a worker process holds while it has no work."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

from workers import Shop, elsewhere

from horai.db.pool import Platform

HELD = ["horai background", "horai dispatcher", "horai lease", "horai listener"]
SESSIONS = """
select application_name from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
order by application_name
"""


async def until_held(connection: Platform, is_so: Callable[[list[str]], bool]) -> None:
    """Wait until this is so of the names of all other sessions; fail with those that are there."""
    names: list[str] = []
    try:
        async with asyncio.timeout(30):
            while not names or not is_so(names):
                names = [row["application_name"] for row in await connection.fetch(SESSIONS)]
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"the worker holds {names}") from None


async def test_a_worker_without_work_holds_four_connections_before_and_after_its_calls(
    url: str, tmp_path: Path, connection: Platform
):
    shop = Shop(tmp_path / "shop")
    quick = json.dumps({"horai.db.stage_connection.REST_AFTER": 1.0})
    with shop.worker(url, HORAI_TEST_CONSTANTS=quick) as worker:
        worker.started()
        await until_held(connection, lambda names: names == HELD)
        async with elsewhere(url) as job:
            handle = await job("greet").enqueue("Ada")
            assert await handle.result(timeout=30) == "hello Ada"
        await until_held(connection, lambda names: names == HELD)
        async with elsewhere(url) as job:
            handle = await job("greet").enqueue("Bea")
            assert await handle.result(timeout=30) == "hello Bea"
        assert "stage failed" not in worker.log
