"""Settings of maps: how many items may fail and be under way, what a list is, and what is refused."""

import json
from typing import Any

import msgspec
import pytest

from horai.core.errors import Invalid
from horai.features.workflow.definition import checked_nodes
from horai.features.workflow.map_settings import (
    ITEMS_LIMIT,
    OPEN_LIMIT,
    MapSettings,
    flattened,
    item_text,
    items_in,
    items_in_payload,
    stored_map,
)


def texts(items: list[msgspec.Raw] | None) -> list[str | None] | None:
    return None if items is None else [item_text(item) for item in items]


@pytest.mark.parametrize(
    ("allowed", "total", "may_fail"),
    [
        (0, 10, 0),
        (3, 10, 3),
        ("10%", 10, 1),
        ("10%", 19, 1),
        ("10%", 9, 0),
        ("100%", 7, 7),
        ("all", 7, 7),
        ("0%", 7, 0),
    ],
)
def test_C6_a_policy_is_a_number_or_a_share_rounded_down(allowed: int | str, total: int, may_fail: int) -> None:
    assert MapSettings("list", allow_failures=allowed).allowed_failures(total) == may_fail


def test_C6_no_more_items_are_under_way_than_the_map_and_the_window_allow() -> None:
    assert MapSettings("list").most_open == OPEN_LIMIT
    assert MapSettings("list", max_concurrency=5).most_open == 5
    assert MapSettings("list", max_concurrency=ITEMS_LIMIT).most_open == OPEN_LIMIT


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("[]", []),
        ('[1, "a", {"b": 2}, null, [3]]', ["1", '"a"', '{"b": 2}', None, "[3]"]),
        ("null", None),
        ("3", None),
        ('{"a": [1]}', None),
        ('"[1]"', None),
        ("[" * 5_000, None),
        (None, None),
    ],
)
def test_C6_only_a_json_list_has_items_and_their_text_is_kept(text: str | None, items: Any) -> None:
    assert texts(items_in(text)) == items


def test_C6_a_list_in_the_payload_is_a_member_of_it_or_the_payload_itself() -> None:
    assert texts(items_in_payload('{"files": [1, 2]}', "files")) == ["1", "2"]
    assert texts(items_in_payload("[1, 2]", "")) == ["1", "2"]
    assert items_in_payload('{"files": 1}', "files") is None
    assert items_in_payload('{"files": [1]}', "other") is None
    assert items_in_payload("[1]", "files") is None
    assert items_in_payload(None, "") is None


def test_C6_lists_are_flattened_in_order_and_only_lists() -> None:
    assert texts(flattened(items_in("[[1, 2], null, [], [null, [3]]]") or [])) == ["1", "2", None, "[3]"]
    assert flattened(items_in("[[1], 2]") or []) is None


def test_C6_stored_settings_are_those_that_were_given() -> None:
    nodes = [
        {"name": "list"},
        {"name": "each", "map": {"over": "list", "maxConcurrency": 5, "allowFailures": "10%"}},
        {"name": "more", "after": ["list"], "map": {"overPayload": "files", "flatten": True}},
    ]
    _, each, more = checked_nodes(nodes, [None] * 3)

    assert each.map == MapSettings("list", None, 5, "10%")
    assert each.after == ("list",), "a map comes after the node that it goes over"
    assert (more.map, more.after) == (MapSettings(None, "files", flatten=True), ("list",))
    for node in (each, more):
        assert node.map is not None
        assert stored_map(json.dumps(node.map.document)) == node.map
    assert stored_map(None) is None


@pytest.mark.parametrize(
    ("mapped", "field"),
    [
        ({}, "nodes.1.map"),
        ({"over": "list", "overPayload": "a"}, "nodes.1.map"),
        ({"over": "list", "maxConcurrency": 0}, "nodes.1.map.maxConcurrency"),
        ({"over": "list", "maxConcurrency": ITEMS_LIMIT + 1}, "nodes.1.map.maxConcurrency"),
        ({"over": "list", "allowFailures": "101%"}, "nodes.1.map.allowFailures"),
        ({"over": "list", "allowFailures": "some"}, "nodes.1.map.allowFailures"),
        ({"over": "list", "allowFailures": -1}, "nodes.1.map.allowFailures"),
        ({"over": "list", "allowFailures": True}, "nodes.1.map.allowFailures"),
        ({"overPayload": "a" * 201}, "nodes.1.map.overPayload"),
        ({"over": "absent"}, "nodes.1.after"),
    ],
)
def test_C6_a_map_that_is_wrong_is_refused_at_its_field(mapped: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        checked_nodes([{"name": "list"}, {"name": "each", "map": mapped}], [None, None])

    assert [fault.field for fault in caught.value.errors] == [field]


def test_C6_a_map_has_no_payload_of_its_own_and_does_not_go_over_itself() -> None:
    with pytest.raises(Invalid, match="each item is a payload"):
        checked_nodes([{"name": "each", "map": {"overPayload": ""}}], ["{}"])
    with pytest.raises(Invalid, match="contain a cycle"):
        checked_nodes([{"name": "each", "map": {"over": "each"}}], [None])


def test_C6_a_rule_is_accepted_for_a_map_that_names_no_other_parents() -> None:
    nodes = [{"name": "list"}, {"name": "each", "map": {"over": "list"}, "triggerRule": "noneFailed"}]

    assert checked_nodes(nodes, [None, None])[1].rule.rest_name == "noneFailed"
