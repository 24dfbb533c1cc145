"""The types of the SDK, as mypy and basedpyright see them: right calls pass, and each wrong call is an error."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "typed_examples"
BIN = Path(sys.executable).parent
MARK = re.compile(r"# error: ")
WITHIN = 280


def mypy(file: Path, cache: Path) -> set[int]:
    """Return the lines with errors."""
    found = _run(
        *(BIN / "mypy", "--config-file=", "--strict", "--no-error-summary", "--hide-error-context"),
        *("--no-color-output", "--follow-imports=silent", f"--cache-dir={cache}", file),
    )
    lines = (re.match(rf"{re.escape(file.name)}:(\d+): error: ", line) for line in found.splitlines())
    return {int(line[1]) for line in lines if line}


def basedpyright(file: Path, cache: Path) -> set[int]:
    """Return the lines with errors."""
    config = cache / "pyrightconfig.json"
    search = [str(HERE), str(HERE.parents[2] / "src")]
    config.write_text(
        json.dumps({"include": [str(file)], "typeCheckingMode": "standard", "extraPaths": search, "reportAny": False})
    )
    found = json.loads(_run(BIN / "basedpyright", "--outputjson", "--pythonpath", sys.executable, "-p", config))
    assert found["summary"]["filesAnalyzed"] >= 1
    return {
        fault["range"]["start"]["line"] + 1
        for fault in found["generalDiagnostics"]
        if fault["severity"] == "error" and Path(fault["file"]).name == file.name
    }


def _run(*command: object) -> str:
    environment = {**os.environ, "MYPYPATH": f"{HERE.parents[2] / 'src'}:{HERE}"}
    done = subprocess.run(
        list(map(str, command)), cwd=HERE, env=environment, capture_output=True, text=True, timeout=WITHIN, check=False
    )
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    return done.stdout


def expected(file: Path) -> set[int]:
    return {number for number, line in enumerate(file.read_text().splitlines(), 1) if MARK.search(line)}


@pytest.mark.early
@pytest.mark.timeout(600)
@pytest.mark.parametrize("check", [mypy, basedpyright], ids=["mypy", "basedpyright"])
def test_right_calls_are_accepted_and_each_wrong_call_is_refused(
    check: Callable[[Path, Path], set[int]], tmp_path: Path
) -> None:
    right, wrong = HERE / "right.py", HERE / "wrong.py"

    assert check(right, tmp_path) == set()
    assert check(wrong, tmp_path) == expected(wrong)
    assert len(expected(wrong)) == 50
