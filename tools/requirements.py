"""The requirements that have no passing test, by the last full run of the tests.

`make requirements` prints them; `--proven` prints the others with their tests; `--require A2,A4` fails unless these
are proven. A requirement is proven by at least one passing test that carries its id, and none that fails. A requirement
whose sentence has several clauses lists them in requirements.toml (`clauses`): then each clause needs its own test,
named `C1a`, `C1b`, ….
"""

import argparse
import json
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import ascii_lowercase

ROOT = Path(__file__).resolve().parent.parent
STATEMENTS = ROOT / "tests" / "requirements" / "requirements.toml"
RESULTS = ROOT / ".requirements.json"

Results = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Group:
    """The requirements of one seed: id → statement, and id → clauses where the sentence has several."""

    title: str
    ids: Mapping[str, str]
    clauses: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])

    def parts(self, requirement: str) -> dict[str, str]:
        """Map the id of each part that needs a test of its own to its statement."""
        clauses = self.clauses.get(requirement, ())
        parts = {f"{requirement}{letter}": clause for letter, clause in zip(ascii_lowercase, clauses, strict=False)}
        return parts or {requirement: self.ids[requirement]}

    def is_proven(self, results: Results, requirement: str) -> bool:
        """Tell whether each part of the requirement has a passing test, and no test of any part fails."""
        outcomes = [results.get(part, {}).values() for part in self.parts(requirement)]
        return all("passed" in found and "failed" not in found for found in outcomes)


def groups(path: Path = STATEMENTS) -> list[Group]:
    """All requirements, seed by seed."""
    with path.open("rb") as file:
        return [Group(table["title"], table["ids"], table.get("clauses", {})) for table in tomllib.load(file).values()]


def report(all_groups: Sequence[Group], results: Results, *, proven: bool) -> list[str]:
    """The lines to print: the unproven ones with their statements, or the proven ones with their tests."""
    lines: list[str] = []
    total = count = 0
    for group in all_groups:
        total += len(group.ids)
        count += sum(group.is_proven(results, requirement) for requirement in group.ids)
        shown = [requirement for requirement in group.ids if group.is_proven(results, requirement) == proven]
        if shown:
            lines.append(f"{group.title}")
        for requirement in shown:
            lines.append(f"  {requirement:<4} {group.ids[requirement]}")
            for part, statement in group.parts(requirement).items():
                if part != requirement:
                    lines.append(f"    {part:<5} {statement}")
                outcomes = results.get(part, {})
                lines += [f"         {test}" if proven else f"         {outcomes[test]}: {test}" for test in outcomes]
    return [*lines, f"{count} of {total} requirements proven, {total - count} without a passing test"]


def unknown(all_groups: Sequence[Group], results: Results) -> list[str]:
    """Return the ids in test names that no requirement has.

    X ids resolve conflicts between seeds, I and S ids are invariants, and U ids are defects that users met.
    """
    known = {part for group in all_groups for requirement in group.ids for part in group.parts(requirement)}
    return [found for found in results if found not in known and found[0] not in "XISU"]


def main(arguments: Sequence[str] | None = None, results_file: Path = RESULTS) -> int:
    parser = argparse.ArgumentParser(prog="tools/requirements.py", description=__doc__.partition("\n")[0])
    parser.add_argument("--proven", action="store_true", help="the proven ones, with their tests")
    parser.add_argument("--require", metavar="IDS", default="", help="exit 1 unless all of these are proven: A2,A4")
    options = parser.parse_args(arguments)
    if not results_file.exists():
        print(f"error: {results_file.name} is missing\nhint: run all the tests first: make test", file=sys.stderr)
        return 1
    results: Results = json.loads(results_file.read_text())
    all_groups = groups()
    print("\n".join(report(all_groups, results, proven=options.proven)))
    if strangers := unknown(all_groups, results):
        print(f"error: no such requirement: {', '.join(strangers)}", file=sys.stderr)
        return 1
    required = [word.strip() for word in options.require.split(",") if word.strip()]
    proven = {word for group in all_groups for word in group.ids if group.is_proven(results, word)}
    if missing := [word for word in required if word not in proven]:
        print(f"error: not proven: {', '.join(missing)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
