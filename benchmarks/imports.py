"""Imports: what it costs a process to import an application, beside the packages that every application of asyncio needs.

Nothing of this needs a database. The time is that of the processor, of a new process with compiled modules; the best of some, because
other programs use this machine too.
"""

import os
import resource
import subprocess
import sys

from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting

BARE = "import asyncio, msgspec"
SDK = "from horai import Horai"
RUNTIME = "import horai.sdk.runtime"
HELP = "import sys; sys.argv = ['horai', '--help']; from horai.cli.main import run; run()"
PASSES = 10
ALLOWED = 3.0
"""The import of the SDK, in parts of that of asyncio and msgspec."""
ALLOWED_MODULES = 290


async def sample(sitting: Sitting) -> Sample:
    """Milliseconds of a process for each import, without those of Python itself, and the modules that it loads."""
    passes = 2 if sitting.size.quick else PASSES
    python = _milliseconds("pass", passes)
    return {
        "import asyncio and msgspec": _milliseconds(BARE, passes) - python,
        "import of the SDK": _milliseconds(SDK, passes) - python,
        "import of its other half": _milliseconds(RUNTIME, passes) - python,
        "horai --help": _milliseconds(HELP, passes) - python,
        "modules of the SDK": _modules(SDK),
        "modules of its other half": _modules(RUNTIME),
    }


def _milliseconds(code: str, passes: int) -> float:
    _run(code)  # compiles what is not compiled yet
    return min(_one_pass(code) for _ in range(passes)) * 1e3


def _one_pass(code: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _run(code)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _modules(code: str) -> float:
    return float(_run(f"{code}\nimport sys; print(len(sys.modules))"))


def _run(code: str) -> str:
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run([sys.executable, "-c", code], env=compiled, capture_output=True, text=True, check=True).stdout


SCENARIO = Scenario(
    name="imports",
    about="the import of an application, beside that of asyncio and msgspec",
    sample=sample,
    lines=(
        Line("import of the SDK", "ms", per="import asyncio and msgspec", at_most=ALLOWED),
        Line("import of the SDK", "ms"),
        Line("import asyncio and msgspec", "ms"),
        Line("import of its other half", "ms"),
        Line("horai --help", "ms"),
        Line("modules of the SDK", "modules", at_most=ALLOWED_MODULES),
        Line("modules of its other half", "modules"),
    ),
)
