"""The handles of runs: start, wait, read, rerun, cancel, list and backfill, with and without `await`."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from harness import FAST, node
from working import working

from horai import (
    Horai,
    Instance,
    InstanceCancelled,
    InstanceFailed,
    Invalid,
    Node,
    NotFound,
    RetryLater,
    RunFailed,
    Unrecoverable,
)
from horai.core.errors import AlreadyFinal
from horai.operations import instances
from horai.operations.request_keys import Once
from horai.testing import Harness, NotEnded

START = datetime(2026, 11, 15, 8, tzinfo=UTC)


class Books:
    """A workflow of three nodes, of which the second fails while `is_broken`."""

    def __init__(self, **options: Any) -> None:
        self.app = Horai("books", database_url=options.pop("database_url", None))
        self.is_broken = False

        @self.app.job
        async def load() -> int:
            return 42

        @self.app.job(retry=0)
        async def ledger(instance: Instance[Any]) -> list[int]:
            if self.is_broken:
                raise Unrecoverable("The ledger is closed.")
            return [instance.payload["parents"]["load"]]

        @self.app.job
        async def report(instance: Instance[Any]) -> Any:
            return instance.payload

        self.load, self.ledger, self.report = load, ledger, report
        nodes = [Node(load), Node(ledger, after=[load]), Node(report, after=[ledger])]
        self.flow = self.app.workflow("books", nodes, **options)


async def test_a_run_is_started_awaited_and_read_by_its_handle() -> None:
    books = Books()

    async with Harness(books.app, START):
        run = await books.flow.run({"day": 1})
        assert (run.last.state, run.fire_time, run.duplicate) == ("PENDING", START, False)

        assert await run.wait() == "SUCCESS"
        assert await run.state() == "SUCCESS"
        assert await run.result(books.ledger) == [42]
        assert await run.result("report") == {"day": 1, "parents": {"ledger": [42]}}
        found = await run.read()
        assert [(name, node.state) for name, node in found.nodes.items()] == [
            ("ledger", "SUCCESS"), ("load", "SUCCESS"), ("report", "SUCCESS"),
        ]  # fmt: skip
        assert found.payload == {"day": 1}
        assert repr(run) == f"<Run {run.id} of 'books' SUCCESS>"


async def test_a_blocked_run_says_which_node_is_dead_and_continues_by_a_rerun() -> None:
    books = Books()
    books.is_broken = True

    async with Harness(books.app, START):
        run = await books.flow.run()
        assert await run.wait() == "BLOCKED"
        with pytest.raises(InstanceFailed, match="The ledger is closed"):
            await run.result(books.ledger)
        with pytest.raises(RunFailed, match="is BLOCKED, and its node 'report' did not run: 'ledger' is dead"):
            await run.result("report")

        books.is_broken = False
        again = await run.rerun(from_node=books.ledger)
        assert again.state == "RUNNING"
        assert await run.wait() == "SUCCESS"
        assert await run.result(books.report) == {"parents": {"ledger": [42]}}


async def test_a_cancelled_run_keeps_its_waiting_nodes_from_running() -> None:
    books = Books()
    books.is_broken = True

    async with Harness(books.app, START):
        run = await books.flow.run()
        await run.wait()
        assert (await run.cancel()).state == "CANCELLED"
        assert (await run.cancel()).state == "CANCELLED"
        with pytest.raises(InstanceCancelled, match="USER"):
            await run.result(books.report)

        books.is_broken = False
        done = await books.flow.run()
        await done.wait()
        with pytest.raises(AlreadyFinal):
            await done.cancel()


async def test_a_repeated_key_returns_the_first_run() -> None:
    books = Books()

    async with Harness(books.app, START):
        first = await books.flow.run({"day": 1}, idempotency_key="monday")
        again = await books.flow.run({"day": 1}, idempotency_key="monday")
        assert (again.id, again.duplicate) == (first.id, True)
        assert str(await books.flow.trigger({"day": 2})) != first.id
        with pytest.raises(Invalid, match="Idempotency-Key"):
            await books.flow.run({"day": 2}, idempotency_key="monday")


async def test_a_paused_workflow_starts_no_run_until_it_is_resumed() -> None:
    books = Books()

    async with Harness(books.app, START) as time:
        await books.flow.pause("stock-taking")
        run = await books.flow.run()
        await time.advance("1m")
        assert await run.state() == "PENDING"

        await books.flow.resume()
        assert await run.wait() == "SUCCESS"


async def test_runs_are_listed_by_state_newest_first_and_found_by_id() -> None:
    books = Books()

    async with Harness(books.app, START) as time:
        first = await books.flow.run()
        await first.wait()
        await time.advance("1m")
        books.is_broken = True
        second = await books.flow.run()
        await second.wait()

        assert [(run.id, run.last.state) for run in await books.flow.runs()] == [
            (second.id, "BLOCKED"), (first.id, "SUCCESS"),
        ]  # fmt: skip
        assert [run.id for run in await books.flow.runs(limit=1)] == [second.id]
        assert [run.id for run in await books.flow.runs(state="success")] == [first.id]
        assert await (await books.flow.find_run(first.id)).result("load") == 42
        with pytest.raises(Invalid, match="is not a state"):
            await books.flow.runs(state="gone")
        with pytest.raises(Invalid, match="between 1 and 1000"):
            await books.flow.runs(0)
        with pytest.raises(NotFound):
            await books.flow.find_run(999_999_999)


async def test_a_run_for_a_logical_date_has_it_as_its_fire_time() -> None:
    books = Books()
    monday = START - timedelta(days=6)

    async with Harness(books.app, START) as time:
        run = await books.flow.run(logical_date=monday)
        await run.wait()
        assert run.fire_time == monday
        assert [fired.fire_time for fired in time.fired(books.load)] == [monday]
        with pytest.raises(Invalid, match="logicalDate: is in the future"):
            await books.flow.run(logical_date=START + timedelta(seconds=1))
        with pytest.raises(Invalid, match="has no UTC offset"):
            await books.flow.run(logical_date=datetime(2026, 11, 1))  # noqa: DTZ001


async def test_past_slots_of_a_workflow_run_by_a_backfill() -> None:
    books = Books(cron="0 9 * * *")

    async with Harness(books.app, START) as time:
        plan = await books.flow.backfill(START - timedelta(days=3), dry_run=True)
        assert plan.total == 3
        filled = await books.flow.backfill(START - timedelta(days=3))
        await time.advance("1m")
        assert (await filled.progress()).succeeded == 3
        assert len(await books.flow.runs(state="SUCCESS")) == 3


async def test_a_wait_in_virtual_time_says_that_the_time_has_to_advance() -> None:
    app = Horai("slow")

    @app.job
    async def early(instance: Instance[Any]) -> None:
        if instance.attempt == 1:
            raise RetryLater("1h")

    @app.job
    async def last() -> int:
        return 7

    slow = app.workflow("slow", [Node(early), Node(last, after=[early])])

    async with Harness(app, START) as time:
        run = await slow.run()
        with pytest.raises(NotEnded):
            await run.wait()
        with pytest.raises(NotEnded, match="advance it"):
            await run.result(last)
        await time.advance("1h")
        assert await run.result(last) == 7
        with pytest.raises(Invalid, match="'lost' is not a node of the run"):
            await run.result("lost")


def test_runs_are_awaited_without_an_event_loop() -> None:
    books = Books(cron="0 9 * * *")

    with Harness(books.app, START):
        run = books.flow.sync.run({"day": 1}, idempotency_key="once")
        assert run.wait(timeout="30s") == "SUCCESS"
        assert run.result(books.ledger) == [42]
        assert (run.state(), run.last.state, run.duplicate, run.fire_time) == ("SUCCESS", "SUCCESS", False, START)
        assert books.flow.sync.run({"day": 1}, idempotency_key="once").duplicate
        assert run.rerun(from_node="report").state == "RUNNING"
        assert run.wait() == "SUCCESS"
        assert [each.id for each in books.flow.sync.runs(state="SUCCESS")] == [run.id]
        assert books.flow.sync.find_run(run.id).read().nodes["load"].state == "SUCCESS"
        assert books.flow.sync.backfill(START - timedelta(days=3), dry_run=True).total == 3
        assert books.flow.sync.backfill(START - timedelta(days=3)).total == 3
        with pytest.raises(AlreadyFinal):
            run.cancel()
        assert isinstance(books.flow.sync.trigger(), int)
        books.flow.sync.pause("stock-taking")
        held = books.flow.sync.run()
        books.flow.sync.resume()
        assert held.wait() == "SUCCESS"


async def test_a_wait_that_is_too_long_tells_the_state_of_the_run(url: str) -> None:
    books = Books(database_url=url)

    async with node(url), working(books.app, FAST):
        run = await books.flow.run()
        with pytest.raises(TimeoutError, match=f"The run {run.id} of 'books' did not end within 0 s: it is PENDING"):
            await run.wait(0)
        with pytest.raises(TimeoutError, match="The node 'report' of the run"):
            await run.result(books.report, timeout="0s")
        assert await run.wait(30) == "SUCCESS"
        assert await run.result(books.ledger, 30) == [42]


@dataclass
class Day:
    day: str
    region: str = "eu"


async def test_parameters_are_checked_when_a_run_is_asked_for_and_have_their_defaults() -> None:
    app = Horai("books")

    @app.job
    async def load(day: Day) -> str:
        return f"{day.day} {day.region}"

    flow = app.workflow("books", [Node(load)], params=Day)

    async with Harness(app, START) as time:
        run = await flow.run(Day("monday"))
        assert await run.result(load) == "monday eu"
        assert (await run.read()).payload == {"day": "monday", "region": "eu"}
        assert [each.last.payload for each in await flow.runs()] == [{"day": "monday", "region": "eu"}]
        with pytest.raises(Invalid, match=r"payload\.day: is missing"):
            await flow.run()
        with pytest.raises(Invalid, match=r"payload\.day"):
            await flow.run({"day": 1})

        scope = (await app.client()).scope
        other = await instances.trigger(scope, "books", '{"region": "us"}', Once("by-job", b""))
        await time.advance("1s")
        found = await (await flow.find_run(other.id)).read()
        assert found.state == "DEAD"
        assert (await app.declare()).unchanged == ("load", "books")


def test_a_schedule_needs_a_payload_that_fits_the_parameters() -> None:
    app = Horai("books")

    @app.job
    async def load() -> None: ...

    with pytest.raises(Invalid, match="has the keyword 'pattern'"):
        app.workflow("odd", [Node(load)], params={"pattern": "a"})
    app.workflow("nightly", [Node(load)], cron="0 9 * * *", params={"required": ["day"]})
    with pytest.raises(Invalid, match=r"payload\.day: is missing"), Harness(app, START):
        pass
