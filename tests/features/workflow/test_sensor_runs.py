"""Runs with sensors, step by step: the deadline from the start of the node on, cancels, and every kind of answer."""

import json
from datetime import timedelta
from typing import Any

import flows
import pytest
from orchestra import Orchestra
from stages import Workbench, workbench

from horai.core.node_results import is_not_ready, wait_text
from horai.core.outcome import Complete, Release, Succeeded, plan
from horai.core.retry import RetryPolicy
from horai.core.wakes import ExpiriesWake
from horai.db.verify import verify
from horai.engine.expirer import Expirer
from horai.features.dead_letters import service as dead_letters
from horai.features.explain.service import explain_instance
from horai.features.workflow import rerun as reruns
from horai.features.workflow.rerun_store import NodeNow
from horai.operations.instances import cancel_by_id

SENSOR = {"every": "1m", "deadline": "2h"}
WAIT = {"horai:wait": "not yet"}


async def begun(bench: Workbench, *, dies: bool = False, **settings: Any) -> tuple[Orchestra, int]:
    """first → file (a sensor, which waits, or dies at its first question) → last."""
    more = {"file": {"sensor": {**SENSOR, **settings}}}
    made = await flows.workflow(bench.scope, {"first": (), "file": ("first",), "last": ("file",)}, more=more)
    band = Orchestra(bench)
    band.answer("file") if dies else band.answer(file=WAIT)
    run = await flows.start(bench.scope, bench.connection, made)
    await band.play()
    await band.play()
    return band, run


async def view(bench: Workbench, run: int) -> dict[str, NodeNow]:
    return {node.name: node for node in (await reruns.read_run(bench.scope, "nightly", run)).nodes}


async def ends(bench: Workbench, run: int) -> list[str]:
    nodes = await view(bench, run)
    return [nodes[name].state_name for name in ("first", "file", "last")]


async def expire(bench: Workbench, band: Orchestra) -> None:
    await bench.connection.execute(
        "update horai.instance_live set expires_at = clock_timestamp() where expires_at is not null"
    )
    await Expirer(bench.line("expirer"), bench.scope.wakeups, bench.settings).step(bench.clock.now())
    await band.play()
    await band.play()


async def test_C6_a_sensor_after_other_nodes_waits_from_its_start_on(url: str):
    async with workbench(url) as bench:
        _, run = await begun(bench)
        node = (await view(bench, run))["file"]
        row = await bench.connection.fetchrow(
            "select expires_at - clock_timestamp() as left, retry_count, state, due - clock_timestamp() as pause,"
            " (select count(*) from horai.queue_slot) as slots from horai.instance_live where id = $1",
            node.instance_id,
        )
        assert row is not None
        assert timedelta(minutes=118) < row["left"] < timedelta(hours=2)
        assert timedelta(seconds=30) < row["pause"] <= timedelta(minutes=1)
        assert (row["retry_count"], row["state"], row["slots"]) == (0, 0, 0)
        assert node.sensor is not None
        assert node.sensor.polls == 1
        assert [each for each in await verify(bench.connection) if each.violations] == []


@pytest.mark.parametrize(
    ("end", "states"), [("fail", ["SUCCESS", "DEAD", "BLOCKED"]), ("skip", ["SUCCESS", "SKIPPED", "SKIPPED"])]
)
async def test_C6_at_its_deadline_a_sensor_is_dead_or_skipped(url: str, end: str, states: list[str]):
    async with workbench(url) as bench:
        band, run = await begun(bench, onDeadline=end)
        await expire(bench, band)
        assert await ends(bench, run) == states
        assert await flows.phase(bench.connection, run) == ("BLOCKED" if end == "fail" else "SUCCESS")
        causes = (await reruns.read_run(bench.scope, "nightly", run)).causes
        assert [cause.error_code for cause in causes] == (["SENSOR_DEADLINE"] if end == "fail" else [])


@pytest.mark.parametrize("first", ["file", "first"])
async def test_C6_a_rerun_tells_the_expirer_of_the_new_deadline(url: str, first: str):
    async with workbench(url) as bench:
        band, run = await begun(bench)
        await expire(bench, band)
        told: list[ExpiriesWake] = []
        bench.scope.wakeups.subscribe(ExpiriesWake, told.append)
        await reruns.rerun(bench.scope, "nightly", run, first)
        assert bool(told) == (first == "file"), "a sensor after other nodes has no deadline yet"
        await band.play()
        await band.play()
        assert told


async def test_C6_the_replay_of_a_sensor_that_failed_has_a_deadline_of_its_own(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, dies=True)
        assert await ends(bench, run) == ["SUCCESS", "DEAD", "BLOCKED"]
        band.answer(file=WAIT)
        told: list[ExpiriesWake] = []
        bench.scope.wakeups.subscribe(ExpiriesWake, told.append)

        letter = await bench.connection.fetchval("select id from horai.dead_letter")
        await dead_letters.replay_letter(bench.scope, letter)
        await band.play()
        await band.play()

        left = await bench.connection.fetchval(
            "select expires_at - clock_timestamp() from horai.instance_live where state = 0"
        )
        assert timedelta(minutes=118) < left < timedelta(hours=2, minutes=1)
        assert told


async def test_C6_a_cancelled_sensor_is_cancelled(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, onDeadline="skip")
        await reruns.cancel_run(bench.scope, "nightly", run)
        await band.play()
        assert await ends(bench, run) == ["SUCCESS", "CANCELLED", "CANCELLED"]


async def test_C6_a_sensor_whose_instance_is_cancelled_is_not_taken_for_one_at_its_deadline(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, onDeadline="skip")
        node = (await view(bench, run))["file"]
        assert node.instance_id is not None
        await cancel_by_id(bench.scope, node.instance_id)
        await band.play()
        assert (await ends(bench, run))[1] == "CANCELLED"


@pytest.mark.parametrize(
    ("text", "is_wait"),
    [
        (wait_text("x"), True),
        ('{"horai:wait": null, "more": 1}', True),
        ('{"more": 1, "horai:wait": "x"}', False),
        ('{"horai:skip": "x"}', False),
        ('["horai:wait"]', False),
        ("null", False),
        (None, False),
    ],
)
def test_only_the_first_member_of_an_object_is_an_answer_of_a_sensor(text: str | None, is_wait: bool) -> None:
    assert is_not_ready(text) is is_wait


def test_an_answer_gives_the_attempt_of_a_sensor_back_and_completes_another_job() -> None:
    answer = Succeeded(json.dumps(WAIT))
    sensor = RetryPolicy(poll=timedelta(seconds=7))
    assert plan(sensor, 3, answer, lambda low, _: low) == Release(timedelta(seconds=7), postponed=True, is_quiet=True)
    assert plan(sensor, 0, Succeeded("1"), lambda low, _: low) == Complete("1")
    assert plan(RetryPolicy(), 0, answer, lambda low, _: low) == Complete(answer.output)


async def test_the_explanation_of_a_sensor_names_its_next_question_and_its_deadline(url: str):
    async with workbench(url) as bench:
        _, run = await begun(bench)
        node = (await view(bench, run))["file"]
        assert node.instance_id is not None
        assert node.sensor is not None
        told = str((await explain_instance(bench.scope, node.instance_id)).why)
        assert "was not met: the sensor asks again at" in told
        assert "and gives up at" in told
