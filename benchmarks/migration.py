"""Migration: how late instances begin while a large table of waiting ones gets a column, a check and an index.

The migration runs as `horai migrate` runs it, beside an engine with a steady load. `--rows` are the waiting instances:
make bench ARGS="migration --times 1 --rows 10000000".
"""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from benchmarks import backlog
from benchmarks.backlog import FILL, LANES, LONG, Spread
from benchmarks.engines import running_engine
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting
from horai.core.calls import Call
from horai.core.limits import SHARDS
from horai.core.outcome import SUCCESS, Outcome
from horai.db.migration_file import Migration
from horai.db.migration_runner import MigrationRunner
from horai.db.pool import Platform, connect, opened

RATE = 200
SETTLED_WITHIN = 30.0
LEFT = "select count(*) from horai.instance_live where due between to_timestamp($1) and to_timestamp($2)"
AT_ONCE = 500_000
"""Waiting rows of one insert."""
LEAD = 6.0
"""Seconds from an insert of the load to its time: a node finds rows that no wake announced within 3 s."""
CALM = 3.0
"""Seconds of load before the migration, to compare with."""
STEPS = (
    "alter table horai.instance_live add column bench_note text not null default 'none';"
    "alter table horai.instance_history add column bench_note text not null default 'none'",
    "alter table horai.instance_live add constraint bench_check check (bench_note is not null) not valid",
    "alter table horai.instance_live validate constraint bench_check",
    "-- no-transaction\n"
    "create index concurrently if not exists bench_live on horai.instance_live (job_id, created_at, bench_note);"
    "create index concurrently if not exists bench_history on horai.instance_history (job_id, bench_note)",
)


@dataclass(frozen=True, slots=True)
class Began:
    """The call of an instance: its time by the clock of the machine, and how late it was, in seconds."""

    due: float
    delay: float


class Beginnings:
    """Notes when each call began. PostgreSQL is on this machine, so its clock is the same."""

    def __init__(self) -> None:
        self.calls: list[Began] = []

    async def run(self, call: Call) -> Outcome:
        due = call.execute_time.timestamp()
        self.calls.append(Began(due, time.time() - due))
        return SUCCESS

    def quantile(self, share: float, since: float, until: float) -> float:
        """The delay that `share` of the instances that were due in between did not exceed."""
        delays = sorted(call.delay for call in self.calls if since <= call.due < until)
        return delays[min(int(len(delays) * share), len(delays) - 1)] if delays else 0.0


@dataclass(frozen=True, slots=True)
class MigrationLoad:
    """The delays of the load, in seconds, before and during the migration, and how long it took."""

    calm_p99: float
    p99: float
    longest: float
    took: float
    calls: int


async def measure(url: str, waiting: int, lead: float = LEAD, calm: float = CALM) -> MigrationLoad:
    """Migrate a database with `waiting` live instances while an engine runs `RATE` a second."""
    await backlog.make_jobs(url)
    connection = await connect(url, "bench", command_timeout=timedelta(seconds=LONG))
    for begun in range(0, waiting, AT_ONCE):
        await _insert(connection, min(AT_ONCE, waiting - begun), Spread(86_400.0, scatter=86_400.0))
    await connection.execute("vacuum analyze horai.instance_live", timeout=6 * LONG)
    executor = Beginnings()
    async with running_engine(url, executor), _load(url, lead):
        await asyncio.sleep(lead + calm)
        begun = time.time()
        await _migrate(url)
        ended = time.time()
        missing, waited = 1, time.monotonic()
        while missing and time.monotonic() - waited < SETTLED_WITHIN:  # for those that were due at the end
            await asyncio.sleep(0.1)
            missing = await connection.fetchval(LEFT, begun, ended)
    if missing:
        raise RuntimeError(f"{missing} instances that were due during the migration have not begun")
    await connection.close()
    return MigrationLoad(
        executor.quantile(0.99, begun - calm, begun),
        executor.quantile(0.99, begun, ended),
        executor.quantile(1.0, begun, ended),
        ended - begun,
        sum(begun <= call.due < ended for call in executor.calls),
    )


async def _insert(connection: Platform, rows: int, spread: Spread) -> None:
    await connection.execute(FILL, rows, SHARDS, LANES, spread.begin, spread.even, 1, spread.scatter, timeout=LONG)


@asynccontextmanager
async def _load(url: str, lead: float) -> AsyncGenerator[None]:
    """Insert the instances of each coming second, until the end."""
    connection = await connect(url, "bench load")

    async def feed() -> None:
        while True:
            begun = time.monotonic()
            await _insert(connection, RATE, Spread(lead, even=1.0, scatter=0.0))
            await asyncio.sleep(max(1.0 - (time.monotonic() - begun), 0.0))

    feeding = asyncio.create_task(feed())
    try:
        yield
        if feeding.done():
            feeding.result()
    finally:
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)
        connection.terminate()


async def _migrate(url: str) -> None:
    async with opened(url, "bench migrate") as connection:
        runner = MigrationRunner(connection, lambda _: None)

        async def record() -> None:
            """Keep no ledger: the database is dropped."""

        for number, text in enumerate(STEPS, 9001):
            await runner.apply(Migration(number, "bench", text), ["horai.instance_live"], record)


async def sample(sitting: Sitting) -> Sample:
    """One migration of `--rows` waiting instances."""
    async with sitting.database("migration") as url:
        found = await measure(
            url, sitting.size.rows, sitting.size.wait(LEAD, 0.5), sitting.size.wait(CALM, sitting.size.seconds)
        )
    return {
        "before the migration p99": found.calm_p99 * 1000,
        "during the migration p99": found.p99 * 1000,
        "during the migration max": found.longest * 1000,
        "migration": found.took,
    }


SCENARIO = Scenario(
    "migration",
    "the load of nodes while a table of waiting instances gets a column and an index",
    sample,
    (
        Line("before the migration p99", "ms"),
        Line("during the migration p99", "ms", at_most=1000.0),
        Line("during the migration max", "ms"),
        Line("migration", "s"),
    ),
    by_name_only=True,
)
