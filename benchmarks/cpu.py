"""CPU time of this process and of PostgreSQL with all its backends."""

import os
from contextlib import suppress

import psutil


def own() -> float:
    """Seconds this process has worked."""
    times = os.times()
    return times.user + times.system


def of_tree(pid: int | None) -> float:
    """Seconds a process and its children have worked, those that have ended included."""
    total = 0.0
    with suppress(psutil.NoSuchProcess):
        parent = psutil.Process(pid)
        ended = parent.cpu_times()
        total += ended.children_user + ended.children_system
        for process in (parent, *parent.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                total += times.user + times.system
    return total
