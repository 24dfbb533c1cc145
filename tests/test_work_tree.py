"""`make test` fails when a run changes the checkout."""

import subprocess
import sys
from pathlib import Path

import pytest
from tools import work_tree

ROOT = Path(__file__).parents[1]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "mine.txt").write_text("an uncommitted change of the developer")
    return tmp_path


def _writing(name: str) -> list[str]:
    return [sys.executable, "-c", f"open({name!r}, 'w').close()"]


def test_a_run_that_leaves_a_file_fails_and_names_the_file(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert work_tree.run(checkout, _writing("left.bin")) == 1
    assert "left.bin" in capsys.readouterr().err


def test_uncommitted_changes_from_before_the_run_are_not_reported(checkout: Path) -> None:
    assert work_tree.run(checkout, [sys.executable, "-c", ""]) == 0


def test_the_exit_code_of_a_failing_run_is_kept(checkout: Path) -> None:
    assert work_tree.run(checkout, [sys.executable, "-c", "raise SystemExit(3)"]) == 3


def test_the_comparison_is_skipped_outside_a_git_checkout(tmp_path: Path) -> None:
    assert work_tree.run(tmp_path, _writing("anything")) == 0


def test_make_test_runs_through_the_comparison() -> None:
    planned = subprocess.run(["make", "-n", "test"], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert "tools/work_tree.py" in planned
