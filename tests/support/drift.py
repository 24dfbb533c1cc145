"""A business with a table of its own, and a reconciler over it: what the tests of reconciliation start from."""

import itertools
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import make
from harness import LOOPBACK

from horai.core.addresses import AddressPolicy
from horai.core.calls import Call, WorkerTarget
from horai.core.outcome import Outcome, Succeeded
from horai.db.pool import Platform, connect
from horai.features.reconcile import service as reconcilers
from horai.features.reconcile.definition import RECONCILE_HANDLER
from horai.features.reconcile.executor import Bounds, ReconcileExecutor
from horai.features.reconcile.service import ReconcilerWish
from horai.features.reconcile.store import ReconcilerRow, Report
from horai.operations.scope import Scope

TOMORROW = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
QUERY = "select key, execute_time, payload from article where state = 'waiting' and key > $1 order by key limit $2"
SQL = {"type": "sql", "source": "business", "query": QUERY}
TABLE = """create table article (
    key text primary key, execute_time timestamptz not null, payload jsonb, state text not null default 'waiting')"""

_runs = itertools.count(1_000_000_000)


@dataclass(slots=True)
class Desk:
    """A tenant with a job `publish`, a table of articles, and what compares them."""

    scope: Scope
    connection: Platform
    executor: ReconcileExecutor
    reconciler: ReconcilerRow
    outcomes: list[Outcome] = field(default_factory=list[Outcome])

    async def compare(self, instance_id: int | None = None, attempt: int = 1) -> Outcome:
        """One attempt of a run; without an id, of a new one."""
        return await self.executor.run(call_of(self.reconciler, instance_id or next(_runs), attempt))

    async def report(self) -> Report:
        """Return the report of the last comparison."""
        return (await reconcilers.list_reports(self.scope, str(self.reconciler.id), 2**63 - 1, 1))[0]

    async def compared(self) -> Report:
        """The report of a comparison that goes well."""
        outcome = await self.compare()
        assert isinstance(outcome, Succeeded), outcome
        return await self.report()

    async def live(self) -> dict[str, datetime]:
        """The keys that are live, and when they are due."""
        rows = await self.connection.fetch("select key, execute_time from horai.instance_live where key is not null")
        assert len({row["key"] for row in rows}) == len(rows)
        return {row["key"]: row["execute_time"] for row in rows}

    async def write(self, *keys: str) -> None:
        """Articles that wait to be published tomorrow."""
        await self.connection.executemany(
            "insert into article (key, execute_time, payload) values ($1, $2, $3)",
            [(key, TOMORROW, f'{{"article": "{key}"}}') for key in keys],
        )

    async def write_many(self, count: int) -> None:
        """Articles article:00001 and so on."""
        await self.connection.execute(
            "insert into article (key, execute_time) "
            "select 'article:' || lpad(n::text, 5, '0'), $2 from generate_series(1, $1) n",
            count,
            TOMORROW,
        )


def call_of(reconciler: ReconcilerRow, instance_id: int, attempt: int = 1) -> Call:
    now = datetime.now(UTC)
    return Call(
        instance_id, reconciler.job_id, reconciler.name, "default", None, now, now, attempt, attempt, now, 0, None,
        WorkerTarget(RECONCILE_HANDLER), None,
    )  # fmt: skip


@asynccontextmanager
async def desk(
    url: str, source: Mapping[str, Any] = SQL, bounds: Bounds | None = None, allow: Any = LOOPBACK
) -> AsyncGenerator[Desk]:
    """A desk on the database of `url`, which is the business's as well."""
    async with make.scope(url, sources=("business", "elsewhere")) as scope:
        connection = await connect(url, "horai test business")
        await connection.execute(TABLE)
        await make.job(scope)
        made = await reconcilers.create_reconciler(scope, ReconcilerWish("articles", "publish", source, {}))
        executor = ReconcileExecutor(
            make.platform(scope), scope.wakeups, AddressPolicy(allow), bounds, {"business": url}
        )
        await executor.open()
        try:
            yield Desk(scope, connection, executor, made.row)
        finally:
            await executor.close()
            connection.terminate()
