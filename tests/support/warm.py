"""The process that `forked.ForkedPopen` forks from: it has done the imports of every command and of isolated functions.

The imports take one to two seconds of CPU time per process, a fork takes milliseconds. Run as a script with the
descriptor of a socket, which brings one packet per process. Each process has its own streams and its own end, and is
a child of the process that asked for it.
"""

import gc
import json
import os
import random
import runpy
import socket
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

from horai.cli.main import COMMANDS, run
from horai.engine.executors import dial
from horai.features.registry import FEATURES

CONSTANTS = "HORAI_TEST_CONSTANTS"
"""A variable with a JSON object of other values for constants of the product, such as `horai.db.watch.WATCH_EVERY`."""
LATER = ("up_processes", "worker_service", "check_report", *COMMANDS)
PARTS = ("horai.cli.database", "horai.node", "horai.sdk.worker", "horai.embedded", "horai.isolation.service")
EVENTS = ("horai.features.events.nats", "horai.features.events.intake", "receiver")
for module in ("typer._adapters", *PARTS, *(f"horai.cli.commands.{name}" for name in LATER), *EVENTS):
    import_module(module)
dial._tls_with_http2()  # each node would parse the certificates of the system
for feature in FEATURES:
    for name in (*feature.routes, feature.stage, feature.executor):
        if name is not None:
            feature.module(name)


def serve(line: socket.socket) -> list[str]:
    """Fork a process per packet, and answer with its id. Return the command line, in each new process."""
    while True:
        packet, descriptors, _, _ = socket.recv_fds(line, 1_000_000, 16)
        if not packet:
            sys.exit()
        reading, writing = os.pipe()
        if (middle := os.fork()) == 0:
            if process := os.fork():
                os.write(writing, str(process).encode())
                os._exit(0)  # its child becomes one of the process that asked, which adopts it
            for each in (line.detach(), reading, writing):
                os.close(each)
            return become(json.loads(packet), descriptors)
        os.close(writing)
        os.waitpid(middle, 0)
        line.send(os.read(reading, 32))
        for each in (reading, *descriptors):
            os.close(each)


def become(request: dict[str, Any], given: list[int]) -> list[str]:
    """Take on all that the request says of the process, and return its command line."""
    wanted: list[int] = request["descriptors"]
    above = max(*wanted, *given) + 1
    for offset, each in enumerate(given):
        os.dup2(each, above + offset)
        os.close(each)
    for offset, each in enumerate(wanted):
        os.dup2(above + offset, each)
        os.close(above + offset)
    if request["is_session"]:
        os.setsid()
    os.chdir(request["directory"])
    os.environ.clear()
    os.environ.update(request["environment"])
    for constant, value in json.loads(os.environ.pop(CONSTANTS, "{}")).items():
        owner, _, own_name = constant.rpartition(".")
        setattr(import_module(owner), own_name, value)
    random.seed()  # the copies must not draw the same jitter
    return request["command"]


def execute(command: list[str]) -> None:
    """Run `python -c …`, `python FILE` or `horai …` as a new interpreter would."""
    python_path = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if command[0] == sys.executable and command[1] == "-c":
        sys.path[:1] = ["", *python_path]
        sys.argv = ["-c", *command[3:]]
        exec(command[2], {"__name__": "__main__"})
        return
    if command[0] == sys.executable:
        sys.path[:1] = [str(Path(command[1]).parent), *python_path]
        sys.argv = command[1:]
        runpy.run_path(command[1], run_name="__main__")
        return
    sys.path[:1] = [str(Path(command[0]).parent), *python_path]
    sys.argv = command
    code = 1
    try:
        run()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # to take an interpreter apart takes longer than most commands


if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    execute(serve(socket.socket(fileno=int(sys.argv[1]))))
