"""A test harness for jobs: a real PostgreSQL, a virtual time, no waiting (docs/guides/testing.md).

harness       Harness: gives an application its own database and a virtual time
virtual_time  VirtualTime: moves that time, lists attempts, plans crashes and failures
sync          SyncTime: the same without an event loop
journal       Fired: one attempt and its outcome
workplace     the product's stages, called step by step
clients       the clients of the application during a test
mishaps       planned crashes and failures
crashes       crash_everywhere: a durable function that is killed at every boundary
jobs, clock   the job cache and the clock of the stages
store         queries of the harness (virtual_time.sql, outlook.sql)
server        the PostgreSQL of the process, and a database for each test (reuse.sql)
plugin        the fixtures for pytest

Names are imported when they are first used: pytest loads the plugin at every start.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "CrashMattered": "crashes",
    "CrashReport": "crashes",
    "Fired": "journal",
    "Harness": "harness",
    "NotEnded": "clients",
    "Stuck": "workplace",
    "SyncTime": "sync",
    "VirtualTime": "virtual_time",
    "crash_everywhere": "crashes",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'horai.testing' has no attribute {name!r}")
    return getattr(import_module(f"horai.testing.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
