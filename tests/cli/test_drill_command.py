"""`horai drill` on clusters that it starts itself: real servers, nodes, kills, and the reports that it writes."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from forked import HORAI
from sizes import IS_LONG
from terminal import Terminal, clean_environment

from horai.cli.drills.scene import LETTERS

SMALL = ("--rate", "40", "--calm", "2s", "--lease-ttl", "3s")
BUSY = ("--max-rto", "60s")
"""A machine that runs other tests at the same time may be slow."""
HALF_AN_HOUR, A_MINUTE = 1800, 60
"""The recovery time and point of seed 002 §12, in seconds."""
pytestmark = [pytest.mark.timeout(240), pytest.mark.early]


@pytest.fixture
def place(short_place: Path) -> Path:
    """The directory in which drills make their own."""
    made = short_place / f"drills-{os.urandom(3).hex()}"
    made.mkdir(mode=0o755)
    return made


def drilled(place: Path, reports: Path, *words: str, code: int = 0) -> tuple[Any, Any]:
    """Run a drill; return its report, and the ending of the command. It leaves nothing but the report."""
    ended = Terminal(TMPDIR=str(place))("drill", *words, "--directory", str(reports), "--json")
    assert ended.code == code, ended.err
    assert list(place.iterdir()) == []
    return ended.json, ended


def stored(reports: Path, kind: str) -> Any:
    """The one report in the directory: the page has the figures of the JSON."""
    (page,) = reports.glob(f"*-{kind}.md")
    told = json.loads(page.with_suffix(".json").read_text())
    assert f"| {told['writesPausedSeconds']:.2f} s |" in page.read_text()
    assert all(
        f"| {each['promise']} | {each['limit']} | {each['measured']} |" in page.read_text() for each in told["promises"]
    )
    return told


def test_C37_a_drill_of_the_primary_measures_the_recovery_time_and_point(place: Path, tmp_path: Path) -> None:
    told, ended = drilled(place, tmp_path, "primary", *SMALL, *BUSY)

    print(f"RTO {told['rtoSeconds']} s, RPO {told['rpoSeconds']} s, {told['acknowledged']} acknowledged")
    assert told == stored(tmp_path, "primary")
    assert 0 < told["rtoSeconds"] <= HALF_AN_HOUR
    assert 0 <= told["rpoSeconds"] <= A_MINUTE
    assert (told["replication"], told["rpoSeconds"], told["lost"], told["repeatedOutsideFlight"]) == (
        "synchronous",
        0,
        0,
        0,
    )
    assert (told["deadLetters"], told["deadLettersLost"]) == (LETTERS, 0)
    assert told["acknowledged"] >= 2 * 2 * 40, "before the failure and after the recovery"
    assert told["calls"] >= told["acknowledged"]
    assert told["kept"]
    assert [step["step"] for step in told["steps"]][:3] == [
        "the primary was killed (kill -9 of the postmaster)",
        "the standby was promoted",
        "writes are acknowledged again",
    ]
    assert "the standby was promoted" in ended.err, "the steps are told while the drill runs"


def test_F9_dead_letters_survive_the_loss_of_the_zone_of_the_primary(place: Path, tmp_path: Path) -> None:
    told, _ = drilled(place, tmp_path, "zone", *SMALL, *BUSY)

    assert told == stored(tmp_path, "zone")
    assert told["steps"][0]["step"] == "the primary and the node one were killed (kill -9)"
    assert (told["deadLetters"], told["deadLettersLost"]) == (LETTERS, 0)
    assert (told["lost"], told["repeatedOutsideFlight"], told["rpoSeconds"]) == (0, 0, 0)


def test_a_drill_of_the_standby_measures_the_pause_and_lets_it_return(place: Path, tmp_path: Path) -> None:
    told, _ = drilled(place, tmp_path, "standby", *SMALL, *BUSY)

    assert told == stored(tmp_path, "standby")
    assert (told["lost"], told["repeatedOutsideFlight"], told["rpoSeconds"]) == (0, 0, 0)
    assert "the standby is back and has caught up" in [step["step"] for step in told["steps"]]


def test_a_drill_that_breaks_a_promise_exits_with_1_and_its_report_says_which(place: Path, tmp_path: Path) -> None:
    told, ended = drilled(place, tmp_path, "node", *SMALL, "--max-rto", "1ms", code=1)

    assert told == stored(tmp_path, "node")
    assert [each["promise"] for each in told["promises"] if not each["kept"]] == ["recovery time (RTO)"]
    (page,) = tmp_path.glob("*.md")
    problem = json.loads(ended.err.splitlines()[-1])
    assert problem["detail"] == "The drill broke 1 promises: recovery time (RTO)."
    assert problem["hint"] == f"See {page}."
    assert "**A promise was broken.**" in page.read_text()
    assert told["lost"] == told["repeatedOutsideFlight"] == 0
    assert told["repeatedInFlight"] > 0, "calls were in flight on the node that was killed"
    assert told["workDelayedSeconds"] > 1, "the work of the dead node waits for the end of its lease"


@pytest.mark.skipif(not IS_LONG, reason="a drill like that of the primary: in the long form only")
def test_a_drill_without_synchronous_replication_says_so(place: Path, tmp_path: Path) -> None:
    told, _ = drilled(place, tmp_path, "primary", "--asynchronous", *SMALL, *BUSY)

    assert told["replication"] == "asynchronous"
    assert told["rpoSeconds"] <= A_MINUTE
    assert "acknowledged instances lost" not in [each["promise"] for each in told["promises"]]


def test_an_interrupted_drill_stops_its_servers_and_removes_their_directory(place: Path, tmp_path: Path) -> None:
    environment = clean_environment() | {"TMPDIR": str(place)}
    command = [HORAI, "drill", "primary", *SMALL, "--directory", str(tmp_path)]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("starting 2 nodes"):
                break
        (home,) = place.iterdir()
        process.send_signal(signal.SIGTERM)
        rest = process.stderr.read()

    assert process.returncode == 1
    assert "error: The drill was interrupted; its servers are stopped." in rest
    assert not home.exists()
    assert servers_of(home) == []
    assert list(tmp_path.iterdir()) == []


def servers_of(home: Path) -> list[str]:
    """The command lines of processes that name the directory."""
    done = subprocess.run(["ps", "-ww", "-eo", "command"], capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if str(home) in line]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("node", "--max-rto", "soon"), "error: Invalid value for '--max-rto'"),
        (("rack",), "error: No such command 'rack'."),
    ],
)
def test_a_drill_that_is_not_understood_starts_nothing(words: tuple[str, ...], line: str, place: Path) -> None:
    ended = Terminal(TMPDIR=str(place))("drill", *words)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(line)
    assert list(place.iterdir()) == []
