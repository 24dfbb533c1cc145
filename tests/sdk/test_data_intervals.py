"""The data interval of an instance: in functions, in nodes of workflows, in other processes and in HTTP calls."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horai import Horai, Instance, Interval, Node, NoInterval
from horai.core.callbacks import body_of
from horai.core.calls import Call, WorkerTarget
from horai.isolation.frames import begin, call_of
from horai.testing import Harness, NotEnded
from horai.time.schedule import CronSchedule

START = datetime(2026, 11, 13, 12, tzinfo=UTC)  # a Friday
DAY = timedelta(days=1)


def seen_by(instance: Instance[Any]) -> list[str]:
    return [instance.interval.start.isoformat(), instance.interval.end.isoformat()]


async def test_the_interval_of_a_slot_reaches_back_to_the_slot_before_it() -> None:
    app = Horai("books")

    @app.job(cron="0 9 * * 1-5")
    async def close_day(instance: Instance[Any]) -> list[str]:
        return seen_by(instance)

    @app.job
    async def by_hand(instance: Instance[Any]) -> str:
        with pytest.raises(NoInterval, match="no schedule stands behind it"):
            _ = instance.interval
        return "none"

    async with Harness(app, START) as time:
        await time.advance("3d")
        assert [fired.result for fired in time.fired(close_day)] == [
            ["2026-11-13T09:00:00+00:00", "2026-11-16T09:00:00+00:00"]  # Monday covers the weekend
        ]
        now = await close_day.enqueue()
        assert await now.result() == ["2026-11-16T09:00:00+00:00", "2026-11-16T12:00:00+00:00"]
        assert await (await by_hand.enqueue()).result() == "none"


async def test_every_node_has_the_interval_of_its_run_also_after_a_replay_and_a_change_of_the_schedule() -> None:
    app = Horai("books")
    broken = [True]

    @app.job(cron="0 0 1 * *")
    async def load(instance: Instance[Any]) -> list[str]:
        return seen_by(instance)

    @app.job(retry=0)
    async def report(instance: Instance[Any]) -> list[str]:
        if broken.pop() if broken else False:
            raise ValueError("not yet")
        return seen_by(instance)

    nightly = app.workflow("nightly", [Node(load), Node(report, after=[load])], cron="0 9 * * *")
    week = [START.replace(hour=9) - DAY * days for days in (6, 5)]

    async with Harness(app, START):
        run = await nightly.run(logical_date=week[1])
        assert await run.wait() == "BLOCKED"
        del app._workflows["nightly"]
        changed = app.workflow("nightly", [Node(load), Node(report, after=[load])], every="1h")
        await app.declare()
        await run.rerun(from_node=report)
        assert await run.wait() == "SUCCESS"
        expected = [instant.isoformat() for instant in week]
        assert [await run.result(load), await run.result(report)] == [expected, expected]
        assert run.last.interval == Interval(*week)
        assert [each.last.interval for each in await changed.runs()] == [Interval(*week)]

        unscheduled = app.workflow("by-hand", [Node(load)])
        await app.declare()
        loose = await unscheduled.run()
        with pytest.raises(NotEnded):  # its job has a schedule, and its run has none: the function raises
            await loose.wait()
        assert (await loose.read()).interval is None


def a_call(**fields: Any) -> Call:
    fire = datetime(2026, 11, 16, 9, tzinfo=UTC)
    told: Any = {"interval_from": CronSchedule("0 9 * * 1-5"), **fields}
    return Call(7, 3, "close", "default", None, fire, fire, 1, 1, fire, 0, None, WorkerTarget("close"), None, **told)


def test_an_http_target_gets_the_interval_and_only_if_there_is_one() -> None:
    interval = json.loads(body_of(a_call()))["interval"]
    assert interval == {"start": "2026-11-13T09:00:00.000Z", "end": "2026-11-16T09:00:00.000Z"}
    assert "interval" not in json.loads(body_of(a_call(interval_from=None)))


def test_a_function_in_a_process_of_its_own_gets_the_interval() -> None:
    call = call_of(begin(a_call(), "close"))

    assert call.interval_start == datetime(2026, 11, 13, 9, tzinfo=UTC)
