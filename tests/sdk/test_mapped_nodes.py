"""Maps in Python: declared, run in virtual time, and read by handles, also without `await`."""

from datetime import UTC, datetime
from typing import Any

import pytest

from horai import Horai, Instance, Invalid, Map, MapFailed, MapInfo, Node, Skip, Unrecoverable
from horai.testing import Harness

START = datetime(2026, 11, 15, 8, tzinfo=UTC)


class Images:
    """list_images → resize (each) → gallery; `resize` fails with the sizes in `broken`."""

    def __init__(self, **settings: Any) -> None:
        self.app = Horai("images")
        self.found: Any = ["a", "bb", "ccc"]
        self.broken: set[str] = set()

        @self.app.job
        async def list_images() -> Any:
            return self.found

        @self.app.job(retry=0)
        async def resize(image: str) -> int:
            if image in self.broken:
                raise Unrecoverable(f"{image} is broken")
            return len(image)

        @self.app.job
        async def gallery(instance: Instance[Any]) -> int:
            return sum(size or 0 for size in instance.payload["parents"]["resize"])

        self.list_images, self.resize, self.gallery = list_images, resize, gallery
        nodes = [
            Node(list_images),
            Node(resize, map=Map(over=list_images, **settings)),
            Node(gallery, after=[resize]),
        ]
        self.flow = self.app.workflow("images", nodes)


async def test_C6_a_map_runs_its_function_for_each_item_and_its_result_is_the_list_of_theirs() -> None:
    images = Images(max_concurrency=2)

    async with Harness(images.app, START) as time:
        run = await images.flow.run()
        assert await run.wait() == "SUCCESS"
        assert await run.result(images.resize) == [1, 2, 3]
        assert await run.result("gallery") == 6
        assert len(time.fired(images.resize)) == 3
        node = (await run.read()).nodes["resize"]
        assert (node.map, node.instance_id, node.after) == (MapInfo(3, 3, 0), None, ("list_images",))
        items = [item async for item in run.items(images.resize)]
        assert [(item.position, item.state, item.result) for item in items] == [
            (0, "SUCCESS", 1), (1, "SUCCESS", 2), (2, "SUCCESS", 3),
        ]  # fmt: skip

        images.found = []
        empty = await images.flow.run()
        assert await empty.wait() == "SUCCESS"
        assert await empty.result("resize") == []
        assert await empty.result("gallery") == 0


async def test_C6_a_map_that_failed_says_why_and_a_rerun_heals_it() -> None:
    images = Images()
    images.broken = {"bb"}

    async with Harness(images.app, START):
        run = await images.flow.run()
        assert await run.wait() == "BLOCKED"
        with pytest.raises(MapFailed, match="MAP_FAILED") as caught:
            await run.result("resize")
        assert caught.value.error_code == "MAP_FAILED"
        (failed,) = [item async for item in run.items("resize", failed=True)]
        assert (failed.position, failed.state, failed.result) == (1, "DEAD", None)
        assert "bb is broken" in (failed.error or "")
        images.broken = set()
        await run.rerun(from_node=images.resize)
        assert await run.wait() == "SUCCESS"
        assert await run.result("gallery") == 6

        images.found = "no list"
        strange = await images.flow.run()
        assert await strange.wait() == "BLOCKED"
        with pytest.raises(MapFailed, match="MAP_NOT_LIST"):
            await strange.result("resize")


async def test_C6_failures_that_are_allowed_have_no_result() -> None:
    images = Images(allow_failures="50%")
    images.broken = {"bb"}

    async with Harness(images.app, START):
        run = await images.flow.run()
        assert await run.wait() == "SUCCESS"
        assert await run.result("resize") == [1, None, 3]
        assert await run.result("gallery") == 4
        assert (await run.read()).nodes["resize"].map == MapInfo(3, 3, 1)


async def test_C6_a_map_goes_over_the_payload_of_the_run_and_a_map_over_the_results_of_a_map() -> None:
    app = Horai("chained")

    @app.job
    async def double(number: int) -> int:
        return number * 2

    @app.job
    async def half(number: int) -> float:
        if number == 4:
            raise Skip("even enough")
        return number / 2

    nodes = [Node(double, map=Map(over_payload="numbers")), Node(half, map=Map(over=double))]
    flow = app.workflow("chained", nodes)

    async with Harness(app, START):
        run = await flow.run({"numbers": [1, 2, 3]})
        assert await run.wait() == "SUCCESS"
        assert await run.result(double) == [2, 4, 6]
        assert await run.result(half) == [1.0, None, 3.0]


@pytest.mark.parametrize(
    ("given", "field"),
    [(Map(), "map"), (Map(over="a", over_payload="b"), "map"), (Map(over="list", max_concurrency=0), "maxConcurrency")],
)
def test_C6_a_map_that_is_wrong_is_refused_when_it_is_declared(given: Map, field: str) -> None:
    app = Horai("wrong")

    @app.job(name="list")
    async def list_() -> list[int]:
        return [1]

    @app.job
    async def each(number: int) -> None: ...

    with pytest.raises(Invalid, match=field):
        app.workflow("wrong", [Node(list_), Node(each, map=given)])
