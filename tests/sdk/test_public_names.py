"""The public names of `horai`, for people and for type checkers, and the cost of importing them."""

import ast
import subprocess
import sys
from pathlib import Path

import horai


def test_every_public_name_is_there_and_the_stub_says_the_same():
    stub = ast.parse(Path(horai.__file__).with_suffix(".pyi").read_text())
    named = {alias.name for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert named == set(vars(horai)["_HOMES"])
    assert all(getattr(horai, name).__name__ == name for name in named)


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(horai, "Celery")


def test_importing_horai_imports_neither_the_api_nor_the_engine():
    """A web service that only enqueues must not pay for FastAPI's start or for aiohttp."""
    code = "import sys, horai; horai.Horai; print(*sorted(m for m in ('fastapi', 'aiohttp', 'uvicorn', 'pydantic') if m in sys.modules))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == ""
