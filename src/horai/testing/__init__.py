"""Tests of jobs: a real PostgreSQL, a virtual time, no waiting (docs/guides/testing.md).

harness       Harness: puts an application on a database of its own, in a time that stands still
virtual_time  VirtualTime: moves that time; what ran; crashes and failures on request
sync          the same for tests without an event loop
journal       Fired: one attempt, and what came of it
workplace     the product's stages, called step by step
clients       what the application is connected with meanwhile
mishaps       crashes and failures, and how they come about
jobs, clock   what the stages know of jobs and of the time
store         what is asked of the database (virtual_time.sql, outlook.sql)
server        the PostgreSQL of the process, and a database for each test (reuse.sql)
plugin        the fixtures for pytest

The names are imported when they are first used: pytest loads the plugin at every start.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "Fired": "journal",
    "Harness": "harness",
    "NotEnded": "clients",
    "Stuck": "workplace",
    "SyncTime": "sync",
    "VirtualTime": "virtual_time",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'horai.testing' has no attribute {name!r}")
    return getattr(import_module(f"horai.testing.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
