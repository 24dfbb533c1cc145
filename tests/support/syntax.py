"""The syntax of Python files, parsed once for all tests that read it."""

import ast
from functools import cache
from pathlib import Path


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Return every node of a module."""
    return [*ast.walk(ast.parse(path.read_text()))]
