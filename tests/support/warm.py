"""A `horai` that has its imports behind it: each request is answered by a fork, a process with its own streams and end.

Importing takes most of a second, a fork takes a few milliseconds. Run as a script; `terminal.Terminal` speaks to it,
one JSON line each way.
"""

import json
import os
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any

from horai.cli.main import COMMANDS, run

LATER = ("up_processes", "worker_service", "check_report", *COMMANDS)
for module in ("typer._adapters", "horai.cli.database", *(f"horai.cli.commands.{name}" for name in LATER)):
    import_module(module)


def become(request: dict[str, Any], program: Callable[[], object] = run) -> int:
    """The exit code of one command, in this process: of `horai`, or of another program."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        os.dup2(os.open(request[name], os.O_RDONLY if name == "stdin" else os.O_WRONLY | os.O_APPEND), descriptor)
    os.chdir(request["directory"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = ["horai", *request["arguments"]]
    try:
        program()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    return 1


def serve() -> None:
    """Until stdin ends."""
    while line := os.read(0, 1_000_000):
        child = os.fork()
        if child == 0:
            code = become(json.loads(line))
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        _, status = os.waitpid(child, 0)
        os.write(1, f"{os.waitstatus_to_exitcode(status)}\n".encode())


if __name__ == "__main__":
    serve()
