"""Run the tests, and run those that failed twice more, alone.

The tests share two cores with each other, a browser and the type checker. A limit of five seconds, which a user's machine
keeps, can pass there for no fault of the code. A test that fails beside the others and passes alone twice is reported as
unstable, and its first failure stays in the output: look for the cause. It does not fail the run (decision 0080). More
than `MOST` failures are no accident: they fail at once. Needs only the standard library and pytest.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FAILED = Path(".pytest_cache") / "v" / "cache" / "lastfailed"
TESTS_FAILED = 1
"""The exit code of pytest for failed tests; all others are errors of the run itself."""
MOST = 8
ROUNDS = 2

Pytest = Callable[[Sequence[str]], int]
"""Runs pytest with arguments and returns its exit code."""


def failed_tests(root: Path) -> list[str]:
    """List the tests that failed in the last run, by the cache of pytest."""
    try:
        found: object = json.loads((root / FAILED).read_text())
    except (OSError, ValueError):
        return []
    return sorted(str(name) for name in found) if isinstance(found, dict) else []


def run(root: Path, arguments: Sequence[str], pytest: Pytest) -> int:
    """Run the tests; return 0 if each passed, or passed `ROUNDS` times alone after it had failed."""
    (root / FAILED).unlink(missing_ok=True)  # a run of some tests keeps the failures of the others
    code = pytest(arguments)
    failed = failed_tests(root) if code == TESTS_FAILED else []
    if not 0 < len(failed) <= MOST:
        return code
    print(f"\n{len(failed)} failed beside the others; run again alone:", *failed, sep="\n  ", flush=True)
    for _ in range(ROUNDS):
        if pytest(["-q", *failed]) != 0:
            print("error: failed again alone, so the run fails", file=sys.stderr)
            return code
    print(f"UNSTABLE, passed {ROUNDS} times alone; find the cause of the failure above:", *failed, sep="\n  ")
    return 0


def main() -> int:
    """Run the pytest command of the arguments."""
    command, arguments = sys.argv[1], sys.argv[2:]
    return run(ROOT, arguments, lambda more: subprocess.run([command, *more], cwd=ROOT, check=False).returncode)  # noqa: S603


if __name__ == "__main__":
    sys.exit(main())
