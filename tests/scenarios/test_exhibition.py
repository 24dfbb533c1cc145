"""Seed 004 by the exhibition example: `horai up` with a worker as processes, the desk's transactions here."""

import asyncio
import importlib
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import asyncpg
import pytest
from ears import Ear, ear
from harness import HoraiProcess

from horai.core.wakes import LaneWake
from horai.embedded import url_of
from horai.embedded.admin import admin_url

ROOT = Path(__file__).parents[2]
APP = "examples.exhibition.jobs:app"
WITHIN = 20.0
STARTED_WITHIN = 60.0
"""A worker starts after its node is ready, and with both cores busy that alone takes longer than 20 s."""
LATER = timedelta(hours=1)
ASKED = re.compile(r"^\S+ \S+ UTC \[\d+\] (horai[^\n]*?) LOG:  (?:statement|execute [^:]*): (.*)$", re.DOTALL)


@pytest.fixture(scope="module")
def horai(module_place: Path) -> Iterator[HoraiProcess]:
    process = HoraiProcess(module_place / "data", "--app", APP, PYTHONPATH=f"{ROOT}:{ROOT / 'src'}").start()
    yield process
    assert process.stop() == 0, process.log.read_text()


@dataclass(frozen=True, slots=True)
class Hall:
    """The example's own code, and Horai's side of what it does."""

    desk: ModuleType
    tables: ModuleType
    jobs: ModuleType
    database: "asyncpg.Connection[asyncpg.Record]"
    ear: Ear

    def transaction(self) -> Any:
        return self.tables.sessions.begin()

    async def submitted(self, enrolment_at: datetime, visitors: int = 0) -> int:
        async with self.transaction() as session:
            return await self.desk.submit(session, "Ceramics", enrolment_at, visitors)

    async def status(self, exhibition: int) -> str:
        return await self.database.fetchval("select status from exhibition.exhibition where id = $1", exhibition)

    async def starts(self, exhibition: int) -> list[tuple[str, datetime]]:
        rows = await self.database.fetch(
            "select state, execute_time from horai.job_instance where key = $1", f"exhibition:{exhibition}"
        )
        return [(row["state"], row["execute_time"]) for row in rows]

    async def letters(self, exhibition: int) -> int:
        return await self.database.fetchval(
            "select count(*) from exhibition.letter where exhibition_id = $1", exhibition
        )

    async def notices(self, exhibition: int) -> list[int]:
        rows = await self.database.fetch(
            "with found as (select job_id, state, payload from horai.instance_live"
            " union all select job_id, state, payload from horai.instance_history)"
            " select found.state from found join horai.job on job.id = found.job_id"
            " where job.name = 'notify' and (found.payload->>'exhibition_id')::int = $1",
            exhibition,
        )
        return [row["state"] for row in rows]

    async def until_enrolling(self, exhibition: int, visitors: int) -> None:
        """Returns when it has started and all its letters are written."""
        async with asyncio.timeout(WITHIN):
            while await self.status(exhibition) != "ENROLLING" or await self.letters(exhibition) < visitors:
                await asyncio.sleep(0.01)
            while [state for state, _ in await self.starts(exhibition)] != ["SUCCESS"]:
                await asyncio.sleep(0.01)

    async def wakes(self) -> list[LaneWake]:
        """Return the wakes for work."""
        return [wake for wake in await self.ear.wakes() if isinstance(wake, LaneWake)]


@asynccontextmanager
async def hall(horai: HoraiProcess, patch: pytest.MonkeyPatch) -> AsyncGenerator[Hall]:
    url = url_of(horai.data_dir)
    patch.setenv("HORAI_DATABASE_URL", url)
    patch.syspath_prepend(ROOT)
    desk, tables, jobs = (importlib.import_module(f"examples.exhibition.{name}") for name in ("desk", "tables", "jobs"))
    database = await asyncpg.connect(admin_url(url))
    try:
        await tables.make_tables()
        await until_working(database)
        async with ear(url) as listening, jobs.app:
            yield Hall(desk, tables, jobs, database, listening)
    finally:
        await database.close()
        await tables.engine.dispose()


async def until_working(database: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Returns when the worker has declared its jobs, and has run one of them."""
    async with asyncio.timeout(STARTED_WITHIN):
        while not await database.fetchval("select exists (select from horai.job where name = 'notify')"):
            await asyncio.sleep(0.01)
    async with asyncio.timeout(WITHIN):
        payload = '{"exhibition_id": 0, "visitor": "nobody"}'
        made = await database.fetchval("select instance_id from horai.enqueue('notify', $1::text::json)", payload)
        done = "select exists (select from horai.instance_history where id = $1)"
        while not await database.fetchval(done, made):
            await asyncio.sleep(0.01)


async def test_E2_a_start_is_planned_for_its_time_and_letters_for_now_each_in_the_callers_transaction(
    horai: HoraiProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hall(horai, monkeypatch) as here:
        at = datetime.now(UTC).replace(microsecond=0) + LATER
        exhibition = await here.submitted(at, visitors=7)
        async with here.transaction() as session:
            assert await here.desk.approve(session, exhibition) == "INSERTED"
        assert await here.starts(exhibition) == [("INIT", at)]

        soon = datetime.now(UTC) + timedelta(milliseconds=300)
        async with here.transaction() as session:
            assert await here.desk.move(session, exhibition, soon) == "UPDATED"
        await here.until_enrolling(exhibition, visitors=7)

        assert await here.letters(exhibition) == 7
        assert len(await here.notices(exhibition)) == 7, "one each, made in the transaction that started it"


async def test_E2_a_rollback_leaves_neither_the_approval_nor_its_plan(
    horai: HoraiProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hall(horai, monkeypatch) as here:
        exhibition = await here.submitted(datetime.now(UTC))
        async with here.tables.sessions() as session:
            assert await here.desk.approve(session, exhibition) == "INSERTED"
            await here.jobs.notify.enqueue(here.jobs.Notice(exhibition, "a visitor"), conn=session)
            await session.rollback()

        assert (await here.status(exhibition), await here.starts(exhibition)) == ("SUBMITTED", [])
        assert await here.notices(exhibition) == []


async def test_E3_the_worker_is_woken_at_once_after_the_commit_and_not_before(
    horai: HoraiProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hall(horai, monkeypatch) as here:
        exhibition = await here.submitted(datetime.now(UTC), visitors=3)
        before = len(await here.wakes())
        async with here.transaction() as session:
            await here.desk.approve(session, exhibition)
            assert len(await here.wakes()) == before, "it is not committed"
            assert await here.status(exhibition) == "SUBMITTED"
        committed = asyncio.get_running_loop().time()
        await here.until_enrolling(exhibition, visitors=3)

        assert len(await here.wakes()) > before
        assert asyncio.get_running_loop().time() - committed < 5, "by its wake: a sweep comes every 30 s"


async def test_E3_a_rolled_back_transaction_sends_no_wake(horai: HoraiProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    async with hall(horai, monkeypatch) as here:
        exhibition = await here.submitted(datetime.now(UTC), visitors=3)
        before = await here.wakes()
        async with here.tables.sessions() as session:
            await here.desk.approve(session, exhibition)
            await session.rollback()

        assert await here.wakes() == before
        assert await here.status(exhibition) == "SUBMITTED"


async def test_E6_twenty_approvals_for_later_send_no_wake_and_cause_at_most_two_queries(
    horai: HoraiProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hall(horai, monkeypatch) as here:
        exhibitions = [await here.submitted(datetime.now(UTC) + LATER) for _ in range(20)]
        before = await here.wakes()
        async with logged(horai, here.database) as asked:
            for exhibition in exhibitions:
                async with here.transaction() as session:
                    await here.desk.approve(session, exhibition)

            assert await here.wakes() == before
            assert len(asked()) <= 2, "and not 40"
            async with here.transaction() as session:
                await here.desk.move(session, exhibitions[0], datetime.now(UTC))
            await here.until_enrolling(exhibitions[0], visitors=0)
            assert asked(), "what is due is looked for"


@asynccontextmanager
async def logged(horai: HoraiProcess, database: "asyncpg.Connection[asyncpg.Record]") -> AsyncGenerator[Any]:
    """Collect the statements of Horai's processes on live instances, but for the sweep, from the server's own log."""
    log = horai.data_dir / "server.log"

    async def log_statements(what: str) -> None:
        await database.execute(f"alter system set log_statement = '{what}'")
        await database.execute("select pg_reload_conf()")
        async with asyncio.timeout(WITHIN):
            while await database.fetchval("show log_statement") != what:
                await asyncio.sleep(0.01)

    await log_statements("all")
    begun = log.stat().st_size

    def asked() -> list[str]:
        entries = re.split(r"\n(?!\t)", log.read_bytes()[begun:].decode("utf-8", "replace"))
        found = [entry for entry in map(ASKED.match, entries) if entry is not None]
        return [entry[2] for entry in found if "instance_live" in entry[2] and "sweeper" not in entry[1]]

    try:
        yield asked
    finally:
        await log_statements("none")
