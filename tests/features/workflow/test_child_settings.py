"""The rules of sub-workflows, pure: their settings, the payload of their runs, and who is given up."""

import json
from typing import Any

import pytest

from horai.core.errors import Invalid
from horai.core.limits import RESULT_LIMIT
from horai.core.validation import Validation
from horai.features.workflow.child_settings import (
    ChildSettings,
    child_payload,
    read_params,
    stored_child,
    with_child_results,
)
from horai.features.workflow.definition import checked_nodes

PARAMS = {"day": {"payload": "day"}, "rows": {"resultOf": "load"}, "mode": {"value": None}}


def test_settings_come_back_as_they_were_stored() -> None:
    settings = read_params(PARAMS, Validation(), "params")
    assert stored_child(json.dumps(settings.document)) == settings
    assert stored_child(json.dumps(ChildSettings().document)) == ChildSettings()
    assert stored_child(None) is None
    assert settings.results_of == ("load",)


def test_the_payload_has_literals_members_and_results() -> None:
    settings = ChildSettings(PARAMS)
    payload = child_payload(settings, '{"day": 1.50, "other": 2}')
    assert payload == '{"day":1.50,"mode":null}'
    assert with_child_results(settings, payload, {"load": "3.0"}) == '{"day":1.50,"mode":null,"rows":3.0}'


@pytest.mark.parametrize("payload", [None, "[1]", "7", "{}"])
def test_a_member_that_is_not_there_is_left_out(payload: str | None) -> None:
    assert child_payload(ChildSettings({"day": {"payload": "day"}}), payload) == "{}"


def test_without_parameters_the_run_gets_the_payload_of_its_parent() -> None:
    assert child_payload(ChildSettings(), '{"day": 1}') is None
    assert with_child_results(ChildSettings(), '{"day": 1}', {"load": "3"}) == '{"day": 1}'


def test_results_of_more_than_64_kb_together_are_left_out() -> None:
    half = json.dumps("x" * (RESULT_LIMIT // 2))
    settings = ChildSettings({"a": {"resultOf": "a"}, "b": {"resultOf": "b"}})
    assert with_child_results(settings, "{}", {"a": half, "b": half}) == "{}"
    assert with_child_results(settings, "{}", {"a": half, "b": None}) == f'{{"a":{half}}}'


@pytest.mark.parametrize(
    ("node", "field"),
    [
        ({"workflow": "b", "job": "c"}, "nodes.0.job"),
        ({"workflow": "b", "map": {"overPayload": ""}}, "nodes.0.map"),
        ({"params": {}}, "nodes.0.params"),
        ({"workflow": "b", "params": {"x": {}}}, "nodes.0.params.x"),
        ({"workflow": "b", "params": {"x": 7}}, "nodes.0.params.x"),
        ({"workflow": "b", "params": {"x": {"value": 1, "payload": "y"}}}, "nodes.0.params.x"),
        ({"workflow": "b", "params": {"x": {"payload": 7}}}, "nodes.0.params.x"),
        ({"workflow": "b", "params": {"x": {"strange": "y"}}}, "nodes.0.params.x"),
        ({"workflow": "b", "params": {"x": {"payload": "y" * 201}}}, "nodes.0.params.x"),
        ({"workflow": "b", "params": {str(n): {"value": n} for n in range(101)}}, "nodes.0.params"),
    ],
)
def test_settings_that_are_wrong_are_refused(node: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        checked_nodes([{"name": "a", **node}], [None])
    assert field in [error.field for error in caught.value.errors]


def test_a_node_comes_after_the_nodes_whose_results_it_takes() -> None:
    nodes = checked_nodes(
        [{"name": "load"}, {"name": "b", "workflow": "w", "params": {"rows": {"resultOf": "load"}}}], [None, None]
    )
    assert (nodes[1].job, nodes[1].after) == ("w", ("load",))
