"""The service level: its rules, its minutes, and what a running server shows."""

from datetime import UTC, date, datetime, timedelta

import harness
import pytest
from databases import Superuser
from keys import created, holder, holding
from stages import workbench

from horai.core.health import BOUNDS, EngineHealth
from horai.features import sli
from horai.features.sli.rules import LAST_CLASS, LevelCounts, budget_of, burn_rate, by_day

NOW = datetime(2026, 11, 17, 9, tzinfo=UTC)


def test_the_budget_is_a_thousandth_of_the_starts_and_its_left_share_falls_below_zero() -> None:
    calm = budget_of(LevelCounts(100_000, 99_950))
    assert (calm.allowed, calm.spent, calm.left) == (100.0, 50, 0.5)
    assert budget_of(LevelCounts(100_000, 99_800)).left == -1.0
    assert budget_of(LevelCounts()).left == 1.0


def test_the_burn_rate_is_one_if_the_budget_is_spent_as_fast_as_allowed() -> None:
    assert burn_rate(LevelCounts(1_000, 999)) == 1.0
    assert burn_rate(LevelCounts(1_000, 990)) == 10.0
    assert burn_rate(LevelCounts()) == 0.0


def test_a_start_is_on_time_up_to_the_last_class_within_a_minute() -> None:
    assert BOUNDS[LAST_CLASS] <= 60 < BOUNDS[LAST_CLASS + 1]


def test_days_add_up_their_hours() -> None:
    hours = [
        (NOW, LevelCounts(10, 9)),
        (NOW + timedelta(hours=1), LevelCounts(5, 5)),
        (NOW - timedelta(days=1), LevelCounts(1, 1)),
    ]
    assert by_day(hours) == {date(2026, 11, 17): LevelCounts(15, 14), date(2026, 11, 16): LevelCounts(1, 1)}


async def write_minute(
    connection: Superuser, at: datetime, delays: list[list[int]], *, node: int = 1, tenant: int = 1
) -> None:
    started = sum(count for _, count in delays)
    await connection.execute(
        "insert into horai.minute (at, node, tenant_id, started, succeeded, failed, dead, delays)"
        " values ($1, $2, $3, $4, $4, 0, 0, $5) on conflict (tenant_id, at, node)"
        " do update set started = excluded.started, delays = excluded.delays",
        at, node, tenant, started, str(delays),
    )  # fmt: skip


async def test_minutes_of_all_processes_are_added_up_once_they_are_over_and_corrected_if_one_was_late(
    url: str,
) -> None:
    async with workbench(url) as bench:
        stage = bench.feature_stage(sli.FEATURE)
        this = bench.clock.now().replace(second=0, microsecond=0)
        last = this - timedelta(minutes=1)
        await write_minute(bench.connection, last, [[0, 8], [LAST_CLASS + 1, 2]])
        await write_minute(bench.connection, last, [[LAST_CLASS, 5]], node=2)
        await write_minute(bench.connection, this + timedelta(minutes=5), [[0, 99]])
        await stage.step(bench.clock.now())
        kept = "select at, started, on_time from horai.sli_minute"
        assert [tuple(row) for row in await bench.connection.fetch(kept)] == [(last, 15, 13)]
        await write_minute(bench.connection, last, [[LAST_CLASS, 6]], node=2)
        await stage.step(bench.clock.now())
        assert [tuple(row) for row in await bench.connection.fetch(kept)] == [(last, 16, 14)]


async def test_minutes_are_forgotten_after_35_days(url: str) -> None:
    async with workbench(url) as bench:
        stage = bench.feature_stage(sli.FEATURE)
        for days in (34, 36):
            at = bench.clock.now() - timedelta(days=days)
            await bench.connection.execute("insert into horai.sli_minute values ($1, 1, 1)", at)
        await stage.step(bench.clock.now() + timedelta(days=1))
        assert await bench.connection.fetchval("select count(*) from horai.sli_minute") == 1


async def test_the_platform_sees_the_service_level_and_a_tenant_does_not(url: str, connection: Superuser) -> None:
    now = await connection.fetchval("select clock_timestamp()")
    await connection.execute(
        "insert into horai.sli_minute values ($1, 900, 899), ($2, 100, 100)", now, now - timedelta(days=2)
    )
    async with harness.node(url) as api:
        shown = (await api("GET", "/api/v1/scheduler/sli")).json
        assert (shown["started"], shown["onTime"], shown["share"]) == (1000, 999, 0.999)
        assert shown["errorBudget"] == {"allowed": 1.0, "spent": 1, "left": pytest.approx(0.0, abs=1e-5)}
        assert shown["burnRate"] == pytest.approx(1.111)
        assert [(day["started"], day["late"]) for day in shown["byDay"]] == [(100, 0), (900, 1)]
        assert (await api("GET", "/api/v1/scheduler/sli?days=1")).json["started"] == 900
        assert (await api("GET", "/api/v1/scheduler/sli?days=31")).status == 422
        root = holding(api, (await created(api, "platform-admin"))["key"])
        admin = await holder(root, "admin", "default")
        assert (await admin("GET", "/api/v1/scheduler/sli")).status == 403
        assert (await root("GET", "/api/v1/scheduler/sli")).status == 200


def test_delays_of_every_start_are_in_the_counts_that_a_process_writes() -> None:
    health = EngineHealth()
    health.observe_delays(0.0, [7] * 3, [0.001, 59.0, 61.0])
    on_time = sum(count for which, count in health.by_job[7].delays.items() if which <= LAST_CLASS)
    assert on_time == 1, "59 s is in the class up to 68 s, which counts as late"
