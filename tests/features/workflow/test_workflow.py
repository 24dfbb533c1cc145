"""Workflows as people write them, and what one node hands to the next."""

import json
from typing import Any

import pytest

from horai.core.errors import Invalid
from horai.core.limits import RESULT_LIMIT
from horai.features.workflow.definition import WorkflowNode, builtin_document, checked_nodes
from horai.features.workflow.payload import with_results


def read(*nodes: dict[str, Any]) -> tuple[WorkflowNode, ...]:
    return checked_nodes(nodes, [None] * len(nodes))


def refused(*nodes: dict[str, Any]) -> Invalid:
    with pytest.raises(Invalid) as caught:
        read(*nodes)
    return caught.value


def test_a_node_runs_the_job_of_its_name_unless_it_names_another():
    assert read({"name": "load"}, {"name": "tell", "job": "mail", "after": ["load", "load"]}) == (
        WorkflowNode("load", "load"),
        WorkflowNode("tell", "mail", ("load",)),
    )


@pytest.mark.parametrize("length", [1, 2, 50])
def test_C6_a_circle_of_nodes_is_refused_by_name(length: int):
    names = [f"n{i}" for i in range(length)]
    error = refused(*({"name": name, "after": [names[i - 1]]} for i, name in enumerate(names)))

    assert [fault.field for fault in error.errors] == ["nodes"]
    assert "contain a cycle: n" in error.detail
    assert len(error.detail) < 200, "however long it is"


def test_C6_every_unknown_parent_and_every_second_name_is_told_at_its_node():
    error = refused({"name": "a", "after": ["x"]}, {"name": "b"}, {"name": "b", "after": ["a", "y"]}, {"name": "ä"})

    assert [fault.field for fault in error.errors] == [
        "nodes.0.after", "nodes.1.name", "nodes.2.name", "nodes.2.after", "nodes.3.name",
    ]  # fmt: skip
    assert "there is no node 'x'" in error.detail


def test_a_workflow_has_at_least_one_node_and_not_too_many():
    assert [fault.field for fault in refused().errors] == ["nodes"]
    assert [fault.field for fault in refused(*({"name": f"n{i}"} for i in range(501))).errors] == ["nodes"]


def test_its_job_has_its_schedule_and_is_run_by_horai():
    document = {"name": "nightly", "cron": "0 2 * * *", "nodes": [{}], "queue": None, "payload": {"a": 1}}

    assert builtin_document(document) == {
        "name": "nightly", "cron": "0 2 * * *", "target": {"type": "worker", "handler": "horai:workflow"},
    }  # fmt: skip


def test_results_are_handed_on_beside_the_payload_to_the_letter():
    given = with_results('{"day": 1.00}', {"left": '{"n": 1e2}', "right": None})

    assert given == '{"day":1.00,"parents":{"left":{"n": 1e2},"right":null}}'
    assert with_results(None, {"left": "3"}) == '{"parents":{"left":3}}'


def test_a_payload_stays_as_it_is_when_there_is_nothing_to_hand_on_or_no_place_for_it():
    assert with_results('{"day": 1}', {"left": None}) == '{"day": 1}'
    assert with_results("[1]", {"left": "3"}) == "[1]"
    assert with_results(None, {}) is None
    half = json.dumps("x" * (RESULT_LIMIT // 2))
    assert with_results("{}", {"left": half, "right": half}) == "{}"
