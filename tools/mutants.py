"""Removes the important guards one by one; each loss must turn its tests red.

The mutants are data: tools/mutants.toml. Each is applied to a copy of src, and the tests it names run against that
copy. One that no test notices has survived, and so has its bug: exit 1. A text that does not occur exactly once, a test
that does not exist, and a mutant that the interpreter or PostgreSQL refuses mean that the list is stale: exit 2.
"""

import argparse
import compileall
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
LIST = ROOT / "tools" / "mutants.toml"
AT_ONCE = 2
PATIENCE = 120
PORTION = 20
"""Tests of one process while no mutant is in: their time is limited to three times `PATIENCE`, in seconds."""
PLUGINS = ("-p", "pytest_timeout", "-p", "no:cacheprovider")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
_REFUSED = re.compile(
    r"PostgresSyntaxError|IndeterminateDatatypeError|UndefinedParameterError|UndefinedColumnError|UndefinedFunctionError"
    r"|the server expects \d+ arguments?|\b(?:SyntaxError|IndentationError|NameError|UnboundLocalError|ImportError): .*"
)


class Stale(Exception):
    """The list no longer fits the code."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change for the worse, and the tests that must notice it."""

    id: str
    requirement: str
    file: str
    text: str
    replacement: str
    tests: tuple[str, ...]
    single_role: bool = False
    """The statement has lost its tenant: the tests fail without row-level security, and pass with it."""


@dataclass(frozen=True, slots=True)
class Run:
    """The result of a run of tests."""

    code: int
    failed: frozenset[str]
    output: str

    def is_red(self, test: str) -> bool:
        """Return true if the test, or one of its parametrisations, failed."""
        return any(found == test or found.startswith(f"{test}[") for found in self.failed)


def mutants(path: Path = LIST) -> list[Mutant]:
    """The list."""
    with path.open("rb") as file:
        found = [Mutant(**{**entry, "tests": tuple(entry["tests"])}) for entry in tomllib.load(file)["mutant"]]
    if len({mutant.id for mutant in found}) < len(found):
        raise Stale("two mutants have the same id")
    if whole := [mutant.id for mutant in found for test in mutant.tests if "::" not in test]:
        raise Stale(f"{whole[0]} names a whole file: name the tests that must notice it")
    return found


def mutated(text: str, mutant: Mutant) -> str:
    """`text` with the mutant in it; `Stale` unless its place is found exactly once."""
    times = text.count(mutant.text)
    if times != 1:
        raise Stale(f"{mutant.id}: the text occurs {times} times in {mutant.file}, not once")
    return text.replace(mutant.text, mutant.replacement)


def copy_source(place: Path) -> Path:
    """A copy of src that can be changed, with its bytecode: only a file that is changed is compiled again."""
    return Path(shutil.copytree(SOURCE, place / "src"))


def run_tests(source: Path, tests: Iterable[str], *, single_role: bool = False) -> Run:
    """Run the tests against the package in `source`, with row-level security unless `single_role`."""
    environment = {
        **os.environ,
        "HORAI_TEST_SINGLE_ROLE": "1" if single_role else "",
        "PYTHONPATH": str(source),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    where = _run([sys.executable, "-c", "import horai; print(horai.__file__)"], environment)
    if not Path(where.stdout.strip()).is_relative_to(source):
        raise Stale(f"the copy in {source} does not win over {where.stdout.strip() or where.stderr}")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rfE",
        "--tb=short",
        f"--timeout={PATIENCE // 2}",
        *PLUGINS,
        *tests,
    ]
    done = _run(command, environment)
    return Run(done.returncode, frozenset(_FAILED.findall(done.stdout)), done.stdout + done.stderr)


def _run(command: Sequence[str], environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(  # noqa: S603
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE * 3, check=False
        )
    except subprocess.TimeoutExpired:
        raise Stale(f"did not end within {PATIENCE * 3} s: {' '.join(command[-3:])}") from None


def end_leftovers(source: Path) -> None:
    """Kill the processes that a mutant has left behind: some mutants remove the guard that would end them."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("PYTHONPATH") == str(source):
                process.kill()


def try_out(mutant: Mutant) -> list[str]:
    """Return the tests that did not notice the mutant, and the failures that row-level security should have prevented."""
    with tempfile.TemporaryDirectory(prefix="horai-mutant-") as place:
        source = copy_source(Path(place))
        file = source / "horai" / mutant.file
        file.write_text(mutated(file.read_text(), mutant))
        try:
            run = run_tests(source, mutant.tests, single_role=mutant.single_role)
            behind_wall = run_tests(source, mutant.tests) if mutant.single_role else None
        finally:
            end_leftovers(source)
    if run.code not in (0, 1):
        raise Stale(f"{mutant.id}: the tests did not run\n{run.output[-2000:]}")
    if refused := _REFUSED.search(run.output):
        raise Stale(f"{mutant.id}: the mutant does not run at all, so its tests prove nothing: {refused.group()}")
    unnoticed = [f"not noticed by {test}" for test in mutant.tests if not run.is_red(test)]
    if behind_wall is not None and behind_wall.code != 0:
        unnoticed.append(f"row-level security does not hide it: {', '.join(sorted(behind_wall.failed))}")
    return unnoticed


def check_unchanged(pool: ThreadPoolExecutor, tests: Iterable[str]) -> None:
    """Tests that fail without any mutant prove nothing."""
    named = sorted(set(tests))
    portions = [named[first : first + PORTION] for first in range(0, len(named), PORTION)]
    with tempfile.TemporaryDirectory(prefix="horai-mutant-") as place:
        source = copy_source(Path(place))
        for run in pool.map(lambda portion: run_tests(source, portion), portions):
            if run.code != 0:
                raise Stale(f"tests fail, or are missing, without any mutant:\n{run.output[-3000:]}")


def choose(ids: Sequence[str]) -> list[Mutant]:
    """The mutants with these ids, all without any; `Stale` if one is unknown or has lost its place."""
    listed = mutants()
    if unknown := set(ids) - {mutant.id for mutant in listed}:
        raise Stale(f"no mutant is called {', '.join(sorted(unknown))}")
    chosen = [mutant for mutant in listed if not ids or mutant.id in ids]
    for mutant in chosen:
        mutated((SOURCE / "horai" / mutant.file).read_text(), mutant)
    return chosen


def verdict(mutant: Mutant) -> tuple[str, Sequence[str]]:
    """The word for the mutant's line, and what to say below it."""
    try:
        blind = try_out(mutant)
    except Stale as stale:
        return "STALE", [str(stale)]
    return ("SURVIVED" if blind else "killed"), blind


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tools/mutants.py", description=__doc__.partition("\n")[0])
    parser.add_argument("only", nargs="*", help="ids of mutants; all without any")
    options = parser.parse_args(arguments)
    started = time.monotonic()
    words: Counter[str] = Counter()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            chosen = choose(options.only)
            compileall.compile_dir(SOURCE, quiet=1)
            check_unchanged(pool, (test for mutant in chosen for test in mutant.tests))
        except Stale as stale:
            print(f"error: {stale}\nhint: bring tools/mutants.toml in line with the code", file=sys.stderr)
            return 2
        for mutant, (word, details) in zip(chosen, pool.map(verdict, chosen), strict=True):
            words[word] += 1
            print(f"{word:<8} {mutant.requirement:<4} {mutant.id}", flush=True)
            for detail in details:
                print(f"           {detail}")
    print(f"{words['killed']} of {len(chosen)} mutants killed in {time.monotonic() - started:.0f} s")
    return 2 if words["STALE"] else 1 if words["SURVIVED"] else 0


if __name__ == "__main__":
    sys.exit(main())
