"""Trigger rules and branches as pure decisions: when a node starts, when it never will, and how the run ends."""

from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.core.node_results import ChosenNodes, SkippedNode, branch_text, direction_in, own_result, skip_text
from horai.core.states import State
from horai.features.workflow import graph as dag
from horai.features.workflow.graph import NoRerun, RunState
from horai.features.workflow.trigger_rules import NodeCause, NodeVerdict, ParentEnd, RunFacts, TriggerRule, verdict_of

B, R, S, D, C = State.BLOCKED, State.RUNNING, State.SUCCESS, State.DEAD, State.CANCELLED
OPEN, GOOD, BAD, LEFT_OUT, GONE = (
    ParentEnd.OPEN, ParentEnd.SUCCESS, ParentEnd.FAILED, ParentEnd.SKIPPED, ParentEnd.CANCELLED,
)  # fmt: skip
ALL_SUCCESS, ALL_DONE, ONE_FAILED, NONE_FAILED = TriggerRule


@pytest.mark.parametrize(
    ("parents", "verdicts"),
    [
        ({GOOD}, "RELEASE RELEASE SKIP RELEASE"),
        ({GOOD, OPEN}, "WAIT WAIT WAIT WAIT"),
        ({BAD}, "HOLD RELEASE RELEASE HOLD"),
        ({BAD, OPEN}, "WAIT WAIT RELEASE WAIT"),
        ({GOOD, BAD}, "HOLD RELEASE RELEASE HOLD"),
        ({LEFT_OUT}, "SKIP RELEASE SKIP RELEASE"),
        ({LEFT_OUT, OPEN}, "SKIP WAIT WAIT WAIT"),
        ({LEFT_OUT, BAD}, "SKIP RELEASE RELEASE HOLD"),
        ({GONE}, "CANCEL RELEASE SKIP CANCEL"),
        ({GONE, OPEN}, "CANCEL WAIT WAIT CANCEL"),
        ({GONE, BAD}, "CANCEL RELEASE RELEASE CANCEL"),
        ({GONE, LEFT_OUT}, "CANCEL RELEASE SKIP CANCEL"),
    ],
)
def test_C6_each_rule_decides_by_the_ends_of_the_parents(parents: set[ParentEnd], verdicts: str):
    found = [verdict_of(rule, parents) for rule in (ALL_SUCCESS, ALL_DONE, ONE_FAILED, NONE_FAILED)]

    assert [verdict.name for verdict in found] == verdicts.split()


CHAIN = {"extract": (), "load": ("extract",), "clean": ("load",), "alarm": ("extract",)}
RULES = {"clean": ALL_DONE, "alarm": ONE_FAILED}


def test_C6_a_node_behind_a_dead_one_counts_as_failed_for_a_rule_that_wants_all_done():
    states = {"extract": D, "load": B, "clean": B, "alarm": B}

    decision = dag.decide(CHAIN, states, facts=RunFacts(RULES))

    assert decision == dag.Decision(("alarm", "clean"), (), RunState.RUNNING)
    over = {**states, "clean": S, "alarm": S}
    assert dag.decide(CHAIN, over, facts=RunFacts(RULES)).state is RunState.BLOCKED, "load waits for a replay"


def test_C6_a_node_that_cannot_be_triggered_any_more_is_skipped_and_the_run_succeeds():
    decision = dag.decide(CHAIN, {"extract": S, "load": S, "clean": S, "alarm": B}, facts=RunFacts(RULES))

    assert decision == dag.Decision((), (), RunState.SUCCESS, (("alarm", NodeCause.RULE),))


def test_a_skip_goes_on_to_all_success_and_stops_at_none_failed_and_all_done():
    graph = {"a": (), "b": ("a",), "c": ("b",), "d": ("b", "a"), "e": ("c",)}
    facts = RunFacts({"d": NONE_FAILED, "e": ALL_DONE}, skipped=frozenset({"a"}))

    decision = dag.decide(graph, {"a": C, **dict.fromkeys("bcde", B)}, facts=facts)

    assert decision.skipped == (("b", NodeCause.RULE), ("c", NodeCause.RULE))
    assert decision.released == ("d", "e")


def test_a_run_whose_nodes_were_all_skipped_has_succeeded_and_one_with_a_cancelled_node_has_not():
    graph = {"a": (), "b": ("a",)}
    assert dag.decide(graph, {"a": C, "b": C}, facts=RunFacts(skipped=frozenset("ab"))).state is RunState.SUCCESS
    assert dag.decide(graph, {"a": S, "b": C}, facts=RunFacts()).state is RunState.CANCELLED


def test_C6_a_branch_skips_the_nodes_that_it_did_not_choose_but_no_join_behind_a_chosen_one():
    graph = {"pick": (), "a": ("pick",), "b": ("pick",), "below": ("b",), "join": ("pick", "a", "b")}
    facts = RunFacts({"join": NONE_FAILED}, passed_over=dag.passed_over(graph, {"pick": ("a",)}))

    assert facts.passed_over == {"b"}
    decision = dag.decide(graph, {"pick": S, **dict.fromkeys(("a", "b", "below", "join"), B)}, facts=facts)
    assert decision.released == ("a",)
    assert decision.skipped == (("b", NodeCause.NOT_CHOSEN), ("below", NodeCause.RULE))
    assert dag.passed_over(graph, {"pick": ()}) == {"a", "b", "join"}, "it chose none"


def test_a_rerun_is_refused_where_the_rule_is_not_met_or_the_branch_chose_other_nodes():
    states = {"extract": S, "load": S, "clean": S, "alarm": C}
    facts = RunFacts(RULES, skipped=frozenset({"alarm"}))
    with pytest.raises(NoRerun, match="only if a parent has failed, and none has"):
        dag.rerun_from(CHAIN, states, "alarm", facts)
    assert dag.rerun_from(CHAIN, states, "clean", facts).again == ("clean",)
    passed_over = RunFacts(skipped=frozenset({"load"}), passed_over=frozenset({"load"}))
    with pytest.raises(NoRerun, match="a node before 'load' chose other nodes"):
        dag.rerun_from(CHAIN, {**states, "load": C, "clean": C}, "load", passed_over)
    with pytest.raises(NoRerun, match="its parent 'load' is SKIPPED"):
        dag.rerun_from(CHAIN, {**states, "load": C, "clean": C}, "clean", passed_over)


def test_a_rerun_from_a_node_with_a_tolerant_rule_is_possible_behind_a_dead_one():
    states = {"extract": D, "load": B, "clean": S, "alarm": S}

    assert dag.rerun_from(CHAIN, states, "clean", RunFacts(RULES)).again == ("clean",)
    assert dag.held_up_by(CHAIN, states, "extract", RULES) == ["load"]


@st.composite
def flows(draw: st.DrawFn) -> tuple[dict[str, tuple[str, ...]], dict[str, TriggerRule], dict[str, State]]:
    """A graph with rules, and how each node would end if it ran."""
    names = [f"n{i}" for i in range(draw(st.integers(1, 8)))]
    graph = {
        name: tuple(draw(st.sets(st.sampled_from(names[:i]), max_size=3))) if i else () for i, name in enumerate(names)
    }
    rules = {name: draw(st.sampled_from([*TriggerRule])) for name in names if graph[name]}
    return graph, rules, {name: draw(st.sampled_from([S, S, D, C])) for name in names}


def played(
    graph: Mapping[str, tuple[str, ...]], rules: Mapping[str, TriggerRule], fates: Mapping[str, State], seed: int
) -> tuple[dict[str, State], frozenset[str], RunState]:
    """Run a graph whose nodes end in a random order, one at a time; C stands for a function that skips itself."""
    dice, skipped = Random(seed), set[str]()
    states = {name: B if parents else R for name, parents in graph.items()}
    while True:
        decision = dag.decide(graph, states, facts=RunFacts(rules, frozenset(skipped)))
        states |= dict.fromkeys(decision.released, R) | dict.fromkeys(decision.cancelled, C)
        for name, _ in decision.skipped:
            states[name] = C
            skipped.add(name)
        if not (running := sorted(name for name, state in states.items() if state is R)):
            return states, frozenset(skipped), decision.state
        ended = dice.choice(running)
        states[ended] = fates[ended]
        if fates[ended] is C:
            skipped.add(ended)


@given(flows(), st.integers(0, 1000), st.integers(0, 1000))
def test_C6_the_end_of_a_run_does_not_depend_on_the_order_in_which_its_nodes_end(flow, one: int, other: int):  # pyright: ignore
    graph, rules, fates = flow
    states, skipped, state = played(graph, rules, fates, one)

    assert played(graph, rules, fates, other)[1:] == (skipped, state)
    assert (state is RunState.BLOCKED) == (D in states.values())
    for name in (name for name, found in states.items() if found is B):
        assert not rules.get(name, ALL_SUCCESS).is_tolerant, "only a node that needs its parents is held up"


def test_a_direction_is_read_to_the_letter_and_an_ordinary_result_is_none():
    assert direction_in(skip_text("no files")) == SkippedNode("no files")
    assert direction_in(branch_text(["a", "b"], '{"n": 1.00}')) == ChosenNodes(("a", "b"), '{"n": 1.00}')
    assert direction_in(' { "horai:branch" : [] }') == ChosenNodes(())
    assert own_result(branch_text(["a"], "3")) == "3"
    assert own_result(skip_text("x")) is None
    assert own_result('{"n": 1e2}') == '{"n": 1e2}'
    for ordinary in (None, "3", "[]", '{"a": "horai:skip"}', '{"a": 1, "horai:skip": ""}', '"horai:skip"', "{"):
        assert direction_in(ordinary) is None


@pytest.mark.parametrize("names", ['"a"', "{}", "[1]", '["a", null]', "null", "1e400", "[" * 30_000 + "]" * 30_000])
def test_a_branch_that_is_no_list_of_names_chooses_nothing_known(names: str):
    assert direction_in(f'{{"horai:branch": {names}}}') in (ChosenNodes(None), None)
    assert direction_in(f'{{"horai:skip": {names}}}') in (SkippedNode(""), SkippedNode("a"), None)


def test_every_verdict_has_an_end_for_the_nodes_behind():
    assert {verdict: verdict.end for verdict in NodeVerdict} == {
        NodeVerdict.RELEASE: OPEN,
        NodeVerdict.WAIT: OPEN,
        NodeVerdict.HOLD: BAD,
        NodeVerdict.SKIP: LEFT_OUT,
        NodeVerdict.PASS_OVER: LEFT_OUT,
        NodeVerdict.CANCEL: GONE,
    }
