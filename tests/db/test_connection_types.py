"""The types of connections: a mistake about the tenant is an error before any code runs."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_C2_a_connection_of_another_kind_is_a_type_error() -> None:
    """A tenant's read for a write, the platform's for a tenant, a tenant's for the platform, and one without a type."""
    command = [str(Path(sys.executable).parent / "basedpyright"), "tests/db/connection_types.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=170, check=False)

    assert done.returncode == 0, done.stdout
