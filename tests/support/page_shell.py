"""Runs the Python of one page, block by block, in one event loop that goes on between them. A process of its own.

A line in: the code and where it stands. A line out: what went wrong, or nothing. `await` is allowed at the top, as in
`python -m asyncio`. A line that prints and says in a comment what it prints must print that; `…` is anything.
"""

import ast
import asyncio
import contextlib
import inspect
import io
import json
import os
import re
import sys
import traceback
from pathlib import Path
from typing import Any

_SAYS = re.compile(r"^\s*print\(.*\)  # (.+)$")
_REPLY = sys.stdout


async def run(code: str, place: str, names: dict[str, Any]) -> None:
    """Executes a block in the page's own names."""
    source = compile(code, place, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        result = eval(source, names)
        if inspect.iscoroutine(result):
            await result
    expected = [said[1] for said in map(_SAYS.match, code.splitlines()) if said]
    if expected:
        compare(expected, printed.getvalue().splitlines())


def compare(expected: list[str], printed: list[str]) -> None:
    patterns = [".*".join(map(re.escape, line.split("…"))) for line in expected]
    is_same = len(expected) == len(printed) and all(map(re.fullmatch, patterns, printed))
    assert is_same, f"the page says {expected}, the code {printed}"


async def serve() -> None:
    """Until stdin ends."""
    names: dict[str, Any] = {"__name__": "__main__"}
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        request = json.loads(line)
        try:
            await run(request["code"], request["place"], names)
            trouble = ""
        except Exception:
            trouble = traceback.format_exc()
        print(json.dumps(trouble), file=_REPLY, flush=True)


if __name__ == "__main__":
    sys.path[0] = str(Path.cwd())
    asyncio.run(serve(), debug=False)
    if testing := sys.modules.get("horai.testing.server"):
        testing.SERVER.stop()  # the end below is too sudden for its own way of going with the process
    os._exit(0)
