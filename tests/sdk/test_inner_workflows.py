"""Nodes that run other workflows, in Python: declared, run in virtual time, and read by handles."""

from datetime import UTC, datetime
from typing import Any

import pytest

from horai import ChildRunInfo, Horai, Instance, Invalid, Node, Param, Retry, Unrecoverable
from horai.testing import Harness

START = datetime(2026, 11, 15, 8, tzinfo=UTC)


class Shop:
    """nightly: load → report (the workflow daily: render → send) → tell; `render` fails with the days in `broken`."""

    def __init__(self, **fields: Any) -> None:
        self.app = Horai("shop")
        self.broken: set[str] = set()
        self.seen = list[Any]()

        @self.app.job
        async def load() -> int:
            return 3

        @self.app.job(retry=0)
        async def render(instance: Instance[Any]) -> int:
            self.seen.append(instance.payload)
            if instance.payload["day"] in self.broken:
                raise Unrecoverable("broken")
            return instance.payload["rows"] * 10

        @self.app.job
        async def send(instance: Instance[Any]) -> str:
            return f"sent {instance.payload['parents']['render']}"

        @self.app.job
        async def tell(instance: Instance[Any]) -> Any:
            return instance.payload["parents"]["report"]["results"]["send"]

        self.render, self.tell = render, tell
        self.daily = self.app.workflow("daily", [Node(render), Node(send, after=[render])])
        params = {
            "day": Param(payload="day"),
            "rows": Param(result_of=load),
            "mode": "full",
            "none": Param(payload="x"),
        }
        report = Node(workflow=self.daily, name="report", after=[load], params=params, **fields)
        self.flow = self.app.workflow("nightly", [Node(load), report, Node(tell, after=["report"])])


async def test_C6_a_node_runs_a_workflow_with_parameters_and_takes_its_results() -> None:
    shop = Shop()

    async with Harness(shop.app, START):
        run = await shop.flow.run({"day": "monday"})
        assert await run.wait() == "SUCCESS"
        assert shop.seen == [{"day": "monday", "rows": 3, "mode": "full"}]
        assert await run.result(shop.tell) == "sent 30"
        child = (await run.read()).nodes["report"].child_run
        assert child is not None
        assert child == ChildRunInfo("daily", child.run_id, 1)
        assert await run.result("report") == {"run": child.run_id, "results": {"send": "sent 30"}}
        inner = await shop.daily.runs()
        assert [(each.id, await each.state()) for each in inner] == [(child.run_id, "SUCCESS")]


async def test_C6_a_failed_run_is_followed_by_another_one_as_the_retry_policy_of_the_node_says() -> None:
    shop = Shop(retry=Retry(max=2, base="1m"))
    shop.broken = {"monday"}

    async with Harness(shop.app, START) as time:
        run = await shop.flow.run({"day": "monday"})
        await time.advance("1m")
        node = (await run.read()).nodes["report"]
        assert (node.state, node.child_run) == ("INIT", ChildRunInfo("daily", None, 2))
        shop.broken = set()
        await time.advance("10m")
        assert await run.wait() == "SUCCESS"
        states = [await each.state() for each in await shop.daily.runs()]
        assert sorted(states) == ["CANCELLED", "SUCCESS"]


async def test_C6_a_blocked_run_blocks_its_parent_and_a_rerun_inside_it_continues_both() -> None:
    shop = Shop()
    shop.broken = {"monday"}

    async with Harness(shop.app, START):
        run = await shop.flow.run({"day": "monday"})
        assert await run.wait() == "BLOCKED"
        node = (await run.read()).nodes["report"]
        assert (node.state, node.error_code) == ("DEAD", "RUN_BLOCKED")
        shop.broken = set()
        (inner,) = await shop.daily.runs()
        await inner.rerun(from_node="render")
        assert await inner.wait() == "SUCCESS"
        assert await run.wait() == "SUCCESS"
        assert await run.result(shop.tell) == "sent 30"


async def test_C6_a_rerun_of_the_node_starts_another_run() -> None:
    shop = Shop()

    async with Harness(shop.app, START):
        run = await shop.flow.run({"day": "monday"})
        assert await run.wait() == "SUCCESS"
        await run.rerun(from_node="report")
        assert await run.wait() == "SUCCESS"
        assert len(await shop.daily.runs()) == 2


async def test_C6_a_cancel_of_the_run_cancels_the_run_of_its_node() -> None:
    shop = Shop(retry=Retry(max=2, base="1m"))
    shop.broken = {"monday"}

    async with Harness(shop.app, START) as time:
        run = await shop.flow.run({"day": "monday"})
        await time.advance("1m")
        assert (await run.read()).nodes["report"].child_run == ChildRunInfo("daily", None, 2)
        await run.cancel()
        assert await run.wait() == "CANCELLED"
        assert {await each.state() for each in await shop.daily.runs()} == {"CANCELLED"}


async def test_C6_workflows_that_run_each_other_are_refused_when_they_are_declared() -> None:
    app = Horai("circle")
    app.workflow("a", [Node(workflow="b")])
    app.workflow("b", [Node(workflow="a")])
    with pytest.raises(Invalid, match=r"a → b → a|b → a → b"):
        async with Harness(app, START):
            pass


@pytest.mark.parametrize(
    ("node", "field"),
    [
        (Node(), "job or a workflow"),
        (Node("a", workflow="b"), "job or a workflow"),
        (Node("a", params={"x": 1}), "params"),
        (Node(workflow="b", payload={"x": 1}), "payload"),
        (Node(workflow="b", params={"x": Param()}), "params.x"),
        (Node(workflow="b", params={"x": Param(result_of="none")}), "after"),
    ],
)
def test_C6_a_node_that_is_wrong_is_refused_when_it_is_declared(node: Node, field: str) -> None:
    with pytest.raises(Invalid, match=field):
        Horai("wrong").workflow("wrong", [node])
