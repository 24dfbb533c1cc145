"""Start `horai up`, `horai node`, `horai worker`, or a script that uses Horai, by a fork of a process that has imported it.

The imports take one to two seconds of CPU time per process, a fork takes milliseconds. Run as a script; `forked.Forked`
sends it one JSON line per process. It writes the exit code of a process to the file `exits`/<pid>.
"""

import json
import os
import random
import runpy
import signal
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from warm import become, run

for module in ("horai.node", "horai.sdk.worker", "horai.embedded"):
    import_module(module)


def program_of(request: dict[str, Any]) -> Callable[[], object]:
    """Return `horai`, or the script that the request names."""
    return partial(runpy.run_path, request["script"], run_name="__main__") if "script" in request else run


def serve(exits: Path) -> None:
    """Fork a process per line of stdin, answer with its id, and end with stdin."""

    def reap(*_: object) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            fresh = exits / f"{pid}.new"
            fresh.write_text(str(os.waitstatus_to_exitcode(status)))
            fresh.rename(exits / str(pid))

    signal.signal(signal.SIGCHLD, reap)
    while line := os.read(0, 1_000_000):
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            random.seed()  # the copies must not draw the same jitter
            sys.path[:0] = [path for path in request["environment"].get("PYTHONPATH", "").split(":") if path]
            os._exit(become(request, program_of(request)))
        os.write(1, f"{child}\n".encode())


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
