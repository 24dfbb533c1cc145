"""Runs with maps, step by step: items, limits, failures, results, cancels, reruns, and processes that die in between."""

import json
from contextlib import nullcontext
from typing import Any

import flows
import make
import pytest
from orchestra import DEATH, Orchestra
from stages import Workbench, workbench

from horai.core.calls import Call
from horai.core.errors import Conflict, NotFound
from horai.core.outcome import Accepted, FailedRetryable, Outcome, Succeeded
from horai.core.stored_text import TRUNCATED
from horai.db.verify import verify
from horai.features.dead_letters import service as dead_letters
from horai.features.workflow import maps
from horai.features.workflow import rerun as reruns
from horai.features.workflow.items import read_items
from horai.features.workflow.map_settings import ITEMS_LIMIT
from horai.features.workflow.map_store import ItemPage
from horai.features.workflow.rerun_store import NodeNow
from horai.features.workflow.runs import advance_runs
from horai.operations import instances

GRAPH = {"list": (), "each": (), "sum": ("each",)}
OVER = {"over": "list"}


class Band(Orchestra):
    """`list` returns a list; `each` returns ten times its item, and dies with those that are told to."""

    def __init__(self, bench: Workbench, result: Any = (1, 2, 3)) -> None:
        super().__init__(bench)
        self.result = result
        self.dead: set[Any] = set()
        bench.executor.answer = self._answer

    def _answer(self, call: Call) -> Outcome | Accepted:
        item = None if call.payload is None else json.loads(call.payload)
        if call.job == "list":
            return Succeeded(self.result if isinstance(self.result, str) else json.dumps(self.result))
        if call.job in ("each", "again"):
            return DEATH if item in self.dead else Succeeded(None if item is None else json.dumps(item * 10))
        return Succeeded()

    async def play(self) -> None:
        await super().play()
        await super().play()  # a decision that waited for the next step may have released nodes


async def begun(
    bench: Workbench, result: Any = (1, 2, 3), *, graph: Any = GRAPH, payload: Any = None, **settings: Any
) -> tuple[Band, int]:
    more = {"each": {"map": {**(OVER if "overPayload" not in settings else {}), **settings}}}
    if "again" in graph:
        more["again"] = {"map": {"over": "each"}}
    made, band = await flows.workflow(bench.scope, graph, more=more), Band(bench, result)
    return band, await flows.start(bench.scope, bench.connection, made, payload)


async def view(bench: Workbench, run: int) -> dict[str, NodeNow]:
    return {node.name: node for node in (await reruns.read_run(bench.scope, "nightly", run)).nodes}


async def ends(bench: Workbench, run: int) -> dict[str, str]:
    return {name: node.state_name for name, node in (await view(bench, run)).items()}


async def items(bench: Workbench, run: int, node: str = "each", **page: Any) -> list[tuple[int, str, str | None]]:
    found = await read_items(bench.scope, "nightly", run, node, ItemPage(**page))
    return [(item.position, item.state.name, item.result) for item in found.items]


def counts(node: NodeNow) -> tuple[int | None, int, int]:
    assert node.map is not None
    return node.map.total, node.map.ended, node.map.failed


async def sound(bench: Workbench) -> None:
    assert [each for each in await verify(bench.connection) if each.violations] == []


async def test_C6_each_item_runs_once_and_the_results_are_a_list_in_their_order(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, ["a", {"b": 1}, [2]])
        bench.executor.answer = lambda call: Succeeded(
            json.dumps(["a", {"b": 1}, [2]]) if call.job == "list" else call.payload
        )
        await band.play()

        assert await flows.phase(bench.connection, run) == "SUCCESS"
        assert sorted(call.payload or "" for call in band.calls_of("each")) == ['"a"', "[2]", '{"b": 1}']
        assert await items(bench, run) == [(0, "SUCCESS", '"a"'), (1, "SUCCESS", '{"b": 1}'), (2, "SUCCESS", "[2]")]
        node = (await view(bench, run))["each"]
        assert (node.state_name, node.own_instance, counts(node)) == ("SUCCESS", None, (3, 3, 0))
        assert json.loads(node.result or "") == ["a", {"b": 1}, [2]]
        assert None not in (node.claimed_at, node.finished_at)
        (call,) = band.calls_of("sum")
        assert json.loads(call.payload or "") == {"parents": {"each": ["a", {"b": 1}, [2]]}}
        await sound(bench)


async def test_C6_a_map_over_an_empty_list_succeeds_at_once_with_no_items(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, [])
        await band.play()

        assert await ends(bench, run) == dict.fromkeys(GRAPH, "SUCCESS")
        node = (await view(bench, run))["each"]
        assert (node.result, counts(node)) == ("[]", (0, 0, 0))
        assert json.loads(band.calls_of("sum")[0].payload or "") == {"parents": {"each": []}}


@pytest.mark.parametrize(("payload", "member"), [([4, 5], ""), ({"files": [4, 5], "day": 1}, "files")])
async def test_C6_a_map_goes_over_a_list_in_the_payload_of_the_run(url: str, payload: Any, member: str):
    async with workbench(url) as bench:
        graph = {"each": (), "sum": ("each",)}
        band, run = await begun(bench, graph=graph, payload=payload, overPayload=member)
        await band.play()

        assert await flows.phase(bench.connection, run) == "SUCCESS"
        assert [result for *_, result in await items(bench, run)] == ["40", "50"]


@pytest.mark.parametrize(
    ("result", "code"),
    [
        ({"a": [1]}, "MAP_NOT_LIST"),
        ("7", "MAP_NOT_LIST"),
        (None, "MAP_NOT_LIST"),
        (TRUNCATED, "MAP_LIST_TOO_LARGE"),
        ('{"horai:branch": ["each"], "result": 1}', "MAP_NOT_LIST"),
    ],
)
async def test_C6_a_value_that_is_no_list_makes_the_node_dead_and_a_rerun_heals_it(url: str, result: Any, code: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, result)
        await band.play()

        assert await flows.phase(bench.connection, run) == "BLOCKED"
        node = (await view(bench, run))["each"]
        assert (node.state_name, node.fault_code) == ("DEAD", code)
        (cause,) = (await reruns.read_run(bench.scope, "nightly", run)).causes
        listing = await flows.instance_of(bench.connection, run, "list")
        assert (cause.node, cause.error_code, cause.instance_id) == ("each", code, listing)
        told = await bench.connection.fetchval("select data from horai.event where kind = 'WORKFLOW_BLOCKED'")
        assert (json.loads(told)["errorCode"], json.loads(told)["blocked"]) == (code, ["sum"])
        band.result = [1]
        await reruns.rerun(bench.scope, "nightly", run, "list")
        await band.play()
        assert await flows.phase(bench.connection, run) == "SUCCESS"


async def test_C6_a_list_with_too_many_items_is_refused_in_the_run(url: str):
    async with workbench(url) as bench:
        payload = [0] * (ITEMS_LIMIT + 1)
        band, run = await begun(bench, graph={"each": ()}, payload=payload, overPayload="")
        await band.play()

        node = (await view(bench, run))["each"]
        assert (node.state_name, node.fault_code, band.played) == ("DEAD", "MAP_TOO_LONG", [])


async def test_C6_no_more_items_than_the_limit_are_under_way(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, list(range(7)), maxConcurrency=3)
        waiting = (
            "select count(*) from horai.workflow_item item join horai.instance_live live on live.id = item.instance_id"
        )
        most = 0
        for _ in range(12):
            await bench.until_idle(band.dispatcher)
            await bench.settle()
            await band.workflow_stage.step(bench.clock.now())
            most = max(most, await bench.connection.fetchval(waiting))

        assert most == 3
        assert await flows.phase(bench.connection, run) == "SUCCESS"
        assert len(band.calls_of("each")) == 7


async def test_C6_progress_is_visible_while_items_run(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, [1, 2, 3], maxConcurrency=1)
        assert counts((await view(bench, run))["each"]) == (None, 0, 0)
        assert (await ends(bench, run))["each"] == "BLOCKED"
        for _ in range(3):
            await bench.until_idle(band.dispatcher)
            await bench.settle()
            await band.workflow_stage.step(bench.clock.now())

        node = (await view(bench, run))["each"]
        assert (node.state_name, counts(node)) == ("RUNNING", (3, 2, 0))
        assert await items(bench, run, limit=1) == [(0, "SUCCESS", "10")]
        assert [state for _, state, _ in await items(bench, run, after=1)] == ["INIT"]


async def test_C6_recorded_ends_of_items_stay_on_their_pages(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, graph={"each": ()}, payload=list(range(300)), overPayload="")
        await band.workflow_stage.step(bench.clock.now())
        pages = "select position, (ctid::text::point)[0] from horai.workflow_item order by position"
        before = await bench.connection.fetch(pages)
        await band.play()

        assert await flows.phase(bench.connection, run) == "SUCCESS"
        assert len(before) == 300
        assert await bench.connection.fetch(pages) == before, "an update was not HOT: there was no room on the page"


@pytest.mark.parametrize(
    ("allowed", "end"), [(0, "DEAD"), (1, "DEAD"), (2, "SUCCESS"), ("50%", "SUCCESS"), ("all", "SUCCESS")]
)
async def test_C6_a_map_ends_as_its_policy_for_failures_says(url: str, allowed: Any, end: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, [1, 2, 3, 4], allowFailures=allowed)
        band.dead = {2, 4}
        await band.play()

        node = (await view(bench, run))["each"]
        assert (node.state_name, counts(node)) == (end, (4, 4, 2))
        assert [position for position, *_ in await items(bench, run, is_failed=True)] == [1, 3]
        if end == "SUCCESS":
            assert json.loads(node.result or "") == [10, None, 30, None]
        else:
            assert node.fault_code == "MAP_FAILED"
            (cause,) = (await reruns.read_run(bench.scope, "nightly", run)).causes
            first = (await read_items(bench.scope, "nightly", run, "each", ItemPage(is_failed=True))).items[0]
            assert (cause.instance_id, cause.has_letter, cause.blocks) == (first.instance_id, True, ("sum",))
        await sound(bench)


async def test_C6_after_too_many_failures_no_further_item_is_made_and_replays_continue_the_map(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, [1, 2, 3, 4], maxConcurrency=2)
        band.dead = {1}
        await band.play()
        assert [state for _, state, _ in await items(bench, run)] == ["DEAD", "SUCCESS"], "the others were not made"
        assert await flows.phase(bench.connection, run) == "BLOCKED"

        band.dead = set()
        letter = await bench.connection.fetchval("select id from horai.dead_letter where replay_status = 'NEW'")
        await dead_letters.replay_letter(bench.scope, letter)
        await band.play()

        assert await flows.phase(bench.connection, run) == "SUCCESS"
        assert [result for *_, result in await items(bench, run)] == ["10", "20", "30", "40"]
        assert len(band.calls_of("each")) == 5, "only the dead item ran again"
        assert counts((await view(bench, run))["each"]) == (4, 4, 0)
        await sound(bench)


async def test_C6_a_rerun_makes_all_items_again_and_supersedes_the_letters_of_dead_ones(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, [1, 2])
        band.dead = {1, 2}
        await band.play()
        band.dead = set()
        await reruns.rerun(bench.scope, "nightly", run, "each")
        await band.play()

        assert await ends(bench, run) == dict.fromkeys(GRAPH, "SUCCESS")
        assert (len(band.calls_of("list")), len(band.calls_of("each"))) == (1, 4)
        statuses = await bench.connection.fetch("select replay_status from horai.dead_letter")
        assert [row["replay_status"] for row in statuses] == ["SUPERSEDED"] * 2
        assert len(await items(bench, run)) == 2
        await sound(bench)


async def test_C6_a_map_goes_over_the_results_of_a_map(url: str):
    graph = {"list": (), "each": (), "again": (), "sum": ("again",)}
    async with workbench(url) as bench:
        band, run = await begun(bench, [1, 2, 3], graph=graph, allowFailures=1)
        band.dead = {2}
        await band.play()

        assert await flows.phase(bench.connection, run) == "SUCCESS"
        assert [result for *_, result in await items(bench, run, "again")] == ["100", None, "300"]


async def flat(bench: Workbench, result: Any, each: Any, **settings: Any) -> tuple[Band, int]:
    """A run of list → each → again, where `each` returns `each` of its item, and `again` goes over the elements of that."""
    graph = {"list": (), "each": (), "again": ()}
    more = {
        "each": {"map": {**OVER, "allowFailures": "all"}},
        "again": {"map": {"over": "each", "flatten": True, **settings}},
    }
    made, band = await flows.workflow(bench.scope, graph, more=more), Band(bench, result)
    of_band = bench.executor.answer

    def answer(call: Call) -> Outcome | Accepted:
        if call.job != "each" or json.loads(call.payload or "0") in band.dead:
            return of_band(call)
        return Succeeded(json.dumps(each(json.loads(call.payload or "0"))))

    bench.executor.answer = answer
    return band, await flows.start(bench.scope, bench.connection, made)


async def test_C6_a_flat_map_goes_over_the_elements_of_the_lists_that_items_returned(
    url: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(maps, "LISTS_PAGE", 2)
    async with workbench(url) as bench:
        band, run = await flat(bench, [1, 2, 3, 4, 5], lambda item: [item] * (item - 1), maxConcurrency=3)
        band.dead = {4}
        await band.play()
        await band.play()

        assert await flows.phase(bench.connection, run) == "SUCCESS"
        results = [result for *_, result in await items(bench, run, "again")]
        assert results == ["20", "30", "30", "50", "50", "50", "50"]


async def test_C6_a_flat_map_over_results_that_are_no_lists_is_dead(url: str):
    async with workbench(url) as bench:
        band, run = await flat(bench, [1], lambda item: item)
        await band.play()

        node = (await view(bench, run))["again"]
        assert (node.state_name, node.fault_code) == ("DEAD", "MAP_NOT_LIST")


async def test_C6_a_result_of_more_than_64_kb_is_kept_with_its_items_and_not_passed_on(url: str):
    graph = {"list": (), "each": (), "again": (), "sum": ("each",)}
    async with workbench(url) as bench:
        band, run = await begun(bench, graph=graph)
        large = json.dumps("x" * 30_000)
        bench.executor.answer = lambda call: Succeeded("[1, 2, 3]" if call.job == "list" else large)
        await band.play()

        assert await flows.phase(bench.connection, run) == "SUCCESS"
        assert (await view(bench, run))["each"].result == TRUNCATED
        assert [result for *_, result in await items(bench, run)] == [large] * 3
        assert [call.payload for call in band.calls_of("again")] == [large] * 3, "a map reads them from the items"
        assert band.calls_of("sum")[0].payload is None


async def test_C6_a_cancel_stops_waiting_and_running_items_and_revokes_the_claims(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, list(range(6)), maxConcurrency=4)
        await band.bench.until_idle(band.dispatcher)
        await bench.settle()
        await band.workflow_stage.step(bench.clock.now())
        await make.claim(bench.connection, await make.node(bench.connection), 2)

        told = await reruns.cancel_run(bench.scope, "nightly", run)
        await band.play()

        assert told.row is not None
        assert told.row.state.name == "CANCELLED"
        assert await ends(bench, run) == {"list": "SUCCESS", "each": "CANCELLED", "sum": "CANCELLED"}
        assert [state for _, state, _ in await items(bench, run)] == ["CANCELLED"] * 4
        assert band.calls_of("each") == [], "no item starts after the cancel"
        await reruns.rerun(bench.scope, "nightly", run, "each")
        await band.play()
        assert await flows.phase(bench.connection, run) == "SUCCESS"
        await sound(bench)


async def test_C6_a_cancelled_item_counts_as_failed(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, [1, 2], allowFailures=1)
        await bench.until_idle(band.dispatcher)
        await bench.settle()
        await band.workflow_stage.step(bench.clock.now())
        first = (await read_items(bench.scope, "nightly", run, "each", ItemPage())).items[0]
        await instances.cancel_by_id(bench.scope, first.instance_id)
        await band.play()

        assert await flows.phase(bench.connection, run) == "SUCCESS"
        assert (await view(bench, run))["each"].result == "[null,20]"


async def test_C6_rules_skips_and_branches_apply_to_a_map_and_the_nodes_after_it(url: str):
    async with workbench(url) as bench:
        graph = {"list": (), "each": (), "alarm": ("each",), "sum": ("each",)}
        more = {"each": {"map": OVER}, "alarm": {"triggerRule": "oneFailed"}}
        made, band = await flows.workflow(bench.scope, graph, more=more), Band(bench)
        run = await flows.start(bench.scope, bench.connection, made)
        band.dead = {1}
        await band.play()
        assert await ends(bench, run) == {"list": "SUCCESS", "each": "DEAD", "alarm": "SUCCESS", "sum": "BLOCKED"}

        band.result = '{"horai:skip": "nothing"}'
        second = await flows.start(bench.scope, bench.connection, made)
        await band.play()
        assert await ends(bench, second) == dict.fromkeys(graph, "SKIPPED")

        band.result, band.dead = '{"horai:branch": ["each"], "result": [5]}', set()
        third = await flows.start(bench.scope, bench.connection, made)
        await band.play()
        assert [result for *_, result in await items(bench, third)] == ["50"]
        await sound(bench)


async def test_C6_an_item_that_skips_itself_has_no_result_and_has_not_failed(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, [1, 2])
        skip = '{"horai:skip": "nothing"}'
        bench.executor.answer = lambda call: Succeeded("[1, 2]" if call.job == "list" else skip)
        await band.play()

        assert await flows.phase(bench.connection, run) == "SUCCESS"
        assert (await view(bench, run))["each"].result == "[null,null]"


async def test_C6_another_process_goes_on_with_a_map_whose_process_died_at_any_decision(
    url: str, monkeypatch: pytest.MonkeyPatch
):
    async with workbench(url) as bench:
        band, run = await begun(bench, list(range(5)), maxConcurrency=2)
        for _ in range(12):
            await bench.until_idle(band.dispatcher)
            await bench.settle()
            with monkeypatch.context() as patch:  # the process dies before its COMMIT
                patch.setattr(maps.map_store, "set_map", _die)
                with pytest.raises(_Died) if await _is_due(bench, run) else nullcontext():
                    await advance_runs(bench.connection, [run])
            band.workflow_stage._heard.clear()
            band.workflow_stage._asked.clear()
            await bench.workflow_stage().step(bench.clock.now())  # of a process that never heard of the run
            again = await advance_runs(bench.connection, [run])  # the answer to its COMMIT was lost: it decides again
            assert again.woken == []

        assert await flows.phase(bench.connection, run) == "SUCCESS"
        assert sorted(call.payload or "" for call in band.calls_of("each")) == ["0", "1", "2", "3", "4"]
        assert len(band.calls_of("sum")) == 1
        await sound(bench)


class _Died(Exception):
    pass


async def _die(*_: Any) -> None:
    raise _Died


async def _is_due(bench: Workbench, run: int) -> bool:
    """Return whether the next decision writes the progress of the map."""
    return bool(
        await bench.connection.fetchval(
            """select exists (select from horai.workflow_node node where node.run_id = $1 and node.name = 'each' and node.ended is null and (
                node.map_total is null and exists (select from horai.workflow_node parent join horai.instance_history past on past.id = parent.instance_id
                    where parent.run_id = $1 and parent.name = 'list')
                or exists (select from horai.workflow_item item join horai.instance_history past on past.id = item.instance_id
                    where item.run_id = $1 and item.ended is null)))""",
            run,
        )
    )


async def test_C6_a_job_whose_items_are_paused_holds_the_map_and_continues_it(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, [1, 2])
        await bench.connection.execute("update horai.job set status = 1 where name = 'each'")
        await band.play()
        assert (await ends(bench, run))["each"] == "RUNNING"
        assert band.calls_of("each") == []
        assert [state for _, state, _ in await items(bench, run)] == ["INIT", "INIT"]


async def test_C6_items_have_the_retries_of_their_node(url: str):
    async with workbench(url) as bench:
        retry = {"maxRetry": 1, "base": "1h", "cap": "1h", "jitter": "none"}
        more = {"each": {"map": OVER, "retry": retry}}
        made, band = await flows.workflow(bench.scope, {"list": (), "each": ()}, more=more), Band(bench)
        run = await flows.start(bench.scope, bench.connection, made)
        bench.executor.answer = lambda call: (
            Succeeded("[1]") if call.job == "list" else FailedRetryable("BUSY", "Later.")
        )
        await band.play()

        assert [state for _, state, _ in await items(bench, run)] == ["FAIL"], "the job itself allows no retry"


async def test_C6_items_are_read_only_of_a_map_of_a_run_that_is_there(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, [1])
        await band.play()

        for node, of in (("list", run), ("absent", run), ("each", run + 10_000)):
            with pytest.raises(NotFound):
                await read_items(bench.scope, "nightly", of, node, ItemPage())


async def test_C6_a_rerun_is_refused_while_items_are_under_way(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, [1])
        await bench.until_idle(band.dispatcher)
        await bench.settle()
        await band.workflow_stage.step(bench.clock.now())

        with pytest.raises(Conflict, match="the node 'each' is RUNNING"):
            await reruns.rerun(bench.scope, "nightly", run, "each")


@pytest.mark.parametrize(
    "harm",
    [
        "update horai.workflow_node set map_made = 2 where map is not null",
        "update horai.workflow_node set map_ended = 2 where map is not null",
        "update horai.workflow_item set ended = null where position = 1",
        "delete from horai.workflow_item where position = 1",
        "update horai.workflow_item set position = 9 where position = 1",
        "update horai.workflow_node set map_total = 4 where map is not null",
    ],
)
async def test_S6_verify_reports_a_map_whose_items_are_not_those_that_it_counts(url: str, harm: str):
    async with workbench(url) as bench:
        band, _ = await begun(bench, [1, 2, 3])
        await band.play()
        await sound(bench)
        await bench.connection.execute(harm)

        (found,) = [each for each in await verify(bench.connection) if each.violations]
        assert (found.invariant, found.violations) == ("S6", 1)
