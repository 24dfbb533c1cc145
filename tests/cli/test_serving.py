"""What ends a service that does not end by itself."""

import subprocess
import sys

STUCK = """
import time
from datetime import timedelta
from horai.cli.serving import serve

async def blocked(stop, ready):
    ready("stuck")
    while True:
        time.sleep(0.01)

serve(blocked, until_stdin_ends=timedelta(milliseconds=200))
"""


def test_one_that_is_stuck_when_its_parent_is_gone_ends_itself() -> None:
    orphan = [sys.executable, "-c", STUCK]
    done = subprocess.run(orphan, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False)

    assert (done.returncode, done.stdout) == (1, "Horai is ready: stuck\n")
    assert "It did not stop in time." in done.stderr
