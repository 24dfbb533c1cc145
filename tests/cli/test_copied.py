"""The texts that the console copies for a shell or a program work: every text of console/copied.json is run.

The console's own tests hold that file against the texts of its dialogs.
"""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
from forked import ForkedPopen
from harness import HoraiProcess
from terminal import clean_environment

TEXTS: dict[str, dict[str, str]] = json.loads(
    (Path(__file__).parents[2] / "console" / "copied.json").read_text("utf-8")
)
ORIGIN, BACKFILL = "http://127.0.0.1:8470", "4242"
AWKWARD = 'it\'s "so" $(late) \\ 晚了'
JOB = "/api/v1/jobs/copied.job"
QUEUE = "/api/v1/queues/copied.queue"
ASSET = "/api/v1/assets/s3%3A%2F%2Fcopied%2Fsales"


class Stage:
    """The server, with the jobs, the queue and the asset that the texts are about."""

    def __init__(self, server: HoraiProcess) -> None:
        self.base = server.base

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        data = None if body is None else json.dumps(body).encode()
        named = {"Content-Type": "application/json"} | {name.replace("_", "-"): said for name, said in headers.items()}
        request = urllib.request.Request(self.base + path, data, named, method=method)
        with urllib.request.urlopen(request) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def has(self, path: str) -> bool:
        try:
            return self.ask("GET", path) is not None
        except urllib.error.HTTPError as error:
            return error.code != 404

    def set_up(self) -> None:
        for path in (JOB, "/api/v1/jobs/copied.new", "/api/v1/jobs/copied.load"):
            if self.has(path):
                self.ask("DELETE", path)
        target = {"type": "http", "url": "http://127.0.0.1:9/", "method": "GET"}
        self.ask("POST", "/api/v1/jobs", {"name": "copied.job", "every": "1m", "target": target})
        self.ask("POST", "/api/v1/jobs", {"name": "copied.load", "produces": ["s3://copied/sales"], "target": target})
        self.ask("POST", f"{JOB}/pause", {})
        self.ask("PUT", QUEUE, {"priority": "high", "maxConcurrency": 3, "rate": "5/s", "paused": False})

    def run(self, language: str, text: str) -> str:
        """Run a text and return its output; it must exit with code 0."""
        bin_ = Path(sys.executable).parent
        environment = clean_environment() | {
            "HORAI_SERVER": self.base,
            "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}",
        }
        is_python = language == "python"
        start = ForkedPopen if is_python else subprocess.Popen
        command = [sys.executable, "-c", text] if is_python else ["bash", "-euo", "pipefail", "-c", text]
        with start(command, env=environment, stdout=PIPE, stderr=PIPE, text=True) as process:
            out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        return out


@pytest.fixture
def stage(server: HoraiProcess) -> Stage:
    made = Stage(server)
    made.set_up()
    return made


def noted(stage: Stage) -> bool:
    job = stage.ask("GET", JOB)
    return (job["status"], job["note"]) == ("PAUSED", AWKWARD)


def instances(stage: Stage) -> list[Any]:
    return stage.ask("GET", f"{JOB}/instances")["items"]


def backfills(stage: Stage) -> list[Any]:
    return stage.ask("GET", "/api/v1/backfills?job=copied.job")["items"]


def queue(stage: Stage) -> tuple[Any, ...]:
    found = stage.ask("GET", QUEUE)
    return found["priority"], found["maxConcurrency"], found["rate"], found["paused"]


DONE: dict[str, Callable[[Stage], bool]] = {
    "create": lambda stage: stage.ask("GET", "/api/v1/jobs/copied.new")["payload"] == {"note": AWKWARD},
    "change": lambda stage: stage.ask("GET", JOB)["tags"] == ["copied"],
    "pause": noted,
    "resume": lambda stage: stage.ask("GET", JOB)["status"] == "ACTIVE",
    "trigger": lambda stage: instances(stage)[0]["payload"] == {"note": AWKWARD},
    "triggerPlain": lambda stage: len(instances(stage)) == 1,
    "backfill": lambda stage: (backfills(stage)[0]["mode"], backfills(stage)[0]["note"]) == ("all", AWKWARD),
    "cancelBackfill": lambda stage: backfills(stage)[0]["status"] == "CANCELLED",
    "delete": lambda stage: not stage.has(JOB),
    "setQueue": lambda stage: queue(stage) == ("low", 7, "30/m", False),
    "pauseQueue": lambda stage: queue(stage) == ("high", 3, "5/s", True),
    "updateAsset": lambda stage: stage.ask("GET", ASSET)["history"][0]["metadata"] == {"note": AWKWARD},
    "resumeQueue": lambda stage: queue(stage) == ("high", 3, "5/s", False),
}
"""The condition that must hold after each text."""


def test_every_text_has_something_that_must_hold_after_it() -> None:
    assert set(DONE) == set(TEXTS)


@pytest.mark.parametrize(
    ("name", "language"), [(name, language) for name, texts in TEXTS.items() for language in texts]
)
def test_every_text_copied_from_the_console_has_its_effect(stage: Stage, name: str, language: str) -> None:
    text = TEXTS[name][language].replace(ORIGIN, stage.base)
    if name == "cancelBackfill":
        wish = {"from": "2026-01-10T00:00:00Z", "to": "2026-01-10T01:00:00Z", "rate": "1/m"}
        text = text.replace(BACKFILL, stage.ask("POST", f"{JOB}/backfill", wish)["id"])
    if name == "resumeQueue":
        stage.ask("PUT", QUEUE, {"priority": "high", "maxConcurrency": 3, "rate": "5/s", "paused": True})

    stage.run(language, text)

    assert DONE[name](stage)
