"""The valid fields of a queue's document."""

from datetime import timedelta
from typing import Any

import pytest

from horai.core.errors import Invalid
from horai.core.job import Priority
from horai.core.queue import QueueSettings, Rate, checked, checked_name, parse_rate


@pytest.mark.parametrize(
    ("written", "rate", "shown"),
    [
        ("100/s", Rate(100, timedelta(seconds=1)), "100/s"),
        ("30/m", Rate(30, timedelta(minutes=1)), "30/m"),
        ("1000/h", Rate(1000, timedelta(hours=1)), "1000/h"),
        ("1000000/s", Rate(1_000_000, timedelta(seconds=1)), "1000000/s"),
        (5, Rate(5, timedelta(seconds=1)), "5/s"),
    ],
)
def test_a_rate_is_a_count_in_a_period(written: str | int, rate: Rate, shown: str) -> None:
    assert parse_rate(written) == rate
    assert str(rate) == shown


@pytest.mark.parametrize(
    "written",
    [
        "",
        "100",
        "100/d",
        "0/s",
        "1000001/h",
        "-1/s",
        "1.5/s",
        "1 /s",
        "٣/s",
        "1/s\n",
        "9" * 5_000 + "/s",
        0,
        -1,
        10**30,
    ],
)
def test_anything_else_is_no_rate(written: str | int) -> None:
    with pytest.raises(ValueError, match=r"rate|between"):
        parse_rate(written)


@pytest.mark.parametrize(("rate", "burst"), [("5/s", 1.0), ("30/m", 1.0), ("100/s", 10.0), ("6000/m", 10.0)])
def test_an_idle_bucket_holds_what_a_tenth_of_a_second_brings_and_at_least_one(rate: str, burst: float) -> None:
    assert parse_rate(rate).burst == pytest.approx(burst)


def test_the_wait_for_a_token_is_what_is_missing_at_the_rate_and_never_too_short() -> None:
    rate = parse_rate("3/s")

    assert rate.wait(1.0) == rate.wait(7.5) == timedelta(0)
    assert timedelta(seconds=1 / 3) < rate.wait(0.0) < timedelta(seconds=1 / 3, milliseconds=1)
    for tenth in range(10):
        assert tenth / 10 + rate.wait(tenth / 10).total_seconds() * rate.per_second >= 1


def test_an_empty_document_is_a_queue_that_lets_all_through() -> None:
    assert checked({}) == QueueSettings()
    assert checked(dict.fromkeys(("priority", "maxConcurrency", "rate", "paused"))) == QueueSettings()
    assert QueueSettings().priority_in_force is Priority.normal
    assert QueueSettings(priority=Priority.core).priority_in_force is Priority.core


def test_a_whole_document_says_all_four() -> None:
    document = {"priority": "core", "maxConcurrency": 5, "rate": "10/s", "paused": True}

    assert checked(document) == QueueSettings(Priority.core, 5, Rate(10, timedelta(seconds=1)), True)


@pytest.mark.parametrize(
    ("document", "field", "hint"),
    [
        ({"priority": "urgent"}, "priority", None),
        ({"maxConcurrency": 0}, "maxConcurrency", "1 to 10000"),
        ({"maxConcurrency": 10_001}, "maxConcurrency", "null for no limit"),
        ({"rate": "fast"}, "rate", '"100/s"'),
        ({"rate": 0}, "rate", '"30/m"'),
    ],
)
def test_a_wrong_field_is_named_with_what_to_write(document: dict[str, Any], field: str, hint: str | None) -> None:
    with pytest.raises(Invalid) as raised:
        checked(document)

    assert [error.field for error in raised.value.errors] == [field]
    assert (hint or "") in (raised.value.hint or "")


def test_every_wrong_field_is_named_at_once() -> None:
    with pytest.raises(Invalid) as raised:
        checked({"priority": "urgent", "maxConcurrency": -1, "rate": "fast"})

    assert [error.field for error in raised.value.errors] == ["priority", "maxConcurrency", "rate"]


@pytest.mark.parametrize("name", ["", "-a", "a b", "a/b", "a" * 65, "ä", "a\x00"])
def test_a_name_that_no_queue_has_is_refused(name: str) -> None:
    with pytest.raises(Invalid, match="name"):
        checked_name(name)
