"""The console's own tests as tests of ours: one function per test, so that each counts for its requirement.

Vitest runs a project once per session, for the first test that needs it; under xdist the workers share its report.
"""

import fcntl
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CONSOLE = ROOT / "console"
_NAME = re.compile(r'^\s*test\(\s*"((?:[^"\\]|\\.)*)"', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a test, and its output."""

    status: str
    said: str


Report = Mapping[str, Outcome]


def names_in(pattern: str) -> list[str]:
    """The names of all tests in the files of a pattern, as they are written: by this the tests are collected."""
    files = sorted(CONSOLE.glob(pattern))
    return [name for file in files for name in _NAME.findall(file.read_text())]


def function_name(name: str) -> str:
    """`C51 a refusal is 创建失败` → `test_C51_a_refusal_is_创建失败`."""
    return "test_" + re.sub(r"\W+", "_", name).strip("_")


def selected(names: Sequence[str], functions: Collection[str]) -> list[str]:
    """Return the names whose functions a run includes; an empty list, which stands for all, if it includes all or none."""
    found = [name for name in names if function_name(name) in functions]
    return found if len(found) < len(names) else []


Stage = Callable[[], AbstractContextManager[Mapping[str, str]]]


def run(project: str, place: Path, around: Stage = lambda: nullcontext({}), only: Collection[str] = ()) -> Report:
    """Return the report of a project. `only` has the names of the tests to run; all run without any.

    The first caller runs the tests, on a stage that lends its environment; the others wait.
    """
    report = place / f"vitest-{project}.json"
    with (place / f"vitest-{project}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not report.exists():
            with around() as environment:
                _run(project, report, environment, only)
    return _outcomes(json.loads(report.read_text()))


def _run(project: str, report: Path, environment: Mapping[str, str], only: Collection[str]) -> None:
    command = [
        sys.executable, str(ROOT / "tools" / "console.py"), "run", "vitest", "run", "--project", project,
        "--reporter", "json", "--outputFile", str(report),
    ]  # fmt: skip
    if only:
        command += ["--testNamePattern", "|".join(re.escape(name) for name in only)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if not report.exists():
        raise AssertionError(f"vitest wrote no report:\n{done.stdout}{done.stderr}")


def _outcomes(told: Any) -> Report:
    found = [test for file in told["testResults"] for test in file["assertionResults"]]
    broken = [file["message"] for file in told["testResults"] if file["message"]]
    outcomes = {test["title"]: Outcome(test["status"], "\n".join(test["failureMessages"])) for test in found}
    return outcomes | ({"": Outcome("failed", "\n".join(broken))} if broken else {})


def as_tests(names: list[str], check: Callable[[str], Callable[..., None]]) -> dict[str, Callable[..., None]]:
    """Functions for a module to take into its namespace. Two tests of one name would hide each other."""
    functions = {function_name(name): check(name) for name in names}
    if len(functions) != len(names):
        raise AssertionError("two tests of the console have the same name")
    return functions
