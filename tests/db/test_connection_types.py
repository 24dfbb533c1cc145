"""The types of connections: a mistake about the tenant is an error before any code runs."""

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import horai

PACKAGE = Path(horai.__file__).parent
TYPED = sorted(path for folder in ("db", "features", "operations") for path in (PACKAGE / folder).rglob("*.py"))
TYPES = {"TenantRead", "TenantWrite", "Platform", "AnyRead", "AnyWrite"}
BARE = re.compile(r"\b(?:Dedicated|Connection|PoolConnectionProxy)\b")
BARE_ALLOWED = {
    *(f"db/{name}.py" for name in ("dial", "patience", "pool", "route", "sessions", "watch")),
    "features/reconcile/sql_source.py",
}
"""The modules that open connections, before these have a type, and the one that reads a database of the user."""


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def test_C2a_a_connection_of_another_kind_is_a_type_error(tmp_path: Path) -> None:
    """A tenant's read for a write, the platform's for a tenant, a tenant's for the platform, and one without a type."""
    shutil.copy(Path(__file__).with_name("connection_types.py"), tmp_path)
    settings = {"extraPaths": [str(PACKAGE.parent)], "typeCheckingMode": "strict", "pythonVersion": "3.11"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    programs = Path(sys.executable).parent
    command = [str(programs / "basedpyright"), "-p", str(tmp_path), "--pythonpath", str(programs / "python")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=170, check=False)

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", [path for path in TYPED if name_of(path) not in BARE_ALLOWED], ids=name_of)
def test_C2a_no_function_takes_a_connection_without_its_type(path: Path) -> None:
    """The type says whether it serves one tenant or the platform, and whether it may write."""
    nodes = ast.walk(ast.parse(path.read_text()))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    given = [arg for each in functions for arg in (*each.args.posonlyargs, *each.args.args, *each.args.kwonlyargs)]
    types = [(arg.arg, "" if arg.annotation is None else ast.unparse(arg.annotation).strip("'")) for arg in given]

    assert not [name for name, type_ in types if BARE.search(type_) or (name == "connection" and type_ not in TYPES)]


def test_C2a_a_scope_gives_its_connections_by_read_and_write_only() -> None:
    takers = [name_of(path) for path in PACKAGE.rglob("*.py") if re.search(r"\bscope\.pool\b", path.read_text())]

    assert takers == []
