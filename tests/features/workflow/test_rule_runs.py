"""Runs with trigger rules, skips, branches and retries of nodes, step by step, also after a process died in between."""

import json
from typing import Any

import flows
import make
import pytest
from orchestra import DEATH, Orchestra
from stages import Workbench, workbench

from horai.core.calls import Call
from horai.core.errors import Conflict, Invalid
from horai.core.node_results import branch_text, skip_text
from horai.core.outcome import Accepted, FailedRetryable, Outcome, Succeeded
from horai.features.dead_letters import service as dead_letters
from horai.features.workflow import rerun as reruns
from horai.features.workflow.runs import advance_runs
from horai.operations import instances

RULED = {"extract": (), "load": ("extract",), "clean": ("load",), "alarm": ("extract",)}
MORE = {"clean": {"triggerRule": "allDone"}, "alarm": {"triggerRule": "oneFailed"}}
PICKED = {"pick": (), "a": ("pick",), "b": ("pick",), "join": ("a", "b")}
JOIN = {"join": {"triggerRule": "noneFailed"}}


def answers(band: Orchestra, **given: Outcome | str) -> None:
    """Nodes of these names come to these outcomes, a text standing for the JSON of a result; the others succeed."""

    def of(call: Call) -> Outcome | Accepted:
        found = given.get(call.job, Succeeded())
        return Succeeded(found) if isinstance(found, str) else found

    band.bench.executor.answer = of


async def begun(bench: Workbench, graph: Any, more: Any, **given: Outcome | str) -> tuple[Orchestra, int]:
    made, band = await flows.workflow(bench.scope, graph, more=more), Orchestra(bench)
    answers(band, **given)
    return band, await flows.start(bench.scope, bench.connection, made)


async def view(bench: Workbench, run: int) -> dict[str, Any]:
    return {node.name: node for node in (await reruns.read_run(bench.scope, "nightly", run)).nodes}


async def test_C6_a_death_starts_the_alarm_and_the_clean_up_and_leaves_the_run_blocked(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, RULED, MORE, extract=DEATH)
        await band.play()

        assert await flows.ends(bench.connection, run) == {
            "extract": "DEAD", "load": "BLOCKED", "clean": "SUCCESS", "alarm": "SUCCESS",
        }  # fmt: skip
        assert await flows.phase(bench.connection, run) == "BLOCKED"
        told = await bench.connection.fetchval("select data from horai.event where kind = 'WORKFLOW_BLOCKED'")
        assert json.loads(told)["blocked"] == ["load"]
        (cause,) = (await reruns.read_run(bench.scope, "nightly", run)).causes
        assert (cause.node, cause.blocks) == ("extract", ("load",))


async def test_C6_a_replay_continues_the_run_and_runs_neither_alarm_nor_clean_up_again(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, RULED, MORE, extract=DEATH)
        await band.play()
        dead = await flows.instance_of(bench.connection, run, "extract")
        letter = await bench.connection.fetchval("select id from horai.dead_letter where instance_id = $1", dead)
        answers(band)
        await dead_letters.replay_letter(bench.scope, letter)
        await band.play()

        assert await flows.ends(bench.connection, run) == dict.fromkeys(RULED, "SUCCESS")
        assert await flows.phase(bench.connection, run) == "SUCCESS"
        assert sorted(band.played) == ["alarm", "clean", "extract", "extract", "load"]


async def test_C6_an_alarm_without_a_failure_is_skipped_with_its_reason_and_the_run_succeeds(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, RULED, MORE)
        await band.play()

        assert (await flows.ends(bench.connection, run))["alarm"] == "SKIPPED"
        assert await flows.phase(bench.connection, run) == "SUCCESS"
        found = await reruns.read_run(bench.scope, "nightly", run)
        (alarm,) = [node for node in found.nodes if node.name == "alarm"]
        assert (alarm.state_name, alarm.reason and alarm.reason.name) == ("SKIPPED", "SKIPPED")
        assert reruns.skip_reason(found, alarm) == "its trigger rule oneFailed cannot be met: 'extract' is SUCCESS"
        told = await bench.connection.fetchval(
            "select data from horai.event where kind = 'INSTANCE_CANCELLED' and instance_id = $1", alarm.instance_id
        )
        assert json.loads(told)["reason"] == "SKIPPED"


async def test_one_failed_starts_while_another_parent_is_still_at_work(url: str):
    graph = {"a": (), "slow": (), "alarm": ("a", "slow")}
    async with workbench(url) as bench:
        band, run = await begun(bench, graph, {"alarm": MORE["alarm"]}, a=DEATH)
        slow = await flows.instance_of(bench.connection, run, "slow")
        await bench.connection.execute("update horai.instance_live set lane = 0 where id = $1", slow)
        await band.play()

        assert await flows.ends(bench.connection, run) == {"a": "DEAD", "slow": "INIT", "alarm": "SUCCESS"}
        assert await flows.phase(bench.connection, run) == "RUNNING"


async def test_C6_a_node_that_skips_itself_is_skipped_and_so_are_those_that_need_its_success(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, RULED, MORE, extract=skip_text("no new files"))
        await band.play()

        assert await flows.ends(bench.connection, run) == {
            "extract": "SKIPPED", "load": "SKIPPED", "clean": "SUCCESS", "alarm": "SKIPPED",
        }  # fmt: skip
        assert await flows.phase(bench.connection, run) == "SUCCESS"
        found = await reruns.read_run(bench.scope, "nightly", run)
        (extract,) = [node for node in found.nodes if node.name == "extract"]
        assert reruns.skip_reason(found, extract) == "its function skipped it: no new files"
        (clean,) = band.calls_of("clean")
        assert clean.payload is None, "a skipped node hands nothing on"


async def test_C6_a_branch_runs_the_chosen_node_with_its_result_and_joins_behind_it(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, PICKED, JOIN, pick=branch_text(["b"], '{"rows": 3}'))
        await band.play()

        assert await flows.ends(bench.connection, run) == {
            "pick": "SUCCESS", "a": "SKIPPED", "b": "SUCCESS", "join": "SUCCESS",
        }  # fmt: skip
        assert await flows.phase(bench.connection, run) == "SUCCESS"
        (b,) = band.calls_of("b")
        assert json.loads(b.payload or "") == {"parents": {"pick": {"rows": 3}}}
        found = await reruns.read_run(bench.scope, "nightly", run)
        nodes = {node.name: node for node in found.nodes}
        assert nodes["pick"].chosen == ("b",)
        assert reruns.skip_reason(found, nodes["a"]) == "a node before it chose other nodes"


@pytest.mark.parametrize("chosen", ['["pick"]', '["join"]', '["nobody"]', '"b"', '["b\\u0000"]'])
async def test_C6_a_branch_to_a_node_that_is_not_directly_after_it_is_dead_and_says_so(url: str, chosen: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, PICKED, JOIN, pick=f'{{"horai:branch": {chosen}}}')
        if "u0000" in chosen:
            answers(band, pick=branch_text(["b "], None))
        await band.play()

        assert await flows.phase(bench.connection, run) == "BLOCKED"
        nodes = await view(bench, run)
        assert (nodes["pick"].state_name, nodes["pick"].fault_code) == ("DEAD", "BRANCH_UNKNOWN")
        assert (nodes["a"].state_name, nodes["b"].state_name) == ("BLOCKED", "BLOCKED")
        (cause,) = (await reruns.read_run(bench.scope, "nightly", run)).causes
        assert (cause.node, cause.error_code, cause.has_letter) == ("pick", "BRANCH_UNKNOWN", False)
        answers(band, pick=branch_text(["a"], None))
        await reruns.rerun(bench.scope, "nightly", run, "pick")
        await band.play()
        assert await flows.phase(bench.connection, run) == "SUCCESS"
        assert (await flows.ends(bench.connection, run))["b"] == "SKIPPED"


async def test_a_rerun_of_a_branch_may_choose_other_nodes_and_one_from_a_skipped_node_is_refused(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, PICKED, JOIN, pick=branch_text(["a"], None))
        await band.play()
        with pytest.raises(Conflict, match="a node before 'b' chose other nodes"):
            await reruns.rerun(bench.scope, "nightly", run, "b")
        answers(band, pick=branch_text(["b"], None))
        await reruns.rerun(bench.scope, "nightly", run, "pick")
        await band.play()

        assert await flows.ends(bench.connection, run) == {
            "pick": "SUCCESS", "a": "SKIPPED", "b": "SUCCESS", "join": "SUCCESS",
        }  # fmt: skip
        rule = "select trigger_rule from horai.workflow_node where run_id = $1 and name = 'join' and is_current"
        assert await bench.connection.fetchval(rule, run) == 3, "a rerun keeps the rule"


@pytest.mark.parametrize("result", [skip_text("nothing"), branch_text(["b"], None)])
async def test_C6_another_process_reads_the_direction_of_a_node_whose_process_died_after_it_settled(
    url: str, result: str
):
    async with workbench(url) as bench:
        band, run = await begun(bench, PICKED, JOIN, pick=result)
        await bench.until_idle(band.dispatcher)
        await bench.settle()
        band.workflow_stage._heard.clear()  # the process dies here
        other = bench.workflow_stage()
        await other.step(bench.clock.now())
        after = await flows.ends(bench.connection, run)
        again = await advance_runs(bench.connection, [run])  # the answer to its COMMIT was lost: it decides again
        await band.play()

        assert again.woken == []
        is_skip = result.startswith('{"horai:skip"')
        assert after == {
            "pick": "SKIPPED" if is_skip else "SUCCESS",
            "a": "SKIPPED",
            "b": "SKIPPED" if is_skip else "INIT",
            "join": "INIT" if is_skip else "BLOCKED",
        }
        assert (await flows.ends(bench.connection, run))["join"] == "SUCCESS"
        assert sorted(band.played) == (["join", "pick"] if is_skip else ["b", "join", "pick"])


async def test_C6_the_recorded_end_of_a_node_does_not_change(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, PICKED, JOIN, pick=branch_text(["b"], None))
        await band.play()
        pick = await flows.instance_of(bench.connection, run, "pick")
        await bench.connection.execute(
            "update horai.instance_history set result = $2 where id = $1", pick, branch_text(["a"], None)
        )
        await bench.connection.execute(
            "update horai.workflow_run set phase = 0, finished_at = null, settled = true where id = $1", run
        )
        await advance_runs(bench.connection, [run])

        assert (await view(bench, run))["pick"].chosen == ("b",)
        assert await flows.phase(bench.connection, run) == "SUCCESS"


async def test_C6_a_decision_that_a_lock_kept_from_being_written_is_completed_by_the_sweep_of_another_process(url: str):
    graph = {"a": (), "slow": (), "alarm": ("a", "slow")}
    async with workbench(url) as bench:
        band, run = await begun(bench, graph, {"alarm": MORE["alarm"]}, a=DEATH)
        slow = await flows.instance_of(bench.connection, run, "slow")
        await bench.connection.execute("update horai.instance_live set lane = 0 where id = $1", slow)
        async with make.scope(url) as other, make.platform(other).acquire() as holder, holder.transaction():
            await holder.execute("select from horai.job where name = 'alarm' for update")
            await band.play()
            assert (await flows.ends(bench.connection, run))["alarm"] == "BLOCKED"
        await bench.workflow_stage().step(bench.clock.now())  # of a process that never heard of the run

        assert (await flows.ends(bench.connection, run))["alarm"] == "INIT"
        assert await bench.connection.fetchval("select undecided from horai.workflow_run where id = $1", run) is False


async def test_a_run_that_is_given_up_cancels_nodes_of_every_rule(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, RULED, MORE)
        await reruns.cancel_run(bench.scope, "nightly", run)
        await band.play()

        assert await flows.ends(bench.connection, run) == dict.fromkeys(RULED, "CANCELLED")
        assert await flows.phase(bench.connection, run) == "CANCELLED"


async def test_a_cancelled_parent_cancels_by_all_success_and_counts_as_done_for_all_done(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, RULED, MORE)
        await instances.cancel_by_id(bench.scope, await flows.instance_of(bench.connection, run, "extract"))
        await band.play()

        assert await flows.ends(bench.connection, run) == {
            "extract": "CANCELLED", "load": "CANCELLED", "clean": "SUCCESS", "alarm": "SKIPPED",
        }  # fmt: skip
        assert await flows.phase(bench.connection, run) == "CANCELLED"


async def test_C6_a_node_has_the_retries_of_the_workflow_also_in_a_rerun(url: str):
    async with workbench(url) as bench:
        retry = {"maxRetry": 1, "base": "1h", "cap": "1h", "jitter": "none"}
        busy = FailedRetryable("BUSY", "Later.")
        band, run = await begun(bench, {"load": ()}, {"load": {"retry": retry}}, load=busy)
        await band.play()

        assert await flows.ends(bench.connection, run) == {"load": "FAIL"}, "the job itself allows no retry"
        await reruns.cancel_run(bench.scope, "nightly", run)
        await reruns.rerun(bench.scope, "nightly", run, "load")
        await band.play()
        assert await flows.ends(bench.connection, run) == {"load": "FAIL"}
        assert len(band.calls_of("load")) == 2


@pytest.mark.parametrize(("more", "end"), [({}, "FAIL"), ({"retry": {"maxLost": 0}}, "DEAD")])
async def test_C6_a_lost_attempt_of_a_node_counts_against_the_policy_of_the_node(url: str, more: Any, end: str):
    async with workbench(url) as bench:
        _, run = await begun(bench, {"load": ()}, {"load": more})
        node = await make.node(bench.connection)
        await make.claim(bench.connection, node)
        await bench.connection.execute("update horai.node set lease_until = now() where incarnation = $1", node)
        await bench.rescuer().step(bench.clock.now())

        assert await flows.states(bench.connection, run) == {"load": end}


async def test_a_rule_or_retry_that_is_wrong_is_refused_at_its_field(url: str):
    async with make.scope(url) as scope:
        wrong = {"load": {"triggerRule": "allDone", "retry": {"maxRetry": -1}}, "tell": {"triggerRule": "some"}}
        with pytest.raises(Invalid) as caught:
            await flows.workflow(scope, {"load": (), "tell": ("load",)}, more=wrong)

    assert [fault.field for fault in caught.value.errors] == [
        "nodes.0.retry.maxRetry", "nodes.0.triggerRule", "nodes.1.triggerRule",
    ]  # fmt: skip
