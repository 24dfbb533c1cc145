"""Workflows in a time that only the test moves."""

from datetime import UTC, datetime
from typing import Any

from horai import Horai, Instance, Unrecoverable
from horai.features.workflow import service as workflows
from horai.features.workflow.definition import WorkflowNode, WrittenWorkflow
from horai.testing import Harness

START = datetime(2026, 11, 15, 8, tzinfo=UTC)


async def nightly(app: Horai) -> None:
    nodes = (
        WorkflowNode("load", "load"),
        WorkflowNode("left", "left", ("load",)),
        WorkflowNode("report", "report", ("load", "left")),
    )
    written = WrittenWorkflow({"name": "nightly", "cron": "0 9 * * *"}, nodes, None)
    await workflows.create_workflow((await app.client()).scope, written)


async def test_C6_a_workflow_runs_at_its_time_in_its_order_and_hands_results_on() -> None:
    app = Horai("flows")

    @app.job
    async def load() -> int:
        return 42

    @app.job
    async def left(instance: Instance[Any]) -> int:
        return instance.payload["parents"]["load"] + 1

    @app.job
    async def report(instance: Instance[Any]) -> dict[str, int]:
        return instance.payload["parents"]

    async with Harness(app, START) as time:
        await nightly(app)
        await time.advance("2d")

        assert [fired.ran_at.hour for fired in time.fired(load)] == [9, 9]
        assert [fired.fire_time for fired in time.fired(report)] == [fired.fire_time for fired in time.fired(load)]
        assert [fired.result for fired in time.fired(report)] == [{"load": 42, "left": 43}] * 2


async def test_a_dead_node_holds_up_its_run_and_no_other() -> None:
    app = Horai("flows")

    @app.job
    async def load(instance: Instance[Any]) -> None:
        if instance.fire_time.day == 15:
            raise Unrecoverable("no data today")

    @app.job
    async def left() -> None: ...

    @app.job
    async def report() -> None: ...

    async with Harness(app, START) as time:
        await nightly(app)
        await time.advance("2d")

        assert [fired.state for fired in time.fired(load)] == ["DEAD", "SUCCESS"]
        assert [fired.fire_time.day for fired in time.fired(report)] == [16]
