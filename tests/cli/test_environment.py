"""Flag, environment, file, default: in this order."""

import json
from pathlib import Path

import pytest
from harness import HoraiProcess
from terminal import Terminal

from horai import __version__
from horai.cli.flags import words
from horai.db.database_location import BadLocation, DatabaseLocation, choose_database, secret

OURS = {"HORAI_DATABASE_URL": "postgresql://ours", "DATABASE_URL": "postgresql://theirs", "HORAI_DATA_DIR": "/d"}


@pytest.mark.parametrize(
    ("url", "data_dir", "environ", "chosen"),
    [
        (None, None, {}, DatabaseLocation()),
        (None, None, {"HORAI_DATA_DIR": "/d"}, DatabaseLocation(data_dir=Path("/d"))),
        (None, None, {"DATABASE_URL": "postgresql://theirs"}, DatabaseLocation("postgresql://theirs")),
        (None, None, OURS, DatabaseLocation("postgresql://ours", Path("/d"))),
        ("postgresql://flag", None, OURS, DatabaseLocation("postgresql://flag")),
        (None, Path("/flag"), OURS, DatabaseLocation(data_dir=Path("/flag"))),
        ("postgresql://flag", Path("/flag"), OURS, DatabaseLocation("postgresql://flag", Path("/flag"))),
        (None, None, {"HORAI_DATABASE_URL": "", "DATABASE_URL": ""}, DatabaseLocation()),
    ],
)
def test_a_flag_beats_the_environment_and_ours_beats_theirs(
    url: str | None, data_dir: Path | None, environ: dict[str, str], chosen: DatabaseLocation
) -> None:
    assert choose_database(url, data_dir, environ) == chosen


def test_a_secret_may_stand_in_a_file(tmp_path: Path) -> None:
    kept = tmp_path / "url"
    kept.write_text("postgresql://filed\n")
    environ = {"HORAI_DATABASE_URL_FILE": str(kept), "DATABASE_URL": "postgresql://theirs"}

    assert choose_database(None, None, environ).url == "postgresql://filed"
    assert (
        choose_database(None, None, {**environ, "HORAI_DATABASE_URL": "postgresql://ours"}).url == "postgresql://ours"
    )


def test_a_secret_file_that_is_missing_or_empty_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")

    for name in ("absent", "empty"):
        with pytest.raises(BadLocation, match=f"HORAI_API_KEY_FILE: {tmp_path / name}"):
            secret("HORAI_API_KEY", {"HORAI_API_KEY_FILE": str(tmp_path / name)})


def test_a_list_is_written_with_commas_or_spaces() -> None:
    assert words(["10.0.0.0/8,192.168.0.0/16", " fd00::/8 ::1/128 "]) == [
        "10.0.0.0/8",
        "192.168.0.0/16",
        "fd00::/8",
        "::1/128",
    ]
    assert words(None) == []


def test_the_server_flag_beats_its_variable(alone: Terminal, server: HoraiProcess) -> None:
    assert alone("health", "--json").code == 1
    assert alone("health", "--json", "--server", server.base).json["version"] == __version__
    assert alone("health", HORAI_JSON="1", HORAI_SERVER=server.base).json["version"] == __version__


def test_a_variable_of_another_program_filters_no_list(horai: Terminal) -> None:
    strange = {"HORAI_STATE": "DEAD", "HORAI_QUEUE": "nowhere", "HORAI_TAG": "none", "HORAI_STATUS": "PAUSED"}
    assert horai("jobs", "create", "of-any-queue").code == 0

    for listed in (horai("jobs", "list", "--json", "--all"), horai("jobs", "list", "--json", "--all", **strange)):
        assert "of-any-queue" in [job["name"] for job in listed.json["items"]]


def test_a_hint_names_a_command_and_no_path(horai: Terminal) -> None:
    assert horai("jobs", "show", "no-such-job").err.splitlines()[-1] == "hint: `horai jobs list` lists them."
    assert horai("instances", "show", "999999999").err.splitlines()[-1] == "hint: `horai instances list` lists them."


@pytest.mark.parametrize("asked", [("--json",), ()])
def test_with_json_an_error_is_a_problem_object_on_stderr(horai: Terminal, asked: tuple[str, ...]) -> None:
    environment = {} if asked else {"HORAI_JSON": "1"}
    refused = horai("jobs", "show", "no-such-job", *asked, **environment)
    problem = json.loads(refused.err)

    assert (refused.code, refused.out) == (1, "")
    assert (problem["code"], problem["status"], problem["exitCode"]) == ("SCH_404_NOT_FOUND", 404, 1)
    assert problem["hint"] == "`horai jobs list` lists them."


def test_with_json_an_error_of_the_command_line_itself_is_a_problem_object(alone: Terminal) -> None:
    unreachable, misused = alone("jobs", "list", "--json"), alone("jobs", "list", "--json", "--limit", "0")

    assert (unreachable.code, json.loads(unreachable.err)["code"]) == (1, "CLI_FAILED")
    assert json.loads(unreachable.err)["hint"] == "start one with `horai up`, or set HORAI_SERVER"
    assert (misused.code, json.loads(misused.err)["code"]) == (2, "CLI_USAGE")


def test_a_death_at_the_first_attempt_shows_one_failure_and_no_retry(horai: Terminal) -> None:
    made = ("--url", "http://127.0.0.1:1/", "--max-retry", "0")
    assert horai("jobs", "create", "dies-at-once", *made).code == 0
    assert horai("jobs", "trigger", "dies-at-once", "--wait", "--timeout", "30s").code == 1

    (dead,) = horai("instances", "list", "--job", "dies-at-once", "--json").json["items"]
    shown = dict(
        line.split(maxsplit=1) for line in horai("instances", "show", dead["id"]).out.splitlines() if " " in line
    )

    assert (dead["state"], shown["attempt"].strip(), shown["failures"].strip()) == ("DEAD", "1", "1")
    assert "retries" not in shown
