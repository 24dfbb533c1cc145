"""The list of requirements, the plugin that collects proofs, and the tool that tells what is missing."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
EXPECTED = {
    f"{seed}{n}"
    for seed, last in {"A": 16, "B": 20, "C": 66, "D": 17, "E": 13, "F": 13}.items()
    for n in range(1, last + 1)
}


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"loaded_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


tool = load(ROOT / "tools" / "requirements.py")
plugin = load(ROOT / "tests" / "requirements" / "plugin.py")


def test_every_id_of_the_seeds_has_one_statement():
    stated = [requirement for group in tool.groups() for requirement in group.ids]

    assert set(stated) == EXPECTED
    assert len(stated) == len(EXPECTED)
    assert all(statement.endswith(".") for group in tool.groups() for statement in group.ids.values())


@pytest.mark.parametrize(
    ("nodeid", "ids"),
    [
        ("tests/a.py::test_A9_a_running_one_is_replaced", ["A9"]),
        ("tests/a.py::test_A9_A10_X17_words[A1-B2]", ["A9", "A10", "X17"]),
        ("tests/a.py::TestClass::test_C48_bounds[1]", ["C48"]),
        ("tests/a.py::test_C1a_C1b_by_the_api", ["C1a", "C1b"]),
        ("tests/a.py::test_a_plain_sentence", []),
        ("tests/a.py::test_a_plain_sentence[tests/a.py::test_A9_x]", []),
        ("tests/a.py::test_utf8_A1_later_is_no_id", []),
    ],
)
def test_ids_are_read_from_the_beginning_of_a_name(nodeid: str, ids: list[str]):
    assert plugin.ids_of(nodeid) == ids


def test_the_worst_of_a_tests_phases_counts():
    proofs = plugin.Proofs()
    for outcome in ("passed", "failed", "passed"):
        proofs.note("tests/a.py::test_A1_x", outcome)
    proofs.note("tests/a.py::test_A2_x", "skipped")

    assert proofs.results == {"A1": {"tests/a.py::test_A1_x": "failed"}, "A2": {"tests/a.py::test_A2_x": "skipped"}}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    path = tmp_path / "results.json"
    path.write_text(
        json.dumps(
            {"A2": {"t::test_A2_x": "passed"}, "A4": {"t::p": "passed", "t::f": "failed"}, "A5": {"t": "skipped"}}
        )
    )
    return path


def test_unproven_requirements_are_printed_with_their_statement_and_a_count(
    results: Path, capsys: pytest.CaptureFixture[str]
):
    assert tool.main([], results) == 0

    printed = capsys.readouterr().out
    assert "A1 " in printed
    assert "A4 " in printed
    assert "failed: t::f" in printed
    assert "A5 " in printed
    assert "A2 " not in printed
    assert printed.endswith("1 of 145 requirements proven, 144 without a passing test\n")


def test_proven_requirements_are_printed_with_their_tests(results: Path, capsys: pytest.CaptureFixture[str]):
    assert tool.main(["--proven"], results) == 0

    printed = capsys.readouterr().out
    assert "t::test_A2_x" in printed
    assert "A4 " not in printed


def test_a_requirement_with_clauses_is_proven_when_each_clause_is():
    group = tool.Group("Kinds", {"C1": "Two kinds."}, {"C1": ["one-off", "periodic"]})

    assert not group.is_proven({"C1": {"t": "passed"}}, "C1")
    assert not group.is_proven({"C1a": {"t": "passed"}}, "C1")
    assert group.is_proven({"C1a": {"t": "passed"}, "C1b": {"t": "passed"}}, "C1")
    assert not group.is_proven({"C1a": {"t": "passed"}, "C1b": {"t": "passed", "u": "failed"}}, "C1")
    printed = tool.report([group], {"C1a": {"t": "passed"}}, proven=False)
    assert "    C1b   periodic" in printed


def test_a_required_id_without_a_passing_test_fails(results: Path):
    assert tool.main(["--require", "A2"], results) == 0
    assert tool.main(["--require", "A2,A4"], results) == 1
    assert tool.main(["--require", "A5"], results) == 1
    assert tool.main(["--require", "Z9"], results) == 1


def test_an_id_that_no_requirement_has_fails(tmp_path: Path):
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"C99": {"t": "passed"}}))

    assert tool.main([], path) == 1


def test_an_id_of_an_invariant_or_a_defect_is_no_requirement_and_no_fault(tmp_path: Path):
    path = tmp_path / "results.json"
    path.write_text(json.dumps({found: {"t": "passed"} for found in ("X17", "I3", "S5", "U6")}))

    assert tool.main([], path) == 0


def test_without_a_run_the_tool_says_how_to_make_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert tool.main([], tmp_path / "none.json") == 1
    assert "make test" in capsys.readouterr().err


def run_tests(place: Path, *arguments: str) -> Path:
    (place / "pytest.ini").write_text("[pytest]\ntestpaths = tests\n")
    (place / "tests").mkdir(exist_ok=True)
    (place / "conftest.py").write_text("pytest_plugins = ['proof_plugin']\n")
    (place / "proof_plugin.py").write_text((ROOT / "tests" / "requirements" / "plugin.py").read_text())
    (place / "tests" / "test_it.py").write_text(
        "import pytest\n"
        "def test_A1_holds(): pass\n"
        "def test_A2_fails(): assert False\n"
        "@pytest.mark.parametrize('n', [1, 2])\n"
        "def test_B1_B2_many(n): pass\n"
        "@pytest.mark.skip\n"
        "def test_B3_not_here(): pass\n"
        "def test_without_id(): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "xdist", *arguments]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    subprocess.run(command, cwd=place, env=alone, capture_output=True, timeout=60, check=False)
    return place / ".requirements.json"


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_full_run_writes_the_result_of_every_test_that_names_a_requirement(tmp_path: Path, workers: str):
    written = json.loads(run_tests(tmp_path, "-n", workers).read_text())

    assert written == {
        "A1": {"tests/test_it.py::test_A1_holds": "passed"},
        "A2": {"tests/test_it.py::test_A2_fails": "failed"},
        "B1": {f"tests/test_it.py::test_B1_B2_many[{n}]": "passed" for n in (1, 2)},
        "B2": {f"tests/test_it.py::test_B1_B2_many[{n}]": "passed" for n in (1, 2)},
        "B3": {"tests/test_it.py::test_B3_not_here": "skipped"},
    }


@pytest.mark.parametrize("selection", [("tests/test_it.py",), ("-k", "A1"), ("-x",)])
def test_a_run_of_a_part_takes_no_proof_away(tmp_path: Path, selection: tuple[str, ...]):
    assert not run_tests(tmp_path, *selection).exists()
