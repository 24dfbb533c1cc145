"""Assets in the database: each success updates once, and each set of updates starts a job once."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import flows
import make
import pytest
from orchestra import Orchestra
from stages import Workbench, workbench

from horai.core.errors import Invalid, NotFound
from horai.core.horizon import ClockWatch
from horai.db.pool import Platform, connect
from horai.db.verify import verify
from horai.features import assets
from horai.features.assets import service, starting
from horai.features.assets.stage import AssetStage
from horai.features.assets.store import LAST_UPDATE, OutsideUpdate
from horai.features.explain.service import explain_slot
from horai.features.workflow import rerun
from horai.operations import instances, jobs
from horai.operations.jobs import JobChange
from horai.operations.move_waiting import move_waiting_now
from horai.operations.request_keys import Once


@dataclass
class Yard:
    """A workbench with the stages of workflows and of assets."""

    bench: Workbench
    band: Orchestra
    stage: AssetStage

    async def job(self, name: str, **fields: Any) -> None:
        await make.job(self.bench.scope, name, **fields)

    async def run(self, name: str, key: str = "1") -> None:
        """Run a job, or a workflow, until all that follows has ended."""
        await instances.trigger(self.bench.scope, name, None, Once(f"{name} {key}", b"{}"))
        await self.play()

    async def play(self) -> None:
        quiet, before = 0, -1
        while quiet < 2:
            quiet = quiet + 1 if before == len(self.band.played) else 0
            before = len(self.band.played)
            await self.band.play()
            self.stage.look_again()
            await self.stage.step(self.bench.clock.now())

    async def update(self, name: str, **given: Any) -> tuple[int, bool]:
        made = await service.update_asset(self.bench.scope, name, OutsideUpdate(**given))
        await self.play()
        return made

    async def updates(self, name: str) -> list[Any]:
        return (await service.read_asset(self.bench.scope, name, LAST_UPDATE, 100)).updates

    def started_with(self, name: str) -> list[dict[str, list[str]]]:
        """The updates that have started each instance of a job, by asset: the jobs that made them."""
        payloads = [json.loads(call.payload or "{}") for call in self.band.calls_of(name)]
        return [
            {asset: [each["job"] for each in told] for asset, told in payload["assets"].items()} for payload in payloads
        ]


@asynccontextmanager
async def yard(url: str) -> AsyncGenerator[Yard]:
    async with workbench(url) as bench:
        band = Orchestra(bench)
        stage = bench.feature_stage(assets.FEATURE)
        assert isinstance(stage, AssetStage)
        yield Yard(bench, band, stage)


async def test_a_job_starts_when_all_of_its_assets_were_updated(url: str) -> None:
    async with yard(url) as own:
        await own.job("sales", produces=["sales.daily"])
        await own.job("stock", produces=["stock.daily"])
        await own.job("report", when=["sales.daily", "stock.daily"])

        await own.run("sales")
        assert own.band.calls_of("report") == []
        await own.run("stock")
        assert own.started_with("report") == [{"sales.daily": ["sales"], "stock.daily": ["stock"]}]
        await own.run("stock", "2")
        assert len(own.band.calls_of("report")) == 1
        await own.run("stock", "3")
        await own.run("sales", "2")
        assert own.started_with("report")[1] == {"sales.daily": ["sales"], "stock.daily": ["stock", "stock"]}


async def test_any_of_its_assets_starts_a_job(url: str) -> None:
    async with yard(url) as own:
        await own.job("sales", produces=["sales.daily", "sales.raw"])
        await own.job("stock", produces=["stock.daily"])
        await own.job("mail", when={"any": ["sales.daily", "stock.daily"]})
        await own.run("sales")
        await own.run("stock")
        assert own.started_with("mail") == [{"sales.daily": ["sales"]}, {"stock.daily": ["stock"]}]


async def test_an_update_carries_the_result_and_the_instance_of_its_success(url: str) -> None:
    async with yard(url) as own:
        own.band.answer(sales={"rows": 3})
        await own.job("sales", produces=["sales.daily"])
        await own.job("report", when=["sales.daily"], payload={"own": 1})
        await own.run("sales")
        (call,) = own.band.calls_of("report")
        payload = json.loads(call.payload or "")
        (told,) = payload["assets"]["sales.daily"]
        assert payload["own"] == 1
        assert (told["metadata"], told["instance"]) == ({"rows": 3}, str(own.band.calls_of("sales")[0].instance_id))


async def test_the_list_names_what_updated_an_asset_last(url: str) -> None:
    async with yard(url) as own:

        async def last() -> tuple[str | None, int | None, bool]:
            (row,) = await service.list_assets(own.bench.scope, "", 10)
            return row.last_job, row.last_instance_id, row.last_actor is not None

        await own.job("sales", produces=["sales.daily"])
        assert await last() == (None, None, False)
        await own.run("sales")
        await own.run("sales", "2")
        assert await last() == ("sales", own.band.calls_of("sales")[1].instance_id, False)
        await own.update("sales.daily")
        assert await last() == (None, None, True)


async def test_a_failure_and_a_skip_update_nothing(url: str) -> None:
    async with yard(url) as own:
        await own.job("sales", produces=["sales.daily"], retry={"maxRetry": 0})
        await own.job("stock", produces=["stock.daily"])
        await own.job("report", when={"any": ["sales.daily", "stock.daily"]})
        own.band.answer("sales", stock={"horai:skip": "no new files"})
        await own.run("sales")
        await own.run("stock")
        assert own.band.calls_of("report") == []


async def test_a_workflow_and_its_node_update_assets_and_start_another_workflow(url: str) -> None:
    async with yard(url) as own:
        graph: Mapping[str, Sequence[str]] = {"load": (), "check": ("load",)}
        more = {"load": {"produces": ["sales.raw"]}}
        await flows.workflow(own.bench.scope, graph, "nightly", produces=["sales.daily"], more=more)
        await flows.workflow(own.bench.scope, {"print": ()}, "report", when=["sales.raw", "sales.daily"])
        own.band.answer(load={"rows": 7})
        await own.run("nightly")

        raw, daily = (await own.updates("sales.raw"))[0], (await own.updates("sales.daily"))[0]
        assert (raw.job, raw.node, raw.metadata) == ("nightly", "load", '{"rows": 7}')
        assert (daily.job, daily.node, daily.run_id) == ("nightly", None, raw.run_id)
        assert own.started_with("print") == [{"sales.daily": ["nightly"], "sales.raw": ["nightly"]}]


async def test_a_skipped_node_updates_nothing_and_a_rerun_updates_again(url: str) -> None:
    async with yard(url) as own:
        more = {"load": {"produces": ["sales.raw"]}}
        made = await flows.workflow(own.bench.scope, {"load": ()}, "nightly", more=more)
        own.band.answer(load={"horai:skip": "nothing"})
        await own.run("nightly")
        assert await own.updates("sales.raw") == []

        own.band.answer(load=1)
        await own.run("nightly", "2")
        (first,) = await own.updates("sales.raw")
        await rerun.rerun(own.bench.scope, made.row.name, first.run_id, "load")
        await own.play()
        assert [each.run_id for each in await own.updates("sales.raw")] == [first.run_id, first.run_id]


async def test_an_update_from_outside_starts_jobs_once_for_its_key(url: str) -> None:
    async with yard(url) as own:
        await own.job("report", when=["files"])
        first = await own.update("files", metadata='{"file": "a.csv"}', request_key="a")
        again = await own.update("files", metadata='{"file": "a.csv"}', request_key="a")
        assert (first[1], again) == (True, (first[0], False))
        assert len(own.band.calls_of("report")) == 1
        with pytest.raises(NotFound, match="no asset 'filez'"):
            await own.update("filez")
        with pytest.raises(Invalid, match="4096 bytes"):
            await own.update("files", metadata=json.dumps("x" * 4096))


async def test_a_paused_job_starts_once_with_all_updates_when_it_is_resumed(url: str) -> None:
    async with yard(url) as own:
        await own.job("report", when=["files"])
        await jobs.pause_job(own.bench.scope, "report", None)
        await own.update("files")
        await own.update("files")
        assert own.band.calls_of("report") == []
        await jobs.resume_job(own.bench.scope, "report", None)
        await own.play()
        assert own.started_with("report") == [{"files": [None, None]}]


async def test_updates_gather_while_a_job_that_may_not_overlap_runs(url: str) -> None:
    async with yard(url) as own:
        await own.job("report", when=["files"], overlap="queue")
        own.bench.executor.gate.clear()
        await service.update_asset(own.bench.scope, "files", OutsideUpdate())
        own.stage.look_again()
        await own.stage.step(own.bench.clock.now())
        await own.bench.until_idle(own.band.dispatcher)
        await own.bench.called(1)
        for _ in range(3):
            await service.update_asset(own.bench.scope, "files", OutsideUpdate())
            own.stage.look_again()
            await own.stage.step(own.bench.clock.now())
        assert await own.bench.connection.fetchval("select count(*) from horai.instance_live") == 1
        own.bench.executor.gate.set()
        await own.bench.settle()
        await own.play()
        assert own.started_with("report") == [{"files": [None]}, {"files": [None] * 3}]


async def test_two_processes_that_read_and_start_at_once_start_a_job_once(url: str) -> None:
    async with yard(url) as own:
        await own.job("sales", produces=["sales.daily"])
        await own.job("report", when=["sales.daily"])
        await instances.trigger(own.bench.scope, "sales", None, Once("1", b"{}"))
        await own.band.play()
        lines = [await connect(url, "horai test") for _ in range(4)]

        async def one(line: Platform) -> int:
            await starting.read_successes(line, ClockWatch(time.monotonic))
            return len((await starting.start_ready(line)).woken)

        started = [sum(await asyncio.gather(*(one(line) for line in lines))) for _ in range(3)]
        for line in lines:
            await line.close()
        assert sum(started) == 1
        assert len(await own.updates("sales.daily")) == 1


async def test_a_job_that_another_process_starts_is_neither_started_nor_waited_for(url: str) -> None:
    async with yard(url) as own:
        await own.job("report", when=["files"])
        await service.update_asset(own.bench.scope, "files", OutsideUpdate())
        lines = [await connect(url, "horai test") for _ in range(2)]
        async with lines[0].transaction():
            assert len((await starting.start_ready(lines[0])).woken) == 1
            assert (await asyncio.wait_for(starting.start_ready(lines[1]), 20)).woken == []
        assert (await starting.start_ready(lines[1])).woken == []
        for line in lines:
            await line.close()


async def test_a_success_of_a_transaction_that_commits_late_is_not_lost(url: str) -> None:
    """Other successes are read meanwhile, and the clock goes on by a day."""
    async with yard(url) as own:
        await own.job("sales", produces=["sales.daily"])
        await own.run("sales")
        late = await connect(url, "horai test")
        transaction = late.transaction()
        await transaction.start()
        await late.execute("""insert into horai.instance_history (id, job_id, tenant_id, lane, fire_time, execute_time, born_for, created_at,
            slot, attempt, fence, finished_at, retry_count, events, state)
            select nextval('horai.instance_id'), job_id, tenant_id, lane, fire_time, execute_time, born_for, created_at, -1, attempt, fence,
                clock_timestamp(), retry_count, events, state from horai.instance_history limit 1""")
        for key in ("2", "3"):
            await own.run("sales", key)
        samples = await own.bench.connection.fetchval("select samples::text from horai.asset_cursor")
        assert len(json.loads(samples)) >= 2
        before = len(await own.updates("sales.daily"))
        await transaction.commit()
        await late.close()
        await own.play()
        assert (before, len(await own.updates("sales.daily"))) == (3, 4)


async def test_the_cursor_never_moves_past_an_open_transaction(url: str) -> None:
    async with yard(url) as own:
        await own.job("sales", produces=["sales.daily"])
        late = await connect(url, "horai test")
        transaction = late.transaction()
        await transaction.start()
        xid = await late.fetchval("select pg_current_xact_id()::text::bigint")
        for key in ("1", "2"):
            await own.run("sales", key)
        first = json.loads(await own.bench.connection.fetchval("select samples::text from horai.asset_cursor"))[0]
        await transaction.rollback()
        await late.close()
        assert first[1] <= xid


async def test_circles_are_refused_with_their_names(url: str) -> None:
    async with yard(url) as own:
        await own.job("sales", produces=["sales.daily"], when=["files"])
        with pytest.raises(Invalid, match=r"a cycle: report → files → sales → sales\.daily → report"):
            await own.job("report", when=["sales.daily"], produces=["files"])
        with pytest.raises(Invalid, match="cycle: selfish → own → selfish"):
            await own.job("selfish", when=["own"], produces=["own"])
        await own.job("report", when=["sales.daily"])
        with pytest.raises(Invalid, match="cycle"):
            await jobs.change_job(own.bench.scope, "report", JobChange({"produces": ["files"]}))


async def test_a_workflow_that_waits_for_what_a_job_of_its_nodes_produces_is_refused(url: str) -> None:
    async with yard(url) as own:
        await own.job("load", produces=["sales.raw"])
        with pytest.raises(Invalid, match=r"cycle: nightly → load → sales\.raw → nightly"):
            await flows.workflow(own.bench.scope, {"load": ()}, "nightly", when=["sales.raw"])
        more = {"fetch": {"produces": ["files"]}}
        with pytest.raises(Invalid, match="cycle: other → files → other"):
            await flows.workflow(own.bench.scope, {"fetch": ()}, "other", when=["files"], more=more)


async def test_two_transactions_cannot_close_a_circle_together(url: str) -> None:
    async with yard(url) as own:
        made = await asyncio.gather(
            own.job("one", when=["a"], produces=["b"]),
            own.job("two", when=["b"], produces=["a"]),
            return_exceptions=True,
        )
        assert sum(isinstance(each, Invalid) for each in made) == 1


async def test_a_declaration_waits_for_another_transaction_that_changes_uses(url: str) -> None:
    async with yard(url) as own:
        line = await connect(url, "horai test")
        async with line.transaction():
            await line.execute("select pg_advisory_xact_lock(1215263337, $1)", own.bench.scope.tenant_id)
            declared = asyncio.create_task(own.job("one", when=["a"], produces=["b"]))
            waiting = (
                "select count(*) from pg_locks where not granted and locktype = 'advisory' and classid = 1215263337"
            )
            async with asyncio.timeout(20):
                while not await line.fetchval(waiting):
                    assert not declared.done()
        await declared
        await line.close()


async def test_a_payload_that_cannot_carry_updates_is_refused(url: str) -> None:
    async with yard(url) as own:
        with pytest.raises(Invalid, match="needs a payload that is an object"):
            await own.job("report", when=["files"], payload=[1])


async def test_a_job_that_no_longer_waits_forgets_pending_updates(url: str) -> None:
    async with yard(url) as own:
        await own.job("report", when=["files", "more"])
        await own.update("files")
        await jobs.change_job(own.bench.scope, "report", JobChange({"when": ["more"]}))
        await jobs.change_job(own.bench.scope, "report", JobChange({"when": ["files", "more"]}))
        await own.update("more")
        assert own.band.calls_of("report") == []
        await own.update("files")
        assert own.started_with("report") == [{"files": [None], "more": [None]}]


async def test_successes_from_before_the_declaration_update_nothing(url: str) -> None:
    async with yard(url) as own:
        await own.job("sales")
        await own.run("sales")
        await jobs.change_job(own.bench.scope, "sales", JobChange({"produces": ["sales.daily"]}))
        await own.play()
        assert await own.updates("sales.daily") == []
        await own.run("sales", "2")
        assert len(await own.updates("sales.daily")) == 1


async def test_a_deleted_job_leaves_no_use_behind(url: str) -> None:
    async with yard(url) as own:
        await own.job("report", when=["files"])
        await own.update("files")
        await jobs.pause_job(own.bench.scope, "report", None)
        await own.update("files")
        await jobs.delete_job(own.bench.scope, "report")
        row = await own.bench.connection.fetchval("select id from horai.job where name = 'report'")
        await move_waiting_now(own.bench.scope, [row])
        left = "select (select count(*) from horai.asset_use) + (select count(*) from horai.asset_wait)"
        assert await own.bench.connection.fetchval(left) == 0
        assert (await service.read_asset(own.bench.scope, "files", LAST_UPDATE, 5)).row.consumers == []


async def test_a_map_updates_its_asset_with_the_list_of_its_results(url: str) -> None:
    async with yard(url) as own:
        more = {"each": {"map": {"over": "list"}, "produces": ["parts"]}}
        await flows.workflow(own.bench.scope, {"list": (), "each": ("list",)}, "mapped", more=more)
        own.band.answer(list=[1, 2], each=5)
        await own.run("mapped")
        (made,) = await own.updates("parts")
        assert (made.node, json.loads(made.metadata or "")) == ("each", [5, 5])


async def test_a_blocked_run_updates_the_asset_of_its_workflow_when_a_rerun_succeeds(url: str) -> None:
    async with yard(url) as own:
        made = await flows.workflow(own.bench.scope, {"load": ()}, "nightly", produces=["sales.daily"])
        own.band.answer("load")
        await own.run("nightly")
        assert await own.updates("sales.daily") == []
        run_id = await own.bench.connection.fetchval("select id from horai.workflow_run")
        own.band.answer()
        for _ in range(2):
            await rerun.rerun(own.bench.scope, made.row.name, run_id, "load")
            await own.play()
        assert [each.run_id for each in await own.updates("sales.daily")] == [run_id]


async def test_an_explanation_names_the_assets_that_a_job_still_waits_for(url: str) -> None:
    async with yard(url) as own:
        await own.job("report", when=["sales", "stock"])
        await own.update("sales")
        told = await explain_slot(own.bench.scope, "report", "2026-11-15T02:00:00Z")
        assert told.explanation.why.endswith(
            "It starts when all of these assets were updated: sales was updated 1 times since its last start,"
            " stock was not updated since its last start."
        )
        await own.job("mail", when={"any": ["sales"]})
        other = await explain_slot(own.bench.scope, "mail", "2026-11-15T02:00:00Z")
        assert "when any of these assets was updated: sales was not updated" in other.explanation.why


@pytest.mark.parametrize("when", [["sales.daily", "stock.daily"], {"any": ["sales.daily", "stock.daily"]}])
async def test_S7_verify_reports_a_job_that_was_not_started_with_its_updates(url: str, when: Any) -> None:
    async with yard(url) as own:
        await own.job("sales", produces=["sales.daily"])
        await own.job("stock", produces=["stock.daily"])
        await own.job("report", when=when)
        await own.run("sales")
        await own.run("stock")
        assert [each for each in await verify(own.bench.connection, timedelta(0)) if each.violations] == []

        started = "update horai.asset_delivery set instance_id = null"
        await own.bench.connection.execute(started)
        (found,) = [each for each in await verify(own.bench.connection, timedelta(0)) if each.violations]
        assert (found.invariant, found.violations) == ("S7", 1)
        assert "waits although its assets were updated" in found.examples[0]
        assert [each for each in await verify(own.bench.connection) if each.violations] == []


async def test_S7_a_job_that_waits_for_another_asset_or_is_paused_is_no_violation(url: str) -> None:
    async with yard(url) as own:
        await own.job("sales", produces=["sales.daily"])
        await own.job("report", when=["sales.daily", "stock.daily"])
        await own.job("mail", when=["sales.daily"])
        await jobs.pause_job(own.bench.scope, "mail", None)
        await own.run("sales")

        assert [each for each in await verify(own.bench.connection, timedelta(0)) if each.violations] == []


async def test_S7_verify_reports_an_update_that_started_an_instance_of_another_job(url: str) -> None:
    async with yard(url) as own:
        await own.job("sales", produces=["sales.daily"])
        await own.job("mail", when=["sales.daily"])
        await own.run("sales")
        of_sales = "update horai.asset_delivery set instance_id = (select instance_id from horai.asset_update)"
        await own.bench.connection.execute(of_sales)

        (found,) = [each for each in await verify(own.bench.connection, timedelta(0)) if each.violations]
        assert (found.invariant, found.violations) == ("S7", 1)
