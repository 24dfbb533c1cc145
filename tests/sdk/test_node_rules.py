"""Trigger rules, skips, branches and retries of nodes in Python: declared, run in virtual time, and read by handles."""

from datetime import UTC, datetime
from typing import Any

import pytest

from horai import Branch, Horai, Instance, InstanceSkipped, Invalid, Node, Retry, Skip, Unrecoverable, branch, step
from horai.core.limits import RESULT_LIMIT
from horai.core.outcome import FailedUnrecoverable, Succeeded
from horai.sdk.function_outcomes import outcome_of_value
from horai.testing import Harness

START = datetime(2026, 11, 15, 8, tzinfo=UTC)


async def states_of(run: Any) -> dict[str, str]:
    return {name: node.state for name, node in (await run.read()).nodes.items()}


class Files:
    """extract → load → clean (all_done), and alarm (one_failed) behind extract; `extract` does what `mood` says."""

    def __init__(self) -> None:
        self.app = Horai("files")
        self.mood = "good"

        @self.app.job(retry=0)
        async def extract() -> int:
            if self.mood == "broken":
                raise Unrecoverable("The source is gone.")
            if self.mood == "empty":
                raise Skip("no new files")
            return 3

        @self.app.job
        async def load(instance: Instance[Any]) -> Any:
            return instance.payload["parents"]["extract"]

        @self.app.job
        async def clean() -> None: ...

        @self.app.job
        async def alarm() -> None: ...

        self.extract, self.load, self.clean, self.alarm = extract, load, clean, alarm
        nodes = [
            Node(extract),
            Node(load, after=[extract]),
            Node(clean, after=[load], trigger_rule="all_done"),
            Node(alarm, after=[extract], trigger_rule="one_failed"),
        ]
        self.flow = self.app.workflow("files", nodes)


async def test_C6_rules_decide_in_every_mood_and_a_rerun_heals_a_blocked_run() -> None:
    files = Files()

    async with Harness(files.app, START):
        good = await files.flow.run()
        assert await good.wait() == "SUCCESS"
        assert await states_of(good) == {
            "extract": "SUCCESS", "load": "SUCCESS", "clean": "SUCCESS", "alarm": "SKIPPED",
        }  # fmt: skip
        assert (await good.read()).nodes["alarm"].trigger_rule == "one_failed"
        with pytest.raises(InstanceSkipped, match="was skipped"):
            await good.result("alarm")

        files.mood = "broken"
        broken = await files.flow.run()
        assert await broken.wait() == "BLOCKED"
        assert await states_of(broken) == {
            "extract": "DEAD", "load": "BLOCKED", "clean": "SUCCESS", "alarm": "SUCCESS",
        }  # fmt: skip
        files.mood = "good"
        await broken.rerun(from_node=files.extract)
        assert await broken.wait() == "SUCCESS"
        assert (await states_of(broken))["alarm"] == "SKIPPED"


async def test_C6_skip_skips_the_node_with_its_reason_and_needs_no_retry() -> None:
    files = Files()
    files.mood = "empty"

    async with Harness(files.app, START) as time:
        run = await files.flow.run()
        assert await run.wait() == "SUCCESS"
        assert await states_of(run) == {
            "extract": "SKIPPED", "load": "SKIPPED", "clean": "SUCCESS", "alarm": "SKIPPED",
        }  # fmt: skip
        nodes = (await run.read()).nodes
        assert nodes["extract"].skip_reason == "its function skipped it: no new files"
        assert nodes["load"].skip_reason == "its trigger rule allSuccess cannot be met: 'extract' is SKIPPED"
        with pytest.raises(InstanceSkipped, match="was skipped: no new files") as caught:
            await run.result(files.extract)
        assert caught.value.reason == "SKIPPED"
        assert len(time.fired(files.extract)) == 1

        alone = await files.extract.enqueue()
        with pytest.raises(InstanceSkipped):
            await alone.result()
        assert await alone.state() == "SUCCESS", "outside a workflow it has just succeeded"


async def test_C6_a_branch_chooses_by_job_or_name_and_hands_its_result_on() -> None:
    app = Horai("sizes")

    @app.job
    async def small(instance: Instance[Any]) -> int:
        return instance.payload["parents"]["measure"]

    @app.job
    def large() -> str:
        return "large"

    @app.job
    async def measure(instance: Instance[Any]) -> Branch[int] | None:
        rows = await step("count", lambda: instance.payload["rows"])
        return branch(small if rows < 100 else "large", result=rows) if rows else branch()

    @app.job
    async def tell(instance: Instance[Any]) -> Any:
        return (instance.payload or {}).get("parents")

    nodes = [
        Node(measure),
        Node(small, after=[measure]),
        Node(large, after=[measure]),
        Node(tell, after=[small, large], trigger_rule="none_failed"),
    ]
    flow = app.workflow("sizes", nodes)

    async with Harness(app, START):
        few, many, none = [await flow.run({"rows": rows}) for rows in (7, 700, 0)]
        assert [await run.wait() for run in (few, many, none)] == ["SUCCESS"] * 3
        assert [await run.result("tell") for run in (few, many, none)] == [
            {"small": 7, "large": None}, {"small": None, "large": "large"}, None,
        ]  # fmt: skip
        assert await few.result(measure) == 7
        assert await none.result(measure) is None
        assert (await few.read()).nodes["measure"].chosen == ("small",)
        assert (await none.read()).nodes["measure"].chosen == ()
        assert (await few.read()).nodes["large"].skip_reason == "a node before it chose other nodes"


async def test_a_branch_to_an_unknown_node_blocks_the_run_and_says_why() -> None:
    app = Horai("lost")

    @app.job
    async def pick() -> Branch[None]:
        return branch("nowhere")

    @app.job
    async def after() -> None: ...

    flow = app.workflow("lost", [Node(pick), Node(after, after=[pick])])

    async with Harness(app, START):
        run = await flow.run()
        assert await run.wait() == "BLOCKED"
        node = (await run.read()).nodes["pick"]
        assert (node.state, node.error_code) == ("DEAD", "BRANCH_UNKNOWN")
        assert node.error == "It chose a node that is not directly after it in the workflow."


async def test_C6_a_node_is_retried_by_its_own_policy_and_the_job_by_its_own() -> None:
    app = Horai("stubborn")

    @app.job(retry=0)
    async def load() -> None:
        raise ValueError("busy")

    flow = app.workflow("stubborn", [Node(load, retry=Retry(max=2, base="10s", jitter="none"))])

    async with Harness(app, START) as time:
        run = await flow.run()
        await time.advance("5m")
        assert await run.wait() == "BLOCKED"
        attempts = [fired.ran_at for fired in time.fired(load)]
        assert [(at - attempts[0]).total_seconds() for at in attempts] == [0, 20, 60]
        await load.enqueue()
        await time.advance("5m")
        assert len(time.fired(load)) == 4, "outside the workflow the job allows no retry"
        await run.rerun(from_node=load)
        await time.advance("5m")
        assert len(time.fired(load)) == 7, "a rerun has the policy of its run"


def test_a_branch_that_is_too_large_to_be_stored_is_an_invalid_result() -> None:
    kept = outcome_of_value(branch("a", result="x" * (RESULT_LIMIT - 100)))
    assert isinstance(kept, Succeeded)
    for large in (branch("a", result="x" * (RESULT_LIMIT - 10)), branch("a" * RESULT_LIMIT)):
        refused = outcome_of_value(large)
        assert isinstance(refused, FailedUnrecoverable)
        assert refused.code == "RESULT_INVALID"


def test_wrong_rules_and_retries_are_refused_where_the_workflow_is_declared() -> None:
    app = Horai("wrong")

    @app.job
    async def load() -> None: ...

    @app.job
    async def tell() -> None: ...

    with pytest.raises(Invalid, match="is only accepted with after"):
        app.workflow("a", [Node(load, trigger_rule="all_done")])
    with pytest.raises(Invalid, match="'some' is not a trigger rule"):
        app.workflow("b", [Node(load), Node(tell, after=[load], trigger_rule="some")])  # pyright: ignore
    with pytest.raises(Invalid, match=r"nodes\.0\.retry\.maxRetry"):
        app.workflow("c", [Node(load, retry=-1)])


async def test_a_start_writes_nothing_for_equal_rules_and_retries_and_a_change_of_one_is_applied() -> None:
    def shop(rule: Any, retry: int | None) -> Horai:
        app = Horai("shop")

        @app.job
        async def load() -> None: ...

        @app.job
        async def tell() -> None: ...

        app.workflow("nightly", [Node(load), Node(tell, after=[load], trigger_rule=rule, retry=retry)])
        return app

    first = shop("all_done", 3)
    async with Harness(first, START):
        scope = (await first.client()).scope
        assert (await shop("all_done", 3).declare_to(scope)).changed == ()
        assert (await shop("none_failed", 3).declare_to(scope)).changed == ("nightly",)
        assert (await shop("none_failed", 4).declare_to(scope)).changed == ("nightly",)
        assert (await shop("none_failed", None).declare_to(scope)).changed == ("nightly",)
        assert (await shop("none_failed", None).declare_to(scope)).changed == ()
