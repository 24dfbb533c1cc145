"""Run a command and fail if it changes the work tree.

`make test` runs through it: a test that writes into the checkout fails the run. The comparison is between
`git status --porcelain` before and after, so uncommitted changes of your own are not reported. Outside a git checkout
the command runs without the comparison. Needs only the standard library.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def status(root: Path) -> list[str] | None:
    """List the changed and untracked paths of a checkout; None outside a git checkout."""
    try:
        done = subprocess.run(
            ["git", "status", "--porcelain", "--untracked-files=all"],  # noqa: S607
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        return None
    return done.stdout.splitlines() if done.returncode == 0 else None


def run(root: Path, command: Sequence[str]) -> int:
    """Run the command in `root`; return its exit code, or 1 if it succeeded and changed the work tree."""
    before = status(root)
    code = subprocess.run(command, cwd=root, check=False).returncode  # noqa: S603
    after = status(root)
    if code != 0 or before is None or after is None or before == after:
        return code
    print("error: the run changed the work tree:", file=sys.stderr)
    for line in sorted(set(before) ^ set(after)):
        print(f"  {line}", file=sys.stderr)
    print("hint: a test must write into its temporary directory, and generated files must be ignored.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(run(ROOT, sys.argv[1:]))
