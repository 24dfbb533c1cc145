"""The statement that starts another run of a node: once per attempt, only for the current node, only after a failed run."""

from datetime import UTC, datetime, timedelta

import flows
from orchestra import Orchestra
from stages import Workbench, workbench

from features.workflow.test_sub_workflows import RETRY, begun, children, play, view
from horai.core.states import State
from horai.features.workflow import rerun as reruns
from horai.features.workflow.child_store import start_again

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


async def failed(bench: Workbench, **settings: object) -> tuple[Orchestra, int, int]:
    """A run whose node has a blocked run, and the instance of the node; its recorded end is removed."""
    band, run = await begun(bench, **settings)
    band.answer("load")
    await play(band)
    await bench.connection.execute("update horai.workflow_node set ended = null where name = 'inner'")
    return band, run, (await view(bench, run))["inner"].instance_id


async def test_C6_another_run_is_started_once_for_an_attempt(url: str):
    async with workbench(url) as bench:
        _, run, dead = await failed(bench)
        assert await start_again(bench.connection, dead, 2, timedelta(0), BEGAN) is None
        assert await start_again(bench.connection, dead, 1, timedelta(0), BEGAN) is not None
        assert await start_again(bench.connection, dead, 1, timedelta(0), BEGAN) is None
        assert (await view(bench, run))["inner"].child_attempt == 2


async def test_C6_a_node_that_a_rerun_has_replaced_starts_no_run(url: str):
    async with workbench(url) as bench:
        _, _, dead = await failed(bench)
        await bench.connection.execute("update horai.workflow_node set is_current = false where name = 'inner'")
        assert await start_again(bench.connection, dead, 1, timedelta(0), BEGAN) is None


async def test_C6_a_run_that_did_not_fail_is_not_followed_by_another_one(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, retry=RETRY)
        await play(band)
        node = (await view(bench, run))["inner"]
        assert node.state is State.SUCCESS
        await bench.connection.execute("update horai.workflow_node set ended = null where name = 'inner'")
        assert await start_again(bench.connection, node.instance_id, 1, timedelta(0), BEGAN) is None


async def test_C6_a_rerun_of_the_node_gives_the_blocked_run_up_and_starts_another_with_all_its_retries(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, retry={"maxRetry": 0})
        band.answer("load")
        await play(band)
        band.answer()
        await reruns.rerun(bench.scope, "outer", run, "inner")
        await play(band)
        assert await flows.phase(bench.connection, run) == "SUCCESS"
        assert (await view(bench, run))["inner"].child_attempt == 1
        assert [phase for _, phase in await children(bench)] == [3, 2]
