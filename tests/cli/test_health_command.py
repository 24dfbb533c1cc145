"""`horai health`, against a server of its own: the work of other tests may degrade the shared one."""

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from forked import HORAI, ForkedPopen
from harness import HoraiProcess
from terminal import Terminal


@pytest.fixture(scope="module")
def quiet(short_place: Path) -> Iterator[Terminal]:
    """A terminal that knows a server without any work."""
    running = HoraiProcess(short_place / "quiet").start()
    yield Terminal(HORAI_SERVER=running.base)
    assert running.stop() == 0


def test_health_is_a_page_for_people_and_json_for_programs(quiet: Terminal) -> None:
    page = quiet("health", FORCE_COLOR="", NO_COLOR="1")
    told = quiet("health", "--json").json

    assert page.code == 0
    assert (page.out.split()[:2], told["reasons"]) == (["status", "UP"], [])
    assert "\x1b" not in page.out
    assert told["nodes"][0]["version"]


def test_health_is_watched_until_ctrl_c(quiet: Terminal) -> None:
    watching = ForkedPopen(
        [HORAI, "health", "--watch", "--json"], env=quiet.environment, stdout=subprocess.PIPE, text=True
    )
    assert watching.stdout is not None
    looks = [json.loads(watching.stdout.readline()) for _ in range(2)]
    watching.send_signal(signal.SIGINT)

    watching.stdout.close()
    assert watching.wait(timeout=30) == 0
    assert [look["status"] for look in looks] == ["UP", "UP"], looks
