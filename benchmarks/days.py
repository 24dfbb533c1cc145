"""Days: a month of work with retention on. Sizes stay flat after the window, and the last days are as fast as the first.

PostgreSQL runs with the clock of libfaketime (a package of Debian), so each day of the month takes seconds and nothing
else differs: make bench ARGS="days --times 1 --rows 100000". `--rows` are the instances of a day; a tenth of them have
keys of their own.
"""

import asyncio
import os
import signal
import statistics
import subprocess
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import asyncpg

from benchmarks import backlog
from benchmarks.backlog import Spread
from benchmarks.engines import SETTINGS, Delays, NoOp, running_engine, settled
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import TEMPLATE, Sitting, sit_down
from horai.db.pool import Platform, connect
from horai.embedded import EmbeddedPostgres

LIBRARIES = Path("/usr/lib")
DAYS = 31
QUICK_DAYS = 4
KEEP = SETTINGS.history_keep
QUICK_KEEP = timedelta(days=1)
COMPARED = 3
"""Days at each end of the month whose medians are compared."""
RATE = 1_000
KEYED = 10
"""One instance in this number has a key."""
NEVER = timedelta(hours=1)
LONG = 120.0
PUT = "select count(*) from (select horai.put_instance('noop0', 'd' || $1::int || '-' || n) from generate_series(1, $2::int) n) put"
PUT_AGAIN = "select (horai.put_instance('noop0', 'd0-1')).decision"
SIZES = """
select coalesce(sum(pg_total_relation_size(oid)) filter (where relname <> 'key_past'), 0)::bigint as all_tables,
    coalesce(sum(pg_total_relation_size(oid)) filter (where relname = 'key_past'), 0)::bigint as keys
from pg_class where relnamespace = 'horai'::regnamespace and relkind in ('r', 'S')
"""
IS_KEPT_UP = """
select (fold.folded_before >= due.before or not exists (select from horai.instance_history where finished_at < due.before)) and not exists (
    select from pg_class where relname ~ '^(instance_history|attempt|event|note)_[0-9]{8}$' and relnamespace = 'horai'::regnamespace
        and to_date(right(relname, 8), 'YYYYMMDD') + 1 <= (clock_timestamp() at time zone 'UTC' - $1::interval)::date)
from horai.history_fold fold cross join (select date_trunc('day', clock_timestamp() - interval '61 min', 'UTC') as before) due
"""
PRESSED = """
select count(*) from horai.instance_history where state = 2 and finished_at >= clock_timestamp() - interval '12 hours'
"""


class NoClock(RuntimeError):
    """The library that moves the clock of PostgreSQL is not installed."""


def library() -> Path | None:
    """Return the path of libfaketime, None if it is not installed."""
    return next(iter(sorted(LIBRARIES.glob("*/faketime/libfaketime.so.1"))), None)


@dataclass(frozen=True, slots=True)
class Day:
    """The measurements of one day: instances drained per second, p99 in milliseconds, upkeep in seconds, bytes."""

    drain: float
    p99: float
    upkeep: float
    bytes: int
    key_bytes: int


@dataclass(slots=True)
class Month:
    """A server whose clock is moved by days."""

    url: str
    clock: Path
    keep: timedelta
    rows: int
    seconds: float
    days: list[Day] = field(default_factory=list[Day])

    async def move_to(self, connection: Platform, day: int) -> None:
        """Move the clock of PostgreSQL to the same time of a later day."""
        self.clock.write_text(f"+{day}d\n")
        async with asyncio.timeout(LONG):
            while abs(await _ahead(connection) - day * 86_400) > 60:
                await asyncio.sleep(0.1)

    async def live_a_day(self, connection: Platform, day: int) -> None:
        """Do the work of a day, then what retention does at its end."""
        await self.move_to(connection, day)
        await connection.execute("select horai.make_partitions((clock_timestamp() at time zone 'UTC')::date, 3)")
        await backlog.fill(connection, self.rows - self.rows // KEYED)
        await connection.execute(PUT, day, self.rows // KEYED, timeout=LONG)
        drain = await self._drained(connection)
        p99 = await self._p99(connection, day)
        began = time.perf_counter()
        if day:
            await self._keep_up(connection)
        upkeep = time.perf_counter() - began
        row = await connection.fetchrow(SIZES)
        assert row is not None
        self.days.append(Day(drain, p99, upkeep, row["all_tables"], row["keys"]))

    async def _drained(self, connection: Platform) -> float:
        executor = NoOp()
        began = time.perf_counter()
        async with running_engine(self.url, executor, settings=replace(SETTINGS, background_after=NEVER)) as health:
            await settled(health, self.rows)
            rate = self.rows / (time.perf_counter() - began)
        there = await connection.fetchval(PRESSED, timeout=LONG)
        if (executor.calls, there) != (self.rows, self.rows):
            raise RuntimeError(f"{executor.calls} calls and {there} successes for {self.rows} rows")
        return rate

    async def _p99(self, connection: Platform, day: int) -> float:
        rows = max(int(RATE * self.seconds), 1)
        await connection.execute(
            "vacuum (analyze) horai.instance_live", timeout=LONG
        )  # of the drain, not beside the load
        await backlog.fill(connection, rows, Spread(2.0, even=self.seconds, scatter=0.0))
        executor = Delays()
        async with running_engine(self.url, executor, settings=replace(SETTINGS, background_after=NEVER)) as health:
            await settled(health, rows)
        delays = sorted(seconds + day * 86_400 for seconds in executor.seconds)
        return delays[min(int(len(delays) * 0.99), len(delays) - 1)] * 1000

    async def _keep_up(self, connection: Platform) -> None:
        """Let an engine fold and drop days, until none is left to fold or to drop."""
        settings = replace(SETTINGS, background_after=timedelta(0), history_keep=self.keep)
        async with running_engine(self.url, NoOp(), settings=settings), asyncio.timeout(LONG):
            while not await connection.fetchval(IS_KEPT_UP, self.keep):
                await asyncio.sleep(0.05)


async def _ahead(connection: Platform) -> float:
    return await connection.fetchval("select extract(epoch from clock_timestamp())::float8") - time.time()


@asynccontextmanager
async def _with_movable_clock(server: EmbeddedPostgres, clock: Path) -> AsyncGenerator[None]:
    """Run the server of a sitting again, with the clock that this file moves."""
    fake = library()
    if fake is None:
        raise NoClock("libfaketime is not installed: apt-get install libfaketime")
    command, user = (
        Path(f"/proc/{server.pid}/cmdline").read_bytes().split(b"\0")[:-1],
        Path(f"/proc/{server.pid}").stat(),
    )
    await server.stop()
    clock.write_text("+0d\n")
    clock.chmod(0o644)
    environment: Mapping[str, str] = {
        "LC_ALL": "C",
        "LD_PRELOAD": str(fake),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    is_other = user.st_uid != os.geteuid()
    process = subprocess.Popen(
        command,
        env=environment,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        user=user.st_uid if is_other else None,
        group=user.st_gid if is_other else None,
        extra_groups=[] if is_other else None,
    )
    try:
        yield
    finally:
        process.send_signal(signal.SIGINT)  # a fast shutdown
        await asyncio.to_thread(process.wait, LONG)


async def _connect(url: str) -> Platform:
    async with asyncio.timeout(LONG):
        while True:
            try:
                return await connect(url, "bench", command_timeout=timedelta(seconds=LONG))
            except (OSError, asyncpg.CannotConnectNowError):
                await asyncio.sleep(0.1)


async def sample(sitting: Sitting) -> Sample:
    """Live the month on a server of its own."""
    quick = sitting.size.quick
    async with sit_down(sitting.size) as own:
        url = own.url_of(TEMPLATE)
        clock = Path(own.server.log_path).parent / "clock"
        async with _with_movable_clock(own.server, clock):
            connection = await _connect(url)
            await backlog.make_jobs(url)
            month = Month(url, clock, QUICK_KEEP if quick else KEEP, sitting.size.rows, sitting.size.seconds / 4)
            for day in range(QUICK_DAYS if quick else DAYS):
                await month.live_a_day(connection, day)
                last = month.days[-1]
                print(
                    f"day {day}: drain {last.drain:,.0f}/s, p99 {last.p99:.1f} ms, upkeep {last.upkeep:.1f} s,"
                    f" {last.bytes / 1e6:,.1f} MB, keys {last.key_bytes / 1e6:,.1f} MB",
                    flush=True,
                )
            if (decision := await connection.fetchval(PUT_AGAIN)) != "IGNORED":
                raise RuntimeError(f"the put of a key that succeeded on the first day is {decision}")
            keys = await connection.fetchval("select count(*) from horai.key_past")
            await connection.close()
    return _figures(month, keys)


def _figures(month: Month, keys: int) -> Sample:
    first, last = month.days[:COMPARED], month.days[-COMPARED:]
    full = month.days[month.keep.days + 1 :][:COMPARED]
    return {
        "first days": statistics.median(day.drain for day in first),
        "last days": statistics.median(day.drain for day in last),
        "first days p99": statistics.median(day.p99 for day in first),
        "last days p99": statistics.median(day.p99 for day in last),
        "tables after the window": statistics.median(day.bytes for day in full) / 1e6,
        "tables at the end": statistics.median(day.bytes for day in last) / 1e6,
        "upkeep of a day": statistics.median(day.upkeep for day in last),
        "bytes of a kept key": last[-1].key_bytes / max(keys, 1),
    }


SCENARIO = Scenario(
    "days",
    f"{DAYS} days with {KEEP.days} days of history kept, by a moved clock",
    sample,
    (
        Line("first days", "/s"),
        Line("last days", "/s", per="first days", at_least=0.95),
        Line("first days p99", "ms"),
        Line("last days p99", "ms", per="first days p99", at_most=1.05),
        Line("tables after the window", "MB"),
        Line("tables at the end", "MB", per="tables after the window", at_most=1.05),
        Line("upkeep of a day", "s"),
        Line("bytes of a kept key", "B"),
    ),
    by_name_only=True,
)
