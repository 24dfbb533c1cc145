"""`horai source jsonl`, what it parks, and `horai instances history`."""

import json
from pathlib import Path

import pytest
from harness import HoraiProcess
from terminal import Terminal


@pytest.fixture
def horai_here(horai: Terminal, server: HoraiProcess) -> Terminal:
    """A terminal that knows the server and its database."""
    return Terminal(
        **{k: v for k, v in horai.environment.items() if k == "HORAI_SERVER"}, HORAI_DATA_DIR=str(server.data_dir)
    )


def lines(*documents: object) -> str:
    return "".join(json.dumps(document) + "\n" for document in documents)


def at(hour: int) -> str:
    return f"2100-01-01T{hour:02}:00:00Z"


def test_a_file_of_changes_takes_effect_once_and_what_cannot_is_parked(horai_here: Terminal, tmp_path: Path) -> None:
    horai_here("jobs", "create", "publish-by-file", "--handler", "publish")
    changes = [{"key": "a", "executeTime": at(hour), "version": hour} for hour in (1, 3, 2)]
    file = tmp_path / "changes.jsonl"
    file.write_text(lines(*changes) + "\n" + lines({"key": "b", "job": "later", "executeTime": at(1)}) + "no JSON\n")

    first = horai_here("source", "jsonl", str(file), "--job", "publish-by-file")

    assert first.code == 1
    assert first.err.splitlines()[-3:] == [
        "1 IGNORED, 1 INSERTED, 2 PARKED, 1 UPDATED.",
        "error: 2 lines were parked.",
        "hint: `horai source parked` shows why.",
    ]
    again = horai_here("source", "jsonl", str(file), "--job", "publish-by-file")
    assert "2 PARKED, 3 REPEATED." in again.err

    parked = horai_here("source", "parked", "--source", "jsonl:changes.jsonl", "--json").json["items"]
    assert [one["subject"] for one in parked] == ["line 5", "line 6"]
    assert "names 'later'" in parked[0]["reason"]
    assert "no JSON" in horai_here("source", "parked", "--json").out

    horai_here("jobs", "create", "later", "--handler", "later")
    retried = horai_here("source", "retry", "--source", "jsonl:changes.jsonl")
    assert retried.err.splitlines()[-1] == "jsonl:changes.jsonl: 1 INSERTED, 1 PARKED."
    left = horai_here("source", "parked", "--source", "jsonl:changes.jsonl", "--json").json["items"]
    assert [one["subject"] for one in left] == ["line 6"]
    assert "line 6" in horai_here("source", "parked").out

    assert horai_here("source", "discard", left[0]["id"]).err == "Discarded 1.\n"
    assert horai_here("source", "discard", left[0]["id"]).code == 1
    assert horai_here("source", "parked", "--source", "jsonl:changes.jsonl").err == "None.\n"


def test_changes_may_come_over_stdin(horai_here: Terminal) -> None:
    horai_here("jobs", "create", "by-stdin", "--handler", "x")

    done = horai_here("source", "jsonl", "-", stdin=lines({"job": "by-stdin", "key": "a", "executeTime": at(1)}))

    assert (done.code, done.out, done.err) == (0, "", "1 INSERTED.\n")


def test_a_file_that_is_not_there_is_bad_usage(alone: Terminal) -> None:
    assert alone("source", "jsonl", "/nowhere").failed_with(
        2, "error: There is no file '/nowhere'.", "hint: Name one, or - for stdin."
    )


def test_discarding_nothing_is_bad_usage(alone: Terminal) -> None:
    assert alone("source", "discard").failed_with(
        2, "error: Which events?", "hint: Give their ids: `horai source parked` lists them."
    )


def test_a_source_does_not_start_a_database_of_its_own(alone: Terminal, tmp_path: Path) -> None:
    done = alone("source", "nats", "--stream", "s", "--subject", "a", "--data-dir", str(tmp_path / "none"))

    assert done.code == 2
    assert done.err.startswith("error: No database is named, and no `horai up` runs in ")
    assert "set HORAI_DATABASE_URL, or start `horai up`" in done.err


def test_A16_the_history_of_a_key_is_one_list(horai: Terminal) -> None:
    horai("jobs", "create", "told", "--handler", "told")
    for hour in range(1, 4):
        horai("instances", "put", "told", "article/42", "--at", at(hour), "--version", str(hour))
    horai("instances", "cancel", "--job", "told", "--key", "article/42")

    told = horai("instances", "history", "told", "article/42")

    words = [line.rstrip().split(maxsplit=3)[2:] for line in told.out.splitlines()[1:]]
    assert [word[0] for word in words] == ["INSERTED", "RESCHEDULED", "RESCHEDULED", "CANCELLED"]
    assert words[0][1] == "executeTime 2100-01-01T01:00:00Z"
    assert words[2][1] == "2100-01-01T02:00:00Z → 2100-01-01T03:00:00Z, version 3"
    assert words[3][1] == "reason USER"
    assert (
        len(horai("instances", "history", "told", "article/42", "--all", "--limit", "2", "--json").json["items"]) == 4
    )
    assert horai("instances", "history", "told", "nobody").code == 1
