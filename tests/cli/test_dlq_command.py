"""`horai dlq`, against a server with dead letters that no target would take."""

import itertools
from typing import Any

import pytest
from terminal import Terminal

TARGET = ("--url", "http://127.0.0.1:9/nobody", "--max-retry", "0")

_serial = itertools.count(1)


@pytest.fixture
def dead(horai: Terminal) -> Any:
    """A job of the test's own with two dead letters; its name, and these, oldest first."""
    job = f"dead-{next(_serial)}"
    assert horai("jobs", "create", job, *TARGET).code == 0
    for _ in range(2):
        horai("jobs", "trigger", job, "--wait")
    found = horai("dlq", "list", "--job", job, "--json").json["items"]
    return job, found[::-1]


def test_dead_letters_are_listed_shown_and_counted_by_fault(horai: Terminal, dead: Any) -> None:
    job, (first, second) = dead

    listed = horai("dlq", "list", "--job", job, "--status", "new", "--tag", "transient_error", "--all")
    lines = [line.split() for line in listed.out.splitlines()]
    assert lines[0] == ["ID", "JOB", "KEY", "STATUS", "ERROR", "TAGS", "FINGERPRINT", "DIED"]
    assert [line[:5] for line in lines[1:]] == [
        [letter["id"], job, "NEW", "CONNECTION", "transient_error"] for letter in (second, first)
    ]
    shown = horai("dlq", "show", first["id"]).out
    assert f"instance:{first['instanceId']}" not in shown
    assert first["instanceId"] in shown
    assert first["fingerprint"] in shown
    faults = horai("dlq", "faults", "--job", job).out.splitlines()
    assert faults[1].split()[:4] == [first["fingerprint"], job, "CONNECTION", "2"]
    assert horai("dlq", "faults", "--job", job, "--json").json["letters"] == 2


def test_one_letter_is_replayed_by_its_id(horai: Terminal, dead: Any) -> None:
    _, (letter, _) = dead

    first, again = horai("dlq", "replay", letter["id"]), horai("dlq", "replay", letter["id"])

    made = horai("dlq", "show", letter["id"], "--json").json["replayedAs"]
    assert first.err == f"Dead letter {letter['id']} was replayed as instance {made}.\n"
    assert again.err == f"Dead letter {letter['id']} was replayed before as instance {made}.\n"
    assert (first.code, first.out, again.code) == (0, "", 0)


def test_letters_are_replayed_by_filter(horai: Terminal, dead: Any) -> None:
    job, _ = dead
    only = ("--job", job, "--tag", "transient_error", "--error-code", "CONNECTION", "--limit", "10", "--rate", "100/h")

    tried = horai("dlq", "replay", *only, "--dry-run")
    assert [line.split() for line in tried.out.splitlines()] == [["matched", "2"]]
    done = horai("dlq", "replay", *only)
    assert [line.split() for line in done.out.splitlines()][:2] == [["matched", "2"], ["replayed", "2"]]
    again = horai("dlq", "replay", *only, "--to", "2020-01-01T00:00:00Z", "--yes", "--json").json
    assert (again["matched"], again["replayed"]) == (0, 0)


def test_a_letter_is_discarded_with_a_reason(horai: Terminal, dead: Any) -> None:
    _, (letter, _) = dead

    gone = horai("dlq", "discard", letter["id"], "--reason", "nobody wants it")

    assert (gone.code, gone.err) == (0, f"Discarded dead letter {letter['id']}.\n")
    shown = horai("dlq", "show", letter["id"])
    assert "nobody wants it" in shown.out
    refused = horai("dlq", "replay", letter["id"])
    assert refused.code == 1
    assert refused.err.startswith(f"error: The dead letter {letter['id']} is DISCARDED")


def test_replaying_all_dead_letters_needs_a_confirmation(alone: Terminal) -> None:
    assert alone("dlq", "replay").failed_with(
        2,
        "error: Replaying every dead letter needs confirmation, and stdin is not a terminal.",
        "hint: Add a filter, or --yes.",
    )
    assert alone("dlq", "replay", "5", "--tag", "x").failed_with(
        2,
        "error: A letter's id cannot be combined with flags that select letters.",
        "hint: Give the id alone, or flags alone.",
    )


def test_a_letter_that_is_not_there_is_told(horai: Terminal) -> None:
    assert horai("dlq", "show", "999999").err.startswith("error: There is no dead letter 999999.\nhint: ")
