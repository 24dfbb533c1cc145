"""Install the packages of requirements-dev.lock into .venv, each checked against its hashes.

pip installs uv from the lock, and uv installs the rest: on two cores that takes 10 seconds, with pip alone more than a
minute. uv uses the index that pip is configured with. If uv fails, pip installs everything. Needs only the standard
library.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements-dev.lock"


def entry_of(lock: str, package: str) -> str:
    """Return the entry of a package in a lock, with its hashes."""
    found = re.search(rf"^{re.escape(package)}==.*(?:\n +--hash=.*)*", lock, re.MULTILINE)
    if found is None:
        raise SystemExit(f"error: {LOCK.name} has no entry for {package}\nhint: make lock")
    return found[0] + "\n"


def pip(python: Path, *arguments: str | Path) -> int:
    """Run pip and return its exit code."""
    command = [python, "-m", "pip", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, check=False).returncode  # noqa: S603


def index_of_pip(python: Path) -> str | None:
    """Return the URL of the index that pip's configuration names."""
    asked = [python, "-m", "pip", "config", "get", "global.index-url"]
    found = subprocess.run(asked, capture_output=True, text=True, check=False)  # noqa: S603
    return os.environ.get("PIP_INDEX_URL") or found.stdout.strip() or None


def install_with_uv(python: Path) -> bool:
    """Install uv with pip and the whole lock with uv; return whether both succeeded."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as only_uv:
        only_uv.write(entry_of(LOCK.read_text(), "uv"))
        only_uv.flush()
        if pip(python, "install", "--quiet", "--require-hashes", "-r", only_uv.name) != 0:
            return False
    index = index_of_pip(python)
    environment = os.environ if index is None else {"UV_DEFAULT_INDEX": index, **os.environ}
    command = [python.parent / "uv", "pip", "install", "--quiet", "--python", python, "--require-hashes", "-r", LOCK]
    return subprocess.run(command, env=environment, check=False).returncode == 0  # noqa: S603


def main() -> None:
    """Install into the environment of the given Python."""
    python = Path(sys.argv[1]).absolute()
    if not install_with_uv(python):
        print("uv could not install the packages; installing them with pip, which takes longer", file=sys.stderr)
        sys.exit(pip(python, "install", "--quiet", "--require-hashes", "-r", LOCK))


if __name__ == "__main__":
    main()
