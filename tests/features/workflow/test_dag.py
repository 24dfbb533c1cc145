"""The graph of a workflow: cycles, readiness, what a death and a cancel hold up, what a rerun does again."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.core.states import FINAL, State
from horai.features.workflow import graph as dag
from horai.features.workflow.graph import NoRerun, RunState

DIAMOND = {"load": (), "left": ("load",), "right": ("load",), "report": ("left", "right")}

B, I, R, F, S, D, C = (  # noqa: E741
    State.BLOCKED, State.INIT, State.RUNNING, State.FAIL, State.SUCCESS, State.DEAD, State.CANCELLED,
)  # fmt: skip


def states(*found: State) -> dict[str, State]:
    return dict(zip(DIAMOND, found, strict=True))


@pytest.mark.parametrize("length", [1, 2, 50])
def test_C6_a_circle_of_any_length_is_found_and_named(length: int):
    names = [f"n{i}" for i in range(length)]
    graph = {name: (names[i - 1],) for i, name in enumerate(names)} | {"free": (), "below": ("n0",)}

    found = dag.cycle_in(graph)

    assert found is not None
    assert found[0] == found[-1]
    assert set(found) == set(names)
    assert all(before in graph[after] for before, after in pairwise(found))


def test_a_graph_without_a_circle_has_an_order():
    assert dag.cycle_in(DIAMOND) is None
    assert dag.ordered(DIAMOND) == ["load", "left", "right", "report"]
    assert dag.roots(DIAMOND) == {"load"}
    assert dag.descendants(DIAMOND, "left") == {"report"}
    assert dag.descendants(DIAMOND, "load") == {"left", "right", "report"}


@pytest.mark.parametrize(
    ("before", "released", "cancelled", "run"),
    [
        (states(R, B, B, B), (), (), RunState.RUNNING),
        (states(F, B, B, B), (), (), RunState.RUNNING),
        (states(S, B, B, B), ("left", "right"), (), RunState.RUNNING),
        (states(S, S, R, B), (), (), RunState.RUNNING),
        (states(S, S, S, B), ("report",), (), RunState.RUNNING),
        (states(S, S, S, S), (), (), RunState.SUCCESS),
        (states(D, B, B, B), (), (), RunState.BLOCKED),
        (states(S, D, R, B), (), (), RunState.RUNNING),
        (states(S, D, S, B), (), (), RunState.BLOCKED),
        (states(S, S, S, D), (), (), RunState.BLOCKED),
        (states(C, B, B, B), (), ("left", "right", "report"), RunState.CANCELLED),
        (states(S, C, R, B), (), ("report",), RunState.RUNNING),
        (states(S, C, D, B), (), ("report",), RunState.BLOCKED),
        (states(S, C, S, C), (), (), RunState.CANCELLED),
    ],
)
def test_C6_the_states_of_the_parents_decide_which_nodes_are_released_or_cancelled(
    before: dict[str, State], released: tuple[str, ...], cancelled: tuple[str, ...], run: RunState
):
    assert dag.decide(DIAMOND, before) == dag.Decision(released, cancelled, run)


def test_a_run_that_was_given_up_ends_with_what_runs():
    assert dag.decide(DIAMOND, states(S, R, I, B), is_given_up=True) == dag.Decision(
        (), ("right", "report"), RunState.RUNNING
    )
    assert dag.decide(DIAMOND, states(S, D, C, C), is_given_up=True).state is RunState.CANCELLED


def test_a_death_holds_up_what_waits_for_it_in_order():
    assert dag.held_up_by(DIAMOND, states(D, B, B, B), "load") == ["left", "right", "report"]
    assert dag.held_up_by(DIAMOND, states(S, D, R, B), "left") == ["report"]


def test_a_rerun_does_again_what_came_after():
    assert dag.rerun_from(DIAMOND, states(S, S, S, S), "left").again == ("left", "report")
    assert dag.rerun_from(DIAMOND, states(S, D, S, B), "left").again == ("left",), "what waits goes on waiting"
    assert dag.rerun_from(DIAMOND, states(C, C, C, C), "load").again == ("load", "left", "right", "report")


@pytest.mark.parametrize(
    ("before", "first", "words"),
    [
        (states(S, R, S, B), "left", "'left' is RUNNING"),
        (states(S, D, R, B), "right", "'right' is RUNNING"),
        (states(S, S, S, I), "load", "'report' is INIT"),
        (states(D, B, B, B), "left", "has not run yet"),
        (states(C, C, C, C), "left", "its parent 'load' is CANCELLED"),
        (states(D, C, C, C), "left", "its parent 'load' is DEAD"),
        (states(S, S, D, C), "report", "its parent 'right' is DEAD"),
    ],
)
def test_a_rerun_is_refused_while_its_nodes_work_or_their_parents_are_not_done(
    before: dict[str, State], first: str, words: str
):
    with pytest.raises(NoRerun, match=words):
        dag.rerun_from(DIAMOND, before, first)


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, tuple[str, ...]]:
    count = draw(st.integers(1, 12))
    return {
        f"n{i}": tuple(f"n{j}" for j in sorted(draw(st.sets(st.integers(0, i - 1), max_size=3)))) if i else ()
        for i in range(count)
    }


@given(graphs(), st.randoms(use_true_random=False), st.sampled_from([{S}, {S, D}, {S, C}, {S, D, C}]))
def test_C6_I13_in_any_graph_and_any_order_nothing_begins_before_its_parents_have_succeeded(graph, random, ends):
    """Each node is released at most once, and at the end everything is accounted for."""
    now = {name: I if not graph[name] else B for name in graph}
    begun: list[str] = []
    while under_way := sorted(name for name, state in now.items() if state in dag.UNDER_WAY):
        now[random.choice(under_way)] = random.choice(sorted(ends))
        decision = dag.decide(graph, now)
        for name in decision.released:
            assert all(now[parent] is S for parent in graph[name])
            assert name not in begun
            begun.append(name)
            now[name] = I
        for name in decision.cancelled:
            now[name] = C
        assert dag.decide(graph, now) == dag.Decision((), (), decision.state), "a second look decides nothing"
    for name, state in now.items():
        parents = {now[parent] for parent in graph[name]}
        assert (state is B) == (C not in parents and bool(parents - {S})), "BLOCKED for a death above, and only then"
    settled = (
        RunState.SUCCESS if set(now.values()) == {S} else RunState.BLOCKED if D in now.values() else RunState.CANCELLED
    )
    assert dag.decide(graph, now).state is settled


@given(graphs(), st.data())
def test_a_rerun_is_closed_under_what_follows(graph, data):
    now = dict.fromkeys(graph, S)
    first = data.draw(st.sampled_from(sorted(graph)))

    again = dag.rerun_from(graph, now, first).again

    assert set(again) == {first} | dag.descendants(graph, first)
    assert all(state in FINAL for state in now.values())
    for name in graph:
        if name not in again:
            assert not set(graph[name]) & set(again), "nothing that stays has a parent that is done again"


@given(graphs())
def test_every_node_comes_after_its_parents(graph):
    order = dag.ordered(graph)

    assert sorted(order) == sorted(graph)
    assert all(order.index(parent) < order.index(name) for name in graph for parent in graph[name])
