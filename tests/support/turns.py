"""Turns of the processes of one test run."""

import os
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

FIRST = "gw0"
LONGEST_WAIT = 120.0
"""Seconds. A first process that has died must not stop the others."""


@contextmanager
def first_of_run(config: pytest.Config) -> Generator[None]:
    """Let the first process of a run do this, and then all others at once."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    given: dict[str, object] | None = getattr(config, "workerinput", None)
    if run is None or given is None:  # a run in one process, or one that a test has started
        yield
        return
    is_done = Path(tempfile.gettempdir()) / f"horai-first-{run}"
    if given["workerid"] == FIRST:
        config.add_cleanup(lambda: is_done.unlink(missing_ok=True))  # no test begins before all have collected theirs
        try:
            yield
        finally:
            is_done.touch()
        return
    deadline = time.monotonic() + LONGEST_WAIT
    while not is_done.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    yield
