"""Search paths: which are valid, and the value of a payload at a path."""

import json
from typing import Any

import pytest

from horai.core.errors import Invalid
from horai.core.job import checked
from horai.core.search_paths import MOST_PATHS, names_in, values_at

PAYLOAD = """{"id": "a b", "number": 17.0, "large": 12345678901234567890, "sure": true, "none": null, "list": [{"x": 1}, "é"],
 "order": {"id": "7", "deep": {}}, "twice": 1e3}"""


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("id", "a b"),
        ("number", "17.0"),
        ("large", "12345678901234567890"),
        ("twice", "1e3"),
        ("sure", "true"),
        ("none", None),
        ("missing", None),
        ("order.id", "7"),
        ("order", None),
        ("order.deep", None),
        ("list", None),
        ("list.0.x", "1"),
        ("list.-1", "é"),
        ("list.2", None),
        ("list.-3", None),
        ("list.first", None),
        ("id.x", None),
    ],
)
def test_C42_the_value_at_a_path_is_that_of_a_filter_of_plain_payloads(path: str, value: str | None) -> None:
    assert values_at(PAYLOAD, [path]) == {path: value}


@pytest.mark.parametrize("payload", ["1", '"x"', "[]", "null", "true"])
def test_C42_a_payload_that_is_no_object_has_no_value_at_a_name(payload: str) -> None:
    assert values_at(payload, ["id"]) == {"id": None}


def test_C42_a_path_has_one_to_ten_names() -> None:
    assert names_in(" a . b ") == ("a", "b")
    assert names_in(".".join("abcdefghij")) == tuple("abcdefghij")
    assert names_in(".".join("abcdefghijk")) is None
    assert [names_in(path) for path in ("", ".", "a.", "a..b")] == [None] * 4


def job(**fields: Any) -> dict[str, Any]:
    return {"name": "j", "target": {"type": "worker"}, **fields}


def test_C42_an_encrypted_job_has_up_to_eight_different_search_paths() -> None:
    paths = [f"p{n}" for n in range(MOST_PATHS)]
    assert checked(job(encrypted=True, searchPaths=paths)).search_paths == tuple(paths)
    assert checked(job()).search_paths == ()


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"searchPaths": ["a"]}, "only accepted for an encrypted job"),
        ({"searchPaths": ["a"], "encrypted": False}, "only accepted for an encrypted job"),
        ({"searchPaths": ["a", "a"], "encrypted": True}, "are not up to 8 different paths"),
        ({"searchPaths": [f"p{n}" for n in range(9)], "encrypted": True}, "are not up to 8 different paths"),
        ({"searchPaths": ["a..b"], "encrypted": True}, "is not a path of member names"),
        ({"searchPaths": ["a. b"], "encrypted": True}, "is not a path of member names"),
        ({"searchPaths": ["x" * 201], "encrypted": True}, "is not a path of member names"),
        ({"searchPaths": ["a\n"], "encrypted": True}, "is not a path of member names"),
    ],
)
def test_C42_other_search_paths_are_refused(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(Invalid) as refused:
        checked(job(**fields))
    assert [(fault.field, told in fault.message) for fault in refused.value.errors] == [("searchPaths", True)]
    assert json.dumps(str(refused.value.hint))
