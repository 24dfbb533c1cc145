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
ORIGIN, SOME_ID = "http://127.0.0.1:8470", "4242"
AWKWARD = 'it\'s "so" $(late) \\ 晚了'
JOB = "/api/v1/jobs/copied.job"
QUEUE = "/api/v1/queues/copied.queue"
ASSET = "/api/v1/assets/s3%3A%2F%2Fcopied%2Fsales"
TAGGED = ("copied.one", "copied.two")
ENTITIES = "/api/v1/jobs/copied.refresh/entities"


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
            with error:
                return error.code != 404

    def set_up(self) -> None:
        for path in MADE:
            if self.has(path):
                self.ask("DELETE", path)
        target = {"type": "http", "url": "http://127.0.0.1:9/", "method": "GET"}
        self.ask("POST", "/api/v1/jobs", {"name": "copied.job", "every": "1m", "target": target})
        self.ask("POST", "/api/v1/jobs", {"name": "copied.load", "produces": ["s3://copied/sales"], "target": target})
        self.ask("POST", f"{JOB}/pause", {})
        self.ask("PUT", QUEUE, {"priority": "high", "maxConcurrency": 3, "rate": "5/s", "paused": False})

    def set_up_more(self) -> None:
        """Create the objects that the texts of other pages are about."""
        target = {"type": "http", "url": "http://127.0.0.1:9/", "method": "GET"}
        for name in TAGGED:
            self.ask("POST", "/api/v1/jobs", {"name": name, "tags": ["copied.tag"], "target": target})
        refresh = {"name": "copied.refresh", "every": "1d", "refresh": {"window": "10d"}, "target": target}
        self.ask("POST", "/api/v1/jobs", refresh)
        self.ask("POST", f"{ENTITIES}/batch", {"items": [{"key": "old-1"}, {"key": "old-2"}, {"key": "new-1"}]})
        source = {"type": "http", "url": "http://127.0.0.1:9/rows"}
        rows = {"name": "copied.rows", "job": "copied.job", "source": source, "every": "1h"}
        self.ask("POST", "/api/v1/reconcilers", rows)
        channel = {
            "name": "copied.mail",
            "kind": "email",
            "host": "a.example",
            "from": "a@b.example",
            "to": ["c@d.example"],
        }
        self.ask("POST", "/api/v1/alerts/channels", channel)
        self.ask("PUT", "/api/v1/sinks/copied.paused", {"kind": "log"})
        self.ask("PUT", "/api/v1/queues/copied.applied", {"maxConcurrency": 1})

    def run(self, language: str, text: str, place: Path) -> str:
        """Run a text and return its output; it must exit with code 0."""
        bin_ = Path(sys.executable).parent
        environment = clean_environment() | {
            "HORAI_SERVER": self.base,
            "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}",
        }
        is_python = language == "python"
        start = ForkedPopen if is_python else subprocess.Popen
        command = [sys.executable, "-c", text] if is_python else ["bash", "-euo", "pipefail", "-c", text]
        with start(command, env=environment, cwd=place, stdout=PIPE, stderr=PIPE, text=True) as process:
            out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        return out


MADE = (
    "/api/v1/reconcilers/copied.rows",
    "/api/v1/reconcilers/copied.articles",
    "/api/v1/workflows/copied.flow",
    JOB,
    *(f"/api/v1/jobs/copied.{name}" for name in ("new", "load", "one", "two", "refresh")),
    "/api/v1/alerts/rules/copied.rule",
    "/api/v1/alerts/channels/copied.mail",
    "/api/v1/calendars/copied.days",
    "/api/v1/sinks/copied.sink",
    "/api/v1/sinks/copied.paused",
)
"""The objects that the texts and their preparation leave, in the order of their deletion."""


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


def channel(stage: Stage) -> tuple[Any, ...]:
    found = stage.ask("GET", "/api/v1/alerts/channels/copied.mail")
    return found["host"], found["port"], found["to"]


def rule(stage: Stage) -> tuple[Any, ...]:
    found = stage.ask("GET", "/api/v1/alerts/rules/copied.rule")
    return found["kind"], found["job"], found["channels"], found["groupWait"], found["repeatEvery"], found["enabled"]


def sink(stage: Stage) -> tuple[Any, ...]:
    found = stage.ask("GET", "/api/v1/sinks/copied.sink")
    return found["kind"], found["url"], found["headers"], found["batch"], found["types"]


def silenced(stage: Stage) -> bool:
    return (found := stage.ask("GET", "/api/v1/alerts/silences")["items"][0])["job"] == "copied.job" and (
        found["note"] == AWKWARD
    )


def last_incident(stage: Stage) -> Any:
    return stage.ask("GET", f"/api/v1/incidents/{stage.ask('GET', '/api/v1/incidents')['items'][0]['id']}")


def notes(stage: Stage) -> list[str]:
    return [entry["note"] for entry in last_incident(stage)["timeline"]]


def thresholds(stage: Stage) -> tuple[Any, ...]:
    found = stage.ask("GET", "/api/v1/scheduler/thresholds")
    return found["triggerDelayP95"], found["runSuccessRate10m"], found["retryBacklog"], found["dryRun"]


def keys(stage: Stage) -> set[str]:
    return {entity["key"] for entity in stage.ask("GET", ENTITIES)["items"]}


def tagged(stage: Stage) -> list[tuple[str, str | None]]:
    found = [stage.ask("GET", f"/api/v1/jobs/{name}") for name in TAGGED]
    return [(job["status"], job["note"]) for job in found]


def payloads(stage: Stage) -> list[Any]:
    found = [stage.ask("GET", f"/api/v1/jobs/{name}/instances")["items"] for name in TAGGED]
    return [items[0]["payload"] for items in found]


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
    "setChannel": lambda stage: channel(stage) == ("mail.example.com", 587, ["ops@example.com", "it@example.com"]),
    "setRule": lambda stage: rule(stage) == ("INSTANCE_DEAD", "copied.job", ["copied.mail"], "1m", "8h", False),
    "silence": silenced,
    "setCalendar": lambda stage: stage.ask("GET", "/api/v1/calendars/copied.days")["holidays"][0]["name"] == AWKWARD,
    "setSink": lambda stage: (
        sink(stage)
        == (
            "webhook",
            "http://127.0.0.1:9/events",
            {"X-Note": "***"},
            7,
            ["horai.instance.dead", "horai.instance.done"],
        )
    ),
    "pauseSink": lambda stage: stage.ask("GET", "/api/v1/sinks/copied.paused")["status"] == "PAUSED",
    "openIncident": lambda stage: (last_incident(stage)["title"], notes(stage)) == (AWKWARD, [AWKWARD]),
    "noteIncident": lambda stage: AWKWARD in notes(stage),
    "closeIncident": lambda stage: last_incident(stage)["closedAt"] is not None and AWKWARD in notes(stage),
    "setThresholds": lambda stage: thresholds(stage) == ("5s", 0.75, 10_001, True),
    "addEntities": lambda stage: {AWKWARD, "sku-1"} <= keys(stage),
    "removeEntities": lambda stage: keys(stage) == {"new-1"},
    "removeNamed": lambda stage: keys(stage) == {"new-1"},
    "apply": lambda stage: stage.ask("GET", "/api/v1/queues/copied.applied")["maxConcurrency"] == 7,
    "createWorkflow": lambda stage: stage.has("/api/v1/workflows/copied.flow"),
    "createReconciler": lambda stage: stage.ask("GET", "/api/v1/reconcilers/copied.articles")["every"] == "1h",
    "changeReconciler": lambda stage: stage.ask("GET", "/api/v1/reconcilers/copied.rows")["every"] == "2h",
    "pauseTagged": lambda stage: tagged(stage) == [("PAUSED", AWKWARD)] * 2,
    "pauseNamed": lambda stage: tagged(stage) == [("PAUSED", AWKWARD)] * 2,
    "triggerTagged": lambda stage: payloads(stage) == [{"note": AWKWARD}] * 2,
    "deleteNamed": lambda stage: not any(stage.has(f"/api/v1/jobs/{name}") for name in TAGGED),
}
"""The condition that must hold after each text."""


def test_every_text_has_something_that_must_hold_after_it() -> None:
    assert set(DONE) == set(TEXTS)


def backfill_id(stage: Stage) -> str:
    wish = {"from": "2026-01-10T00:00:00Z", "to": "2026-01-10T01:00:00Z", "rate": "1/m"}
    return stage.ask("POST", f"{JOB}/backfill", wish)["id"]


def incident_id(stage: Stage) -> str:
    return stage.ask("POST", "/api/v1/incidents", {"title": "copied", "severity": "P2"})["id"]


IDS = {"cancelBackfill": backfill_id, "noteIncident": incident_id, "closeIncident": incident_id}
"""Objects whose id the server gives: each stands in the text as `SOME_ID`."""


@pytest.mark.parametrize(
    ("name", "language"), [(name, language) for name, texts in TEXTS.items() for language in texts]
)
def test_every_text_copied_from_the_console_has_its_effect(
    stage: Stage, tmp_path: Path, name: str, language: str
) -> None:
    text = TEXTS[name][language].replace(ORIGIN, stage.base)
    if "python" not in TEXTS[name]:
        stage.set_up_more()
    if name in IDS:
        text = text.replace(SOME_ID, IDS[name](stage))
    if name == "resumeQueue":
        stage.ask("PUT", QUEUE, {"priority": "high", "maxConcurrency": 3, "rate": "5/s", "paused": True})
    if name == "setChannel":
        stage.ask("DELETE", "/api/v1/alerts/channels/copied.mail")

    stage.run(language, text, tmp_path)

    assert DONE[name](stage)
