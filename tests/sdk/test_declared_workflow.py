"""Workflows that code declares: checked at once, applied at the start, run in a time that only the test moves."""

from datetime import UTC, datetime
from typing import Any, cast

import pytest

from horai import Horai, Instance, Invalid, Node, Retry
from horai.features.workflow import service as workflows
from horai.operations import jobs
from horai.testing import Harness

START = datetime(2026, 11, 15, 8, tzinfo=UTC)


def shop() -> tuple[Horai, Any, Any]:
    app = Horai("shop")

    @app.job
    async def load() -> int:
        return 42

    @app.job
    async def report(instance: Instance[Any]) -> Any:
        return instance.payload

    return app, load, report


async def test_C6_a_declared_workflow_runs_at_its_time_and_hands_results_on() -> None:
    app, load, report = shop()
    nodes = [Node(load), Node(report, after=[load], payload={"to": "ann"})]
    nightly = app.workflow("nightly", nodes, cron="0 9 * * *")

    async with Harness(app, START) as time:
        await time.advance("2h")
        assert [fired.result for fired in time.fired(report)] == [{"to": "ann", "parents": {"load": 42}}]

        first = await nightly.trigger(idempotency_key="again")
        assert isinstance(first, int)
        await time.advance("1s")
        assert len(time.fired(load)) == 2


async def test_a_start_that_finds_everything_as_the_code_says_writes_nothing() -> None:
    app, load, report = shop()
    app.workflow("nightly", [Node(load), Node(report, after=[load])], cron="0 9 * * *", start_at=START)

    async with Harness(app, START):
        scope = (await app.client()).scope
        before = await workflows.read_workflow(scope, "nightly")
        applied = await app.declare()

        assert (applied.created, applied.changed, set(applied.unchanged)) == ((), (), {"load", "report", "nightly"})
        assert await workflows.read_workflow(scope, "nightly") == before


async def test_a_declared_workflow_replaces_the_stored_one_and_keeps_its_pause() -> None:
    app, load, report = shop()
    app.workflow("nightly", [Node(load), Node(report, after=[load])], cron="0 9 * * *", tags=["old"])

    async with Harness(app, START):
        scope = (await app.client()).scope
        await jobs.pause_job(scope, "nightly", "for now")
        del app._workflows["nightly"]
        app.workflow("nightly", [Node(load), Node(load, after=["load"], name="twice")], every="1h")
        applied = await app.declare()
        found = await workflows.read_workflow(scope, "nightly")

        assert applied.changed == ("nightly",)
        assert [row.node.name for row in found.row.nodes] == ["load", "twice"]
        assert (found.job.document.get("cron"), found.job.document["every"], found.job.document["tags"]) == (
            None,
            "1h",
            [],
        )
        assert (found.job.status.name, found.job.note) == ("PAUSED", "for now")


async def test_a_declared_workflow_has_labels_and_its_code_changes_and_removes_them() -> None:
    app, load, _ = shop()
    app.workflow("nightly", [Node(load)], title="夜间对账", owner="data team", description="Every night.")

    async def labels() -> list[Any]:
        found = (await workflows.read_workflow((await app.client()).scope, "nightly")).job.document
        return [found.get(field) for field in ("title", "owner", "description")]

    async with Harness(app, START):
        assert await labels() == ["夜间对账", "data team", "Every night."]
        assert "nightly" in (await app.declare()).unchanged
        del app._workflows["nightly"]
        app.workflow("nightly", [Node(load)], title="Ledger")
        assert (await app.declare()).changed == ("nightly",)
        assert await labels() == ["Ledger", None, None]


def test_U6_overlap_is_declared_in_code() -> None:
    app, load, _ = shop()

    assert app.workflow("alone", [Node(load)], cron="0 2 * * *", overlap="queue").written.document["overlap"] == "queue"
    with pytest.raises(Invalid, match="overlap"):
        app.workflow("odd", [Node(load)], cron="0 2 * * *", overlap=cast("Any", "sometimes"))


def test_an_invalid_workflow_is_refused_when_it_is_declared() -> None:
    app, load, report = shop()

    with pytest.raises(Invalid, match="The workflow 'round': nodes: contain a cycle"):
        app.workflow("round", [Node(load, after=[report]), Node(report, after=[load])])
    with pytest.raises(Invalid, match="there is no node 'report'"):
        app.workflow("lost", [Node(load, after=[report])])
    with pytest.raises(Invalid, match="retry: is not for workflows"):
        app.workflow("odd", [Node(load)], retry=Retry())
    with pytest.raises(Invalid, match="is declared twice"):
        app.workflow("load", [Node(load)])


async def test_a_workflow_that_another_application_declares_is_not_touched() -> None:
    app, load, report = shop()
    app.workflow("nightly", [Node(load), Node(report, after=[load])])

    async with Harness(app, START):
        scope = (await app.client()).scope
        before = await workflows.read_workflow(scope, "nightly")
        other = Horai("other")
        other.workflow("nightly", [Node("load")])
        with pytest.raises(Invalid, match="the application 'shop' declares") as refused:
            await other.declare_to(scope)

        assert await workflows.read_workflow(scope, "nightly") == before
        assert refused.value.hint is not None
        assert "Horai('other', formerly='shop')" in refused.value.hint
        assert (await app.declare()).removed == ()
