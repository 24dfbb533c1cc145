"""Assets in an application: declared beside jobs, updated by code also within a transaction, in virtual time."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest

from horai import Horai, Instance, Node, NotFound
from horai.core.errors import Invalid
from horai.testing import Harness

START = "2026-11-15T08:00:00Z"


async def test_workflows_follow_one_another_by_assets_in_virtual_time() -> None:
    app = Horai("shop")
    sales = app.asset("sales.daily")
    seen: list[tuple[str | None, datetime | None]] = []

    @app.job
    async def load() -> dict[str, int]:
        return {"rows": 3}

    @app.job
    async def report(instance: Instance[Any]) -> None:
        for update in instance.assets["sales.daily"]:
            seen.append((update.job, update.interval and update.interval.start))

    @dataclass
    class Params:
        region: str = "eu"

    app.workflow("nightly", [Node(load, produces=["sales.raw"])], produces=[sales], cron="0 2 * * *")
    reports = app.workflow("reports", [Node(report)], when=[sales, "sales.raw"], params=Params)

    async with Harness(app, START) as time:
        await time.advance("2d")
        assert seen == [
            ("nightly", datetime(2026, 11, 15, 2, tzinfo=UTC)),
            ("nightly", datetime(2026, 11, 16, 2, tzinfo=UTC)),
        ]
        assert [await run.state() for run in await reports.runs()] == ["SUCCESS", "SUCCESS"]
        (newest, _) = await app.asset("sales.raw").updates()
        assert (newest.job, newest.node, newest.metadata) == ("nightly", "load", {"rows": 3})


async def test_an_update_from_outside_starts_a_job_with_parameters_of_its_own() -> None:
    app = Horai("shop")
    files = app.asset("files")

    @app.job(when=[files], payload={"day": "today"})
    async def ingest(instance: Instance[Any], day: str = "", shop: str = "all") -> str:
        return f"{day} {shop} {instance.assets['files'][0].metadata['name']}"

    async with Harness(app, START) as time:
        first = await files.update({"name": "a.csv"}, idempotency_key="a")
        assert await files.update({"name": "a.csv"}, idempotency_key="a") == first
        await time.advance("1s")
        assert [fired.result for fired in time.fired(ingest)] == ["today all a.csv"]
        with pytest.raises(NotFound):
            await app.asset("filez").update()


async def test_an_update_in_a_transaction_counts_when_it_commits() -> None:
    app = Horai("shop")
    files = app.asset("files")

    @app.job(when=[files])
    async def ingest() -> None: ...

    async with Harness(app, START) as time:
        connection = await asyncpg.connect(time.database_url)
        async with connection.transaction():
            await files.update({"n": 1}, conn=connection)
            assert await files.updates() == []
        undone = connection.transaction()
        await undone.start()
        await files.update({"n": 2}, conn=connection)
        await undone.rollback()
        await connection.close()
        await time.advance("1s")
        assert len(time.fired(ingest)) == 1
        assert [update.metadata for update in await files.updates()] == [{"n": 1}]


def test_wrong_declarations_are_refused_where_they_are_written() -> None:
    app = Horai("shop")
    with pytest.raises(Invalid, match="must be a list, not a string"):
        app.job(when="files")(lambda: None)  # type: ignore[arg-type]
    with pytest.raises(Invalid, match="does not match"):
        app.job(name="one", produces=["two words"])(lambda: None)
    with pytest.raises(Invalid, match="not the name of an asset"):
        app.asset("two words")
