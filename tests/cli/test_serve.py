"""The line of a service that is ready, and what ends a service that does not end by itself."""

import os
import subprocess
import sys

READY = """
from horai.cli.serve import serve

async def brief(stop, ready):
    ready("brief")

serve(brief)
"""
STUCK = """
import time
from datetime import timedelta
from horai.cli.serve import serve

async def blocked(stop, ready):
    ready("stuck")
    while True:
        time.sleep(0.01)

serve(blocked, until_stdin_ends=timedelta(milliseconds=200))
"""


def test_the_ready_line_is_one_write_so_that_processes_that_share_stdout_never_mix_their_lines() -> None:
    reading, writing = os.pipe2(os.O_DIRECT)  # each read returns one write
    try:
        unbuffered = os.environ | {"PYTHONUNBUFFERED": "1"}  # as most containers have it
        subprocess.run([sys.executable, "-c", READY], stdout=writing, env=unbuffered, timeout=60, check=True)

        assert os.read(reading, 4096) == b"Horai is ready: brief\n"
    finally:
        os.close(reading)
        os.close(writing)


def test_one_that_is_stuck_when_its_parent_is_gone_ends_itself() -> None:
    orphan = [sys.executable, "-c", STUCK]
    done = subprocess.run(orphan, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False)

    assert (done.returncode, done.stdout) == (1, "Horai is ready: stuck\n")
    assert "The service did not stop in time." in done.stderr
