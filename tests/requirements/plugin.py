"""Writes `.requirements.json` at the end of a full run: requirement id → test → its result.

A test proves the requirements its name begins with: `test_A9_A10_…`, or one clause of a requirement: `test_C1a_…`.
Under xdist only the controller listens; it hears of every worker's tests. A run of a part of the tests writes nothing:
it would take proofs away.
"""

import json
import re
from pathlib import Path

import pytest

_IDS = re.compile(r"test_((?:[A-Z]\d+[a-z]?_)+)")
_FILE = ".requirements.json"
_WORSE = ["passed", "skipped", "failed"]
_SELECTIONS = ("keyword", "markexpr", "deselect", "ignore", "ignore_glob", "lf", "collectonly", "maxfail", "stepwise")


def ids_of(nodeid: str) -> list[str]:
    """Return the requirement ids at the beginning of a test's name; its parameters may hold any text."""
    named = _IDS.match(nodeid.partition("[")[0].rsplit("::", 1)[-1])
    return named[1].rstrip("_").split("_") if named else []


class Proofs:
    """The results of the tests with ids in their names."""

    def __init__(self) -> None:
        self.results: dict[str, dict[str, str]] = {}

    def note(self, nodeid: str, outcome: str) -> None:
        """A test has three phases; the worst counts."""
        for requirement in ids_of(nodeid):
            tests = self.results.setdefault(requirement, {})
            tests[nodeid] = max(tests.get(nodeid, "passed"), outcome, key=_WORSE.index)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.note(report.nodeid, report.outcome)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) and is_full(session.config):
            write(session.config.rootpath / _FILE, self.results)


def is_full(config: pytest.Config) -> bool:
    """Return true if the run includes every test."""
    is_selected = any(config.getoption(name, default=None) for name in _SELECTIONS)
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not is_selected


def write(path: Path, results: dict[str, dict[str, str]]) -> None:
    """In one move: a reader never sees half a file."""
    ordered = {requirement: dict(sorted(tests.items())) for requirement, tests in sorted(results.items())}
    fresh = path.with_suffix(".tmp")
    fresh.write_text(json.dumps(ordered, indent=1) + "\n")
    fresh.replace(path)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Proofs(), "requirement-proofs")
