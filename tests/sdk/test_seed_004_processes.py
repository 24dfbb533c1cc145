"""Seed 004 with a whole node and a whole worker. Their statements are read from the log of the server."""

import asyncio
import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from harness import node
from rows import until
from working import working

from horai import Horai
from horai.core.settings import EngineSettings
from horai.db.pool import Platform
from horai.embedded import EmbeddedPostgres

SECOND = timedelta(seconds=1)
LOOKS = ("claim_due", "next_due", "left_behind")
"""The statements that look for tasks: FetchPendingTask and GetMinNextRetryTime of the seed."""
SEED_LOOKS = 24
"""Looks of the seed's worker for 20 tasks: 2 when they are added, 22 from their time to the empty queue."""


class Log:
    """The named statements of a database since the last `begin`."""

    def __init__(self, server: EmbeddedPostgres) -> None:
        self._path = server.log_path
        self._start = 0

    async def open(self, connection: Platform) -> None:
        """Log every statement of the connections that are opened from now on."""
        name = await connection.fetchval("select current_database()")
        await connection.execute(f"alter database {name} set log_statement = 'all'")

    def begin(self) -> None:
        self._start = self._path.stat().st_size

    def counts(self) -> Counter[str]:
        logged = self._path.read_bytes()[self._start :].decode("utf-8", "replace")
        return Counter(re.findall(r"LOG:  execute [^:]*: /\* (\w+) \*/", logged))

    def looks(self) -> int:
        counts = self.counts()
        return sum(counts[name] for name in LOOKS)


async def test_E1a_a_worker_has_one_claiming_loop_however_many_types_and_tasks_it_has(url: str):
    app, ran = Horai("shop", database_url=url), Counter[str]()

    def counting(name: str) -> Callable[[], None]:
        def count() -> None:
            ran[name] += 1

        return count

    types = [app.job(counting(f"type-{n}"), name=f"type-{n}", queue=f"queue-{n}") for n in range(10)]
    async with working(app):
        before = [task.get_name() for task in asyncio.all_tasks()].count("dispatcher")
        for each in types:
            await each.enqueue_many([None] * 30)

        async def have_run() -> bool:
            return ran.total() == 300

        await until(have_run)
        assert before == [task.get_name() for task in asyncio.all_tasks()].count("dispatcher") == 1


async def test_E7c_an_idle_node_looks_for_tasks_at_most_once_per_safety_interval(
    url: str, connection: Platform, postgres: EmbeddedPostgres
):
    log = Log(postgres)
    await log.open(connection)
    async with node(url, EngineSettings(), sweep=SECOND, lease=3 * SECOND, background_after=0 * SECOND) as api:
        target = {"type": "http", "url": "http://127.0.0.1:9/"}
        await api("POST", "/api/v1/jobs", {"name": "publish", "target": target})
        later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
        for number in range(20):
            await api("PUT", f"/api/v1/jobs/publish/instances/{number}", {"executeTime": later})

        log.begin()

        async def has_heard() -> bool:
            return log.counts()["renew_node"] > 1

        await until(has_heard)  # a heartbeat may bring one more look at new rows
        log.begin()
        intervals = 4
        await asyncio.sleep(intervals * SECOND.total_seconds())
        looks, counts = log.looks(), log.counts()

    assert 1 <= counts["left_behind"] <= intervals + 1, "the safety interval is kept"
    assert looks <= intervals + 1, counts
    assert counts["claim_due"] == 0


async def test_E8a_E8b_a_worker_with_one_slot_runs_twenty_tasks_with_no_more_looks_than_in_the_seed(
    url: str, connection: Platform, postgres: EmbeddedPostgres
):
    app, ran, now, most, log = Horai("shop", database_url=url), list[datetime](), 0, 0, Log(postgres)

    @app.job
    async def start_enrolling() -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        now -= 1
        ran.append(datetime.now(UTC))

    await log.open(connection)
    async with working(app, EngineSettings(), concurrency=1):
        due = datetime.now(UTC) + 1.5 * SECOND
        log.begin()
        for _ in range(20):
            await start_enrolling.enqueue(at=due)

        async def are_done() -> bool:
            return await connection.fetchval("select count(*) from horai.instance_history where state = 2") == 20

        await until(are_done)
        looks, counts = log.looks(), log.counts()

    assert most == 1, "one at a time, as in the seed"
    assert len(ran) == 20
    assert due <= min(ran)
    assert max(ran) < due + SECOND
    assert 0 < looks <= SEED_LOOKS, counts
