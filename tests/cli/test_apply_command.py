"""`horai apply`, `horai definitions`, `horai schema`, and `history` and `restore` of jobs."""

import shlex
from pathlib import Path

import pytest
from pages import blocks
from terminal import Terminal

from horai.cli import yaml_text
from horai.cli.errors import CommandFailed

FILE = """\
kind: job
name: applied
title: 日报
cron: 0 9 * * *
payload: {n: 1.10, big: 1.50e3, yes: yes, day: 2026-01-01, text: "1e5"}
---
kind: queue
name: applied-queue
rate: 5/s
"""


def test_a_file_is_previewed_applied_and_exported_to_the_letter(horai: Terminal, tmp_path: Path) -> None:
    file, again = tmp_path / "jobs.yaml", tmp_path / "again.yaml"
    file.write_text(FILE, "utf-8")

    previewed = horai("apply", "-f", str(file), "--dry-run")
    applied = horai("apply", "-f", str(file))
    exported = horai("definitions", "applied", "applied-queue")
    again.write_text(exported.out, "utf-8")
    repeated = horai("apply", "-f", str(again))

    assert (previewed.code, "2 created" in previewed.err, "dry run" in previewed.err) == (0, True, True)
    assert (applied.code, "2 created" in applied.err) == (0, True)
    assert "n: 1.10" in exported.out
    assert "big: 1.50e3" in exported.out
    assert "text: '1e5'" in exported.out
    assert "day: '2026-01-01'" in exported.out
    assert "title: 日报" in exported.out
    assert (repeated.code, "2 unchanged" in repeated.err) == (0, True), repeated.err


def test_a_wrong_field_is_reported_at_its_line_and_the_exit_code_is_1(horai: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("kind: job\nname: bad-one\n\nretry:\n  maxRetry: -1\n  base: 5x\ncron: 0 99 * * *\n")

    refused = horai("apply", "-f", str(file))

    assert refused.code == 1
    for line, field in ((5, "retry.maxRetry"), (6, "retry.base"), (7, "cron")):
        assert f"{file}:{line}: {field}: " in refused.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: job\nname: [x\n", "x.yaml:3: "),
        ("kind: job\nname: a\nname: b\n", "x.yaml:3: the field name occurs twice"),
        ("- 1\n", "x.yaml:1: a document is a mapping"),
        ("a: &a [1]\nb: !python/object:os.system {}\n", "x.yaml:2: the tag"),
        ("a: &a {b: 1}\nc:\n  <<: *a\n", "x.yaml:3: the name of a field is a text"),
        ("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
            f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
        ), "the document has too many values"),
    ],
)  # fmt: skip
def test_yaml_that_cannot_be_read_names_its_line(text: str, said: str) -> None:
    with pytest.raises(CommandFailed, match=said.replace("[", r"\[")):
        yaml_text.load(text, "x.yaml")


@pytest.mark.parametrize("text", ['{"a":1.10,"b":-0,"c":1e5,"d":"1e5","e":"yes","f":null,"g":"","h":[],"i":{}}', '{"a":"x\\ny\\n"}',
                                  '{"a":"- b: c","b":"0o17","c":" #x","d":"2026-01-01","e":123456789012345678901234567890}'])  # fmt: skip
def test_json_comes_back_from_yaml_to_the_letter(text: str) -> None:
    (document,) = yaml_text.load(yaml_text.dump([text]), "x.yaml")

    assert document.text == text


def test_the_history_of_a_job_is_listed_and_an_old_version_restored(horai: Terminal, tmp_path: Path) -> None:
    horai("jobs", "create", "restored", "--title", "one", "--cron", "0 9 * * *")
    file = tmp_path / "two.yaml"
    file.write_text("kind: job\nname: restored\ntitle: two\n")
    horai("apply", "-f", str(file))

    listed = horai("jobs", "history", "restored").out
    shown = horai("jobs", "restore", "restored", "1", "--dry-run")
    restored = horai("jobs", "restore", "restored", "1")

    assert [line.split()[0] for line in listed.splitlines()[1:]] == ["2", "1"]
    assert "title" in listed
    assert "cli" in listed
    assert ("two" in shown.out, "dry run" in shown.err) == (True, True)
    assert "it has version 3 now" in restored.err
    assert horai("jobs", "show", "restored", "--json").json["title"] == "one"
    now = horai("jobs", "restore", "restored", "3")
    assert (now.code, "has version 3 now" in now.err) == (2, True)


def test_the_schema_is_printed_without_a_server(alone: Terminal) -> None:
    assert alone("schema").json["title"] == "Definition"


def test_the_commands_of_the_guide_definitions_md_show_what_it_shows(horai: Terminal) -> None:
    found = [block for block in blocks("docs/guides/definitions.md") if block.language == "console"]
    for command in [command for block in found for command in block.commands]:
        words = shlex.split(command.text.rpartition("|")[2])
        text = "" if "|" not in command.text else shlex.split(command.text)[1].replace("\\n", "\n")

        done = horai(*words[1:], stdin=text)

        assert done.code == 0, done.err
        shown = [line.split() for line in done.out.splitlines()]
        for line in command.shown:
            before, _, after = line.partition("…")
            parts = before.split(), after.split()
            assert any(
                row[: len(parts[0])] == parts[0] and row[len(row) - len(parts[1]) :] == parts[1] for row in shown
            ), (line, done.out)
