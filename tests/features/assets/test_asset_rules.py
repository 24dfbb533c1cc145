"""The pure rules of assets: circles, payloads, and the fields of a document."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from horai.core.assets import AssetUses, assets_of, read_assets
from horai.core.job import JobStatus
from horai.core.job_patch import amended
from horai.core.validation import Validation
from horai.features.assets.rules import (
    METADATA_IN_PAYLOAD,
    MOST_IN_PAYLOAD,
    AssetEdge,
    PendingUpdate,
    circle_through,
    may_carry,
    payload_with,
)

AT = datetime(2026, 11, 15, tzinfo=UTC)


def edges(*pairs: str) -> list[AssetEdge]:
    return [AssetEdge(*pair.split(">")) for pair in pairs]


def update(number: int, asset: str = "sales", metadata: str | None = None) -> PendingUpdate:
    return PendingUpdate(number, asset, AT, "load", 70 + number, None, None, None, None, metadata)


def faults(**document: Any) -> list[str]:
    found = Validation()
    read_assets(document, found)
    return [f"{fault.field}: {fault.message}" for fault in found.errors]


def test_a_circle_is_the_shortest_way_back() -> None:
    linked = edges("a>:x", ":x>b", "b>:y", ":y>c", "c>:z", ":z>a", ":y>a")
    assert circle_through("a", linked) == ("a", ":x", "b", ":y", "a")
    assert circle_through("c", linked) == ("c", ":z", "a", ":x", "b", ":y", "c")


def test_a_job_that_waits_for_what_it_produces_is_a_circle() -> None:
    assert circle_through("a", edges("a>:x", ":x>a")) == ("a", ":x", "a")


def test_a_circle_elsewhere_is_not_that_of_a_job() -> None:
    assert circle_through("a", edges("a>:x", ":x>b", "b>:y", ":y>b")) is None
    assert circle_through("a", []) is None


def test_a_payload_names_updates_by_asset_oldest_first() -> None:
    made = json.loads(payload_with('{"own": 1}', [update(2), update(1), update(3, "stock", '{"rows": 3}')]))
    assert made["own"] == 1
    assert [each["id"] for each in made["assets"]["sales"]] == ["1", "2"]
    assert made["assets"]["stock"][0]["metadata"] == {"rows": 3}
    assert made["assets"]["stock"][0]["instance"] == "73"


def test_a_payload_names_the_newest_updates_of_an_asset_only() -> None:
    made = json.loads(payload_with(None, [update(number) for number in range(MOST_IN_PAYLOAD + 50)]))
    ids = [int(each["id"]) for each in made["assets"]["sales"]]
    assert ids == list(range(50, MOST_IN_PAYLOAD + 50))


def test_metadata_beyond_the_limit_is_left_out_of_the_oldest_updates() -> None:
    large = json.dumps("x" * 4_000)
    made = json.loads(payload_with(None, [update(number, metadata=large) for number in range(20)]))
    kept = [each["metadata"] is not None for each in made["assets"]["sales"]]
    assert kept == [False] * (20 - METADATA_IN_PAYLOAD // 4_002) + [True] * (METADATA_IN_PAYLOAD // 4_002)


@pytest.mark.parametrize(
    ("payload", "carries"), [(None, True), ("null", True), ("{}", True), ("3", False), ("[]", False)]
)
def test_only_an_object_carries_updates(payload: str | None, carries: bool) -> None:
    assert may_carry(payload) is carries


def test_a_document_names_assets_in_three_forms() -> None:
    assert assets_of({"produces": ["a", "a", "b"]}) == AssetUses(("a", "b"))
    assert assets_of({"when": ["a", "b"]}) == AssetUses((), ("a", "b"))
    assert assets_of({"when": {"any": ["a"]}}) == AssetUses((), ("a",), is_any=True)
    assert assets_of({"when": {"all": ["销售.日报", "s3://lake/sales"]}}).waits == ("销售.日报", "s3://lake/sales")


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        ({"when": []}, "when: are not 1 to 20 assets"),
        ({"produces": [f"a{number}" for number in range(21)]}, "produces: are not 1 to 20 assets"),
        ({"produces": ["two words"]}, "produces: 'two words' does not match"),
        ({"when": {"some": ["a"]}}, "when: is not a list of assets, and not an object with one list: all or any"),
        ({"when": {"any": ["a"], "all": ["b"]}}, "when: is not a list of assets"),
        ({"when": ["a"], "delay": "1h"}, "when: stands beside delay"),
        ({"when": ["a"], "overlap": "replace"}, "overlap: 'replace' is not one of allow, queue"),
        ({"when": ["a"], "encrypted": True}, "when: is not accepted for an encrypted job"),
        ({"produces": ["a"], "encrypted": True}, "produces: is not accepted for an encrypted job"),
    ],
)
def test_a_wrong_document_is_refused_at_its_field(document: dict[str, Any], fault: str) -> None:
    (told,) = faults(**document)
    assert told.startswith(fault) or (fault.split(":", maxsplit=1)[0] == told.split(":")[0] and "beside" in fault)


def test_a_change_of_the_title_keeps_the_overlap_of_a_job_that_waits() -> None:
    stored = {"name": "report", "when": ["a"], "overlap": "queue"}
    assert amended(stored, JobStatus.ACTIVE, {"title": "Report"})["overlap"] == "queue"
    assert "overlap" not in amended(stored, JobStatus.ACTIVE, {"when": None})
