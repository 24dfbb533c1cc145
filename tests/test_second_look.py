"""`make test` runs failed tests again, alone, and fails if one of them fails again."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tools import second_look

ROOT = Path(__file__).parents[1]


def _pytest(place: Path) -> second_look.Pytest:
    def run(arguments: Sequence[str]) -> int:
        command = [sys.executable, "-m", "pytest", f"--rootdir={place}", *arguments]
        alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # plugins take most of the time of such a run
        return subprocess.run(command, cwd=place, env=alone, check=False).returncode

    return run


def _tests(place: Path, *bodies: str) -> Path:
    """Write tests. `runs(n)` is true in the n-th run of the file and later ones."""
    counter = (
        "from pathlib import Path\nseen = Path(__file__).with_name('seen')\n"
        "seen.write_text(seen.read_text() + 'x' if seen.exists() else 'x')\n"
        "def runs(n): return len(seen.read_text()) >= n\n"
    )
    tests = "".join(f"def test_{number}(): assert {body}\n" for number, body in enumerate(bodies))
    (place / "test_it.py").write_text(counter + tests)
    return place


def test_a_run_without_failures_is_one_run(tmp_path: Path) -> None:
    assert second_look.run(_tests(tmp_path, "True"), ["-q"], _pytest(tmp_path)) == 0
    assert (tmp_path / "seen").read_text() == "x"


def test_a_test_that_fails_once_and_passes_alone_is_reported_and_does_not_fail_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert second_look.run(_tests(tmp_path, "True", "runs(2)"), ["-q"], _pytest(tmp_path)) == 0

    said = capsys.readouterr().out
    assert "UNSTABLE" in said
    assert "test_it.py::test_1" in said
    assert "test_it.py::test_0" not in said
    assert (tmp_path / "seen").read_text() == "xxx"


@pytest.mark.parametrize("body", ["False", "runs(3)"])
def test_a_test_that_fails_again_alone_fails_the_run(tmp_path: Path, body: str) -> None:
    assert second_look.run(_tests(tmp_path, body), ["-q"], _pytest(tmp_path)) == second_look.TESTS_FAILED


def test_failures_of_an_earlier_run_are_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / "test_old.py").write_text("def test_old(): assert False\n")
    _tests(tmp_path, "runs(2)")
    assert _pytest(tmp_path)(["-q", "test_old.py"]) == second_look.TESTS_FAILED

    assert second_look.run(tmp_path, ["-q", "test_it.py"], _pytest(tmp_path)) == 0


def test_many_failures_fail_at_once(tmp_path: Path) -> None:
    many = ["runs(2)"] * (second_look.MOST + 1)

    assert second_look.run(_tests(tmp_path, *many), ["-q"], _pytest(tmp_path)) == second_look.TESTS_FAILED
    assert (tmp_path / "seen").read_text() == "x"


def test_a_run_that_could_not_start_is_not_repeated(tmp_path: Path) -> None:
    assert second_look.run(_tests(tmp_path, "runs(2)"), ["--no-such-option"], _pytest(tmp_path)) == 4


def test_make_tests_takes_the_second_look() -> None:
    planned = subprocess.run(["make", "-n", "tests"], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert "tools/second_look.py" in planned
