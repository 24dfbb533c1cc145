"""Sensors in Python: they ask again and again in virtual time, use up no retries, and give up at their deadline."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horai import Horai, Invalid, Map, Node, NotReady, Retry, Sensor
from horai.testing import Harness, VirtualTime

START = datetime(2026, 11, 15, 8, tzinfo=UTC)


class Files:
    """file (sensor) → load; the file is there from `ready_at` on."""

    def __init__(self, ready_at: datetime, **settings: Any) -> None:
        self.app = Horai("files")
        self.ready_at = ready_at
        self.time: VirtualTime | None = None
        self.failures = 0

        @self.app.job(retry=0)
        async def file() -> str:
            if self.failures:
                self.failures -= 1
                raise RuntimeError("no connection")
            assert self.time is not None
            if self.time.now < self.ready_at:
                raise NotReady("no file yet")
            return "a.csv"

        @self.app.job
        async def load() -> None: ...

        self.file, self.load = file, load
        retry = settings.pop("retry", None)
        sensor = Sensor(every="10m", deadline="2h", **settings)
        self.flow = self.app.workflow("files", [Node(file, sensor=sensor, retry=retry), Node(load, after=[file])])


async def test_C6_a_sensor_asks_until_its_condition_is_met_and_returns_its_value() -> None:
    files = Files(START + timedelta(minutes=45))

    async with Harness(files.app, START) as time:
        files.time = time
        run = await files.flow.run()
        await time.advance("15m")
        node = (await run.read()).nodes["file"]
        assert node.state == "INIT"
        assert node.sensor is not None
        assert (node.sensor.polls, node.sensor.deadline_at) == (2, START + timedelta(hours=2))
        assert node.sensor.next_poll_at == START + timedelta(minutes=20)
        await time.advance("45m")
        assert await run.wait() == "SUCCESS"
        assert await run.result(files.file) == "a.csv"
        assert len(time.fired(files.file)) == 6


async def test_C6_a_sensor_that_is_not_ready_at_its_deadline_is_dead_and_a_rerun_waits_again() -> None:
    files = Files(START + timedelta(hours=3))

    async with Harness(files.app, START) as time:
        files.time = time
        run = await files.flow.run()
        await time.advance("119m")
        assert (await run.read()).nodes["file"].state == "INIT"
        await time.advance("2m")
        assert await run.wait() == "BLOCKED"
        node = (await run.read()).nodes["file"]
        assert (node.state, node.error_code) == ("DEAD", "SENSOR_DEADLINE")
        await run.rerun(from_node=files.file)
        await time.advance("30m")
        assert (await run.read()).nodes["file"].state == "INIT"
        await time.advance("30m")
        assert await run.wait() == "SUCCESS"
        assert await run.result(files.file) == "a.csv"


async def test_C6_a_sensor_may_be_skipped_at_its_deadline() -> None:
    files = Files(START + timedelta(hours=3), on_deadline="skip")

    async with Harness(files.app, START) as time:
        files.time = time
        run = await files.flow.run()
        await time.advance("3h")
        assert await run.wait() == "SUCCESS"
        nodes = (await run.read()).nodes
        assert (nodes["file"].state, nodes["load"].state) == ("SKIPPED", "SKIPPED")
        assert nodes["file"].skip_reason == "its condition was not met at its deadline"


async def test_C6_only_failures_of_a_sensor_use_up_its_retries() -> None:
    files = Files(START + timedelta(minutes=25), retry=Retry(max=2, base="1s"))

    async with Harness(files.app, START) as time:
        files.time = time
        run = await files.flow.run()
        await time.advance("15m")
        files.failures = 2
        await time.advance("45m")
        assert await run.wait() == "SUCCESS"
        files.failures = 3
        again = await files.flow.run()
        await time.advance("1h")
        assert await again.wait() == "BLOCKED"
        assert (await again.read()).nodes["file"].error_code == "RuntimeError"


async def test_a_job_that_is_not_a_sensor_ends_when_it_is_not_ready() -> None:
    files = Files(START + timedelta(hours=1))

    async with Harness(files.app, START) as time:
        files.time = time
        handle = await files.file.enqueue()
        await time.drain()
        assert await handle.state() == "SUCCESS"


@pytest.mark.parametrize(
    ("node", "field"),
    [
        (Node("a", sensor=Sensor(every="0.1s", deadline="1h")), "sensor.every"),
        (Node("a", sensor=Sensor(every="2d", deadline="1h")), "sensor.every"),
        (Node("a", sensor=Sensor(every="1m", deadline="400d")), "sensor.deadline"),
        (Node("a", sensor=Sensor("1m", "1h", on_deadline="strange")), "sensor.onDeadline"),  # type: ignore[arg-type]
        (Node("a", map=Map(over_payload=""), sensor=Sensor("1m", "1h")), "sensor"),
        (Node(workflow="a", sensor=Sensor("1m", "1h")), "sensor"),
    ],
)
def test_C6_a_sensor_that_is_wrong_is_refused_when_it_is_declared(node: Node, field: str) -> None:
    with pytest.raises(Invalid, match=field):
        Horai("wrong").workflow("wrong", [node])
